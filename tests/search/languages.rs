//! Words of many kinds: of other scripts, and such as are no words.

use serde_json::json;

use super::{ask, names, note};
use crate::support::{
    in_both_modes,
    service::{Mode, Service},
};

in_both_modes!(
    chinese_and_japanese_questions_find_chinese_and_japanese_passages,
    codes_numbers_and_identifiers_are_found_whole_and_in_part,
    other_forms_of_a_word_are_found_in_its_language
);

async fn chinese_and_japanese_questions_find_chinese_and_japanese_passages(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let chinese = [
        "自行车必须停放在地下室，不得停放在走廊里。",
        "图书馆每天上午九点开门，星期日休息。",
        "退款申请应在购买后三十天内提交给客服部门。",
        "实验室的冰箱里不得存放食物和饮料。",
    ];
    let japanese = [
        "自転車は地下室に置いてください。廊下に置かないでください。",
        "図書館は毎朝九時に開館し、日曜日は休館です。",
        "返金の申請は購入後三十日以内にカスタマーサポートへ提出してください。",
        "研究室の冷蔵庫に食べ物を入れないでください。",
    ];
    for text in chinese.into_iter().chain(japanese) {
        client.ingest(&note("Notice", text)).await;
    }
    for (question, text) in [
        ("自行车应该停在哪里？", chinese[0]),
        ("图书馆几点开门？", chinese[1]),
        ("怎么申请退款？", chinese[2]),
        ("冰箱里可以放饮料吗？", chinese[3]),
        ("自転車はどこに置けばいいですか？", japanese[0]),
        ("図書館は何時に開館しますか？", japanese[1]),
        ("返金を申請するにはどうすればいいですか？", japanese[2]),
        ("冷蔵庫に食べ物を入れてもいいですか？", japanese[3]),
    ] {
        let found = ask(&client, question).await;
        assert_eq!(found.first().map(|first| &first["text"]), Some(&json!(text)), "{question}: {found:#?}");
    }
}

async fn codes_numbers_and_identifiers_are_found_whole_and_in_part(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    let texts = [
        "Semantics are defined in RFC-9110 and nowhere else.",
        "Semantics are defined in RFC-9111 and nowhere else.",
        "The fault was mended in v1.2.3 of the driver.",
        "The fault was mended in v1.2.4 of the driver.",
        "Revenue rose to $4.2bn in the last quarter.",
        "Revenue rose to $4.3bn in the last quarter.",
        "Call max_retry_count to learn the bound.",
        "Call getHttpResponseCode to learn the state.",
        "The part number is AX-77/B-9 for the pump.",
        "The part number is AX-78/B-9 for the pump.",
    ];
    for text in texts {
        client.ingest(&note("Sheet", text)).await;
    }
    for (question, text) in [
        ("RFC-9110", texts[0]),
        ("What does rfc 9110 define?", texts[0]),
        ("RFC9111", texts[1]),
        ("what was mended in v1.2.3?", texts[2]),
        ("1.2.4", texts[3]),
        ("$4.2bn", texts[4]),
        ("When did revenue reach 4.3bn?", texts[5]),
        ("max_retry_count", texts[6]),
        ("the count of a retry", texts[6]),
        ("getHttpResponseCode", texts[7]),
        ("http response code", texts[7]),
        ("AX-77/B-9", texts[8]),
        ("Which pump has the number AX-78/B-9?", texts[9]),
    ] {
        let found = ask(&client, question).await;
        assert_eq!(found.first().map(|first| &first["text"]), Some(&json!(text)), "{question}: {found:#?}");
    }
}

async fn other_forms_of_a_word_are_found_in_its_language(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let client = service.signed_up("ada@example.com").await;
    for (name, text) in [
        (
            "English",
            "All of the bicycles that were parked here have been taken to the cellar by the caretaker.",
        ),
        (
            "Deutsch",
            "Die Fahrräder der Bewohner werden vom Hausmeister jeden Abend in den großen Keller gebracht.",
        ),
        (
            "Français",
            "Les vélos abandonnés dans la cour seront enlevés par le gardien de l'immeuble chaque lundi.",
        ),
        ("Русский", "Велосипеды жильцов дома каждый вечер убирают в подвал, потому что во дворе мало места."),
    ] {
        client.ingest(&note(name, text)).await;
    }
    for (question, name) in [
        ("parking a bicycle", "English"),
        ("BICYCLES", "English"),
        ("Wo ist das Fahrrad des Hausmeisters?", "Deutsch"),
        ("Qui enlève le vélo abandonné ?", "Français"),
        ("enleves", "Français"),
        ("Куда убирают велосипед?", "Русский"),
    ] {
        let found = ask(&client, question).await;
        assert_eq!(names(&found[..found.len().min(1)]), [name], "{question}: {found:#?}");
    }
}
