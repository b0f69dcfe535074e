mod languages;
mod sentences;

use std::collections::BTreeSet;

use super::{detect_language, tokenize::MAX_TOKEN_CHARS, *};

fn tokens(text: &str, mode: TokenizeMode) -> Vec<String> {
    let mut all = Vec::new();
    tokenize(text, mode, &mut |token| all.push(token.text.to_owned()));
    all
}

fn document(text: &str) -> Vec<String> {
    tokens(text, TokenizeMode::Document)
}

/// Whether a question shares a term with a text, both analysed in `language`.
fn finds(query: &str, text: &str, language: Language) -> bool {
    let text: BTreeSet<TermId> = document_terms(text, language).into_iter().map(|(term, _)| term).collect();
    let query = LexicalQuery::new(query);
    query
        .terms(language)
        .into_iter()
        .zip(query.weights(&[language]))
        .any(|(term, weight)| weight > 0.0 && text.contains(&term))
}

#[test]
fn words_are_cut_at_spaces_and_punctuation_and_lower_cased() {
    assert_eq!(document("Hello, “wide” World! (Really?)"), ["hello", "wide", "world", "really"]);
    assert_eq!(document("end. Next—dash…and"), ["end", "next", "dash", "and"]);
    assert!(document(" \n\t—…!? 😀").is_empty());
}

#[test]
fn quotation_marks_and_operators_ask_for_no_more_than_the_words() {
    let asked = |text: &str| tokens(text, TokenizeMode::Query);
    assert_eq!(asked("\"net income\" -loss divid*"), asked("net income loss divid"));
    assert!(finds("\"income net\"", "the net of all income", Language::English));
    assert!(!finds("cats and dogs", "this and that", Language::English));
    assert!(finds("cats AND dogs", "this and that", Language::English), "what is in capitals may be a name");
    assert!(!finds("recieve", "they receive it", Language::English), "a typing error is another word");
}

#[test]
fn codes_numbers_and_identifiers_are_indexed_whole_and_in_parts() {
    assert_eq!(document("RFC-9110"), ["rfc9110", "rfc", "9110"]);
    assert_eq!(document("v1.2.3"), ["v1.2.3", "v", "1.2.3"]);
    assert_eq!(document("$4.2bn"), ["$4.2bn", "4.2bn", "4.2", "bn"]);
    assert_eq!(document("snake_case"), ["snakecase", "snake", "case"]);
    assert_eq!(document("__init__"), ["init"]);
    assert_eq!(document("CamelCase"), ["camelcase", "camel", "case"]);
    assert_eq!(document("HTTPServer"), ["httpserver", "http", "server"]);
    assert_eq!(document("PDFs"), ["pdfs"]);
    assert_eq!(document("example.com"), ["examplecom", "example", "com"]);
    assert_eq!(document("self.max_retries"), ["selfmaxretries", "self", "maxretries", "max", "retries"]);
    assert_eq!(document("2024-01-15"), ["2024-01-15", "2024", "01", "15"]);
    assert_eq!(document("C++ and F#, 3 c# x"), ["c++", "c", "and", "f#", "f", "3", "c#", "c", "x"]);
    assert_eq!(document("U.S.A."), ["usa", "u", "s", "a"]);
    assert_eq!(document("AB-12/7"), ["ab12/7", "ab12", "ab", "12", "7"]);
    assert_eq!(
        document("15/01/2024 at 10:30"),
        ["15/01/2024", "15", "01", "2024", "at", "10:30", "10", "30"]
    );
    assert_eq!(document("§ 5 and §12, #123"), ["§5", "5", "and", "§12", "12", "#123", "123"]);
    assert_eq!(document("std::sync::Arc"), ["stdsyncarc", "std", "sync", "arc"]);
    assert_eq!(document("fe80::1 or ::1"), ["fe80:1", "fe80", "fe", "80", "1", "or", "1"]);
    assert_eq!(
        document("and/or note:this https://a.b"),
        ["and", "or", "note", "this", "https", "ab", "a", "b"]
    );
    assert_eq!(document("12,13,14"), ["12,13,14", "12", "13", "14"]);
    assert_eq!(document("80,443 or 1,000.50"), ["80443", "80", "443", "or", "1000.50", "1", "000.50"]);
    assert_eq!(document("$4,200bn"), ["$4200bn", "4200bn", "4200", "4", "200", "bn"]);
}

/// The texts in the order in which a search for the query would list them; those that it would not find are left out.
fn ranked<'a>(query: &str, texts: &[&'a str]) -> Vec<&'a str> {
    let all: Vec<_> = texts.iter().map(|text| document_terms(text, Language::English)).collect();
    let weight =
        |terms: &[(TermId, f32)], term| terms.iter().find(|(t, _)| *t == term).map(|(_, weight)| *weight);
    let mut scored: Vec<(f32, &str)> = Vec::new();
    for (own, text) in all.iter().zip(texts) {
        let mut score = 0.0;
        for (term, factor) in LexicalQuery::new(query).sparse(&[Language::English]) {
            let frequency = all.iter().filter(|terms| weight(terms, term).is_some()).count();
            score += weight(own, term).unwrap_or(0.0) * factor * idf(all.len() as u64, frequency as u64);
        }
        if score > 0.0 {
            scored.push((score, text));
        }
    }
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().map(|(_, text)| text).collect()
}

#[test]
fn a_code_ranks_the_passage_that_has_it_whole_before_those_that_have_its_parts() {
    // The query, the passage that has the code, and one that has all of its parts elsewhere, more often even.
    for (query, whole, parts) in [
        ("RFC-9110", "Semantics are in RFC-9110.", "This RFC has 9110 words. RFC 9110 rfc."),
        ("rfc9110", "Semantics are in RFC 9110, or RFC-9110.", "An RFC. It has 9110 words."),
        ("v1.2.3", "Fixed in v1.2.3 of it.", "In v 1.2.3 or v2 nothing changed since v."),
        ("$4.2bn", "It cost $4.2bn last year.", "It cost 4.2 million, then 2 bn, 4.2 or bn."),
        (
            "max_retry_count",
            "Set max_retry_count to three.",
            "The count of a retry has a max: retry, count, max.",
        ),
        (
            "maxRetryCount",
            "Set maxRetryCount to three.",
            "The count of a retry has a max: retry, count, max.",
        ),
        ("AB-12/7", "Order part AB-12/7 today.", "Part AB-12 comes in 7 sizes, AB-12/8 in 7 too."),
        ("2001:db8::1", "The address is 2001:db8::1 here.", "In 2001 db 8 had 1 address; 1 of 8 in 2001."),
        ("2024-01-15", "Due on 2024-01-15 at noon.", "In 2024 there are 01 and 15, and 15 of 2024."),
        ("15/01/2024", "Due on 15/01/2024 at noon.", "In 2024 there are 01 and 15, and 15 of 2024."),
        ("§ 5 BDSG", "See § 5 BDSG for it.", "The BDSG has 5 parts. BDSG, 5, BDSG."),
        ("#4711", "Fixed by #4711 at last.", "It weighs 4711 grams, not 4711."),
        ("C++", "Written in C++ by hand.", "Vitamin C, group C, and C again."),
        ("std::sync::Arc", "Share it with std::sync::Arc then.", "An arc in sync with std: arc, sync."),
    ] {
        assert_eq!(ranked(query, &[parts, whole, "Nothing of that."]), [whole, parts], "{query}");
    }
}

#[test]
fn a_code_is_found_by_its_parts() {
    for (query, text) in [
        ("9110", "see RFC-9110"),
        ("retry", "set max_retry_count"),
        ("retry", "set maxRetryCount"),
        ("AB-12", "part AB-12/7"),
        ("AB12/7", "part AB-12/7"),
        ("db8", "at 2001:db8::1"),
        ("2001:DB8::1", "at 2001:db8::1"),
        ("2024", "on 2024-01-15"),
        ("2024", "on 15/01/2024"),
        ("§5", "nach § 5 BDSG"),
        ("4711", "see #4711"),
        ("4.2", "cost $4.2bn"),
        ("102", "Rooms 101,102,103 are free"),
        ("443", "ports: 80,443"),
        ("13", "ids 12,13,14"),
        ("rooms 101,102", "room 102 is free"),
        ("Arc", "use std::sync::Arc;"),
    ] {
        assert!(finds(query, text, Language::English), "{query} in {text}");
    }
}

#[test]
fn the_spellings_of_one_code_find_each_other() {
    for (query, text) in [
        ("RFC9110", "see RFC-9110"),
        ("rfc 9110", "see RFC-9110"),
        ("email", "send an e-mail"),
        ("e-mail", "send an email"),
        ("max retries", "fn maxRetries()"),
        ("max_retries", "the maxRetries option"),
        ("1000000", "costs 1,000,000 yen"),
        ("ＲＦＣ－９１１０", "see RFC-9110"),
        ("AT&T", "at&t said"),
        ("v1.2.3", "released v1.2.3."),
    ] {
        assert!(finds(query, text, Language::English), "{query} in {text}");
    }
    assert!(!finds("1.2", "12", Language::English));
}

#[test]
fn a_word_hyphenated_at_the_end_of_a_line_is_found_whole() {
    assert_eq!(document("docu-\n  ment"), ["document", "docu", "ment"]);
    assert_eq!(document("docu-\r\nMent"), ["docu", "ment"]);
    assert_eq!(document("soft\u{ad}hyphen"), ["softhyphen"]);
}

#[test]
fn apostrophes_mark_possessives_contractions_elisions_and_names() {
    assert_eq!(document("Anna's dog's it’s"), ["anna", "dog", "it"]);
    assert_eq!(document("don't they’re dogs'"), ["dont", "theyre", "dogs"]);
    assert_eq!(document("l'école qu’il dell'acqua"), ["l", "école", "qu", "il", "dell", "acqua"]);
    assert_eq!(document("O'Brien"), ["obrien", "o", "brien"]);
}

#[test]
fn long_tokens_are_bounded() {
    let blob = "A1b2".repeat(5_000);
    for token in document(&blob).into_iter().chain(document(&"é".repeat(70_000))) {
        assert!(token.chars().count() <= MAX_TOKEN_CHARS);
    }
    let word = "x".repeat(200);
    assert!(finds(&word, &word, Language::English));
}

#[test]
fn scripts_without_spaces_are_cut_into_bigrams_and_single_characters() {
    assert_eq!(document("東京"), ["東", "東京", "京"]);
    assert_eq!(tokens("東京", TokenizeMode::Query), ["東京"]);
    assert_eq!(document("が"), ["が"]);
    assert_eq!(tokens("猫は", TokenizeMode::Query), ["猫", "猫は"]);
    assert_eq!(tokens("서울은", TokenizeMode::Query), ["서울", "울은"]);
    assert_eq!(document("第3章"), ["第", "3", "章"]);
}

#[test]
fn japanese_chinese_korean_and_thai_questions_find_their_passages() {
    for (query, text, language) in [
        ("猫はどこですか", "黒猫が庭にいる", Language::Japanese),
        ("データベースの設定", "データベースを設定する方法", Language::Japanese),
        ("ﾃﾞｰﾀ", "データ", Language::Japanese),
        ("如何配置数据库", "数据库的配置方法", Language::Chinese),
        ("서울 인구", "서울은 인구가 많다", Language::Korean),
        ("물", "물은 차갑다", Language::Korean),
        ("ข้อมูล", "ฐานข้อมูลเชิงสัมพันธ์", Language::Other),
        ("containers", "コンテナ(container)を使う", Language::Japanese),
    ] {
        assert!(finds(query, text, language), "{query} in {text}");
    }
}

#[test]
fn dakuten_and_hangul_stay_and_accents_of_latin_greek_and_cyrillic_letters_go() {
    assert!(!finds("が", "か", Language::Japanese));
    assert!(!finds("ハス", "バス", Language::Japanese));
    for (query, text, language) in [
        ("cafe", "Café", Language::Other),
        ("CAFE\u{301}", "café", Language::Other),
        ("Strasse", "Straße", Language::German),
        ("елка", "ёлка", Language::Russian),
        ("ΟΔΟΣ", "οδός", Language::Other),
        ("Lodz", "Łódź", Language::Other),
        ("Soren", "Søren", Language::Danish),
    ] {
        assert!(finds(query, text, language), "{query} in {text}");
        assert!(finds(text, query, language), "{text} in {query}");
    }
    assert!(!finds("мои", "мой", Language::Other));
}

#[test]
fn inflected_forms_find_each_other() {
    for (query, text, language) in [
        ("Häuser", "Das Haus ist alt", Language::German),
        ("Haus", "Die Häuser sind alt", Language::German),
        ("Hauser", "Die Häuser sind alt", Language::German),
        ("Häuser", "Hauser", Language::German),
        ("running", "he runs", Language::English),
        ("containers", "a container", Language::English),
        ("книги", "книга", Language::Russian),
        ("administraciones", "la administración", Language::Spanish),
        ("administracion", "la administración", Language::Spanish),
        ("administración", "la administracion", Language::Spanish),
        ("économiques", "économique", Language::French),
    ] {
        assert!(finds(query, text, language), "{query} in {text}");
    }
}

#[test]
fn an_accented_word_has_the_weight_of_one_word() {
    let query = LexicalQuery::new("administración");
    assert_eq!(query.len(), 2);
    assert!((query.weights(&[Language::Spanish]).iter().sum::<f32>() - 1.0).abs() < 1e-6);
}

#[test]
fn stop_words_count_only_if_a_question_has_nothing_else() {
    let weights = |query: &str, languages: &[Language]| LexicalQuery::new(query).weights(languages);
    assert_eq!(weights("what is the capital", &[Language::English]), [0.0, 0.0, 0.0, 1.0]);
    assert_eq!(weights("The Who", &[Language::English]), [1.0, 1.0]);
    assert!(weights("to be or not to be", &[Language::English]).iter().all(|weight| *weight > 0.0));
    assert_eq!(weights("who made the IT budget", &[Language::English]), [0.0, 1.0, 0.0, 1.0, 1.0]);
    // A question in a language that no text has, and a word that only looks foreign.
    assert_eq!(weights("was ist die Hauptstadt", &[Language::English]), [0.0, 0.0, 0.0, 1.0]);
    assert_eq!(weights("die hard", &[Language::English]), [1.0, 1.0]);
    assert_eq!(weights("die Katze", &[Language::German]), [0.0, 1.0]);
    assert_eq!(weights("dog food, dog bed", &[Language::English, Language::Danish]), [2.0, 1.0, 1.0]);
}

#[test]
fn repeated_words_of_a_question_count_as_often_as_they_occur() {
    assert_eq!(LexicalQuery::new("dog cat Dog").weights(&[Language::English]), [2.0, 1.0]);
}

#[test]
fn a_question_as_one_sparse_vector_has_the_terms_of_every_language() {
    let query = LexicalQuery::new("the houses");
    let sparse = query.sparse(&[Language::English, Language::Other]);
    let terms: Vec<TermId> = sparse.iter().map(|(term, _)| *term).collect();
    assert!(terms.contains(&TermId::of("hous")) && terms.contains(&TermId::of("houses")));
    assert_eq!(terms.len(), 2);
    assert!(terms.is_sorted());
}

#[test]
fn term_ids_never_change() {
    assert_eq!(TermId::of(""), TermId(0xefd0_1f60_ba99_2926));
    assert_eq!(TermId::of("東京"), TermId(0xb700_c569_e52d_4522));
    assert_eq!(TermId::of("lectern"), TermId(0x35dc_2d17_21ce_479c));
    assert_ne!(TermId::of("lectern"), TermId::of("lecterns"));
    assert_eq!(TermId(0x1234_5678_9abc_def0).narrow(), 0x1234_5678);
}

#[test]
fn weights_saturate_and_long_passages_are_discounted() {
    assert!(weight(2, 100) > weight(1, 100) && weight(2, 100) < 2.0 * weight(1, 100));
    assert!(weight(1, 400) < weight(1, 100));
    assert!(weight(1_000_000, 10) < K1 + 1.0);
    assert!(idf(1, 1) > 0.0 && idf(1000, 1) > idf(1000, 10));
}

#[test]
fn no_stemmer_panics_on_random_words() {
    let letters: [&[char]; 6] = [
        &['a', 'e', 'i', 's', 'n', 't', 'y', 'l', 'g', 'u'],
        &['ä', 'é', 'ı', 's', 'ß', 'ő', 'y', 'r', 'ø', 'e'],
        &['а', 'и', 'й', 'ё', 'в', 'ш', 'с', 'ь', 'я', 'ю'],
        &['α', 'ά', 'ι', 'ς', 'σ', 'ο', 'ύ', 'ν', 'ε', 'τ'],
        &['ا', 'ل', 'و', 'ي', 'ه', 'ت', 'ن', 'س', 'ئ', 'ة'],
        &['க', 'ா', '்', 'த', 'ு', 'ம', 'ி', 'ள', 'ே', 'ன'],
    ];
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    for language in Language::ALL {
        let mut terms = TermStemmer::new(language);
        for round in 0..6_000 {
            let set = letters[round % letters.len()];
            let word: String = (0..=random(14)).map(|_| set[random(set.len())]).collect();
            terms.of_document(&word);
        }
    }
}

#[test]
fn a_german_verb_is_found_with_zu_in_it() {
    for (question, text) in [
        ("Bis wann muss ich Belege einreichen?", "Sie sind nach sechs Wochen einzureichen."),
        ("Wo kann ich den Schlüssel zurückgeben?", "Er ist am Empfang zurückzugeben."),
        ("Wer muss zustimmen?", "Der Vorstand hat ihr zuzustimmen."),
        ("Wer muss das sicherstellen?", "Der Betreiber hat es sicherzustellen."),
    ] {
        assert!(finds(question, text, Language::German), "{question}");
    }
    assert!(!finds("Womit reichen wir es?", "Sie sind nach sechs Wochen einzureichen.", Language::German));
}

#[test]
fn any_text_can_be_analysed() {
    let mut state = 7_u64;
    for _ in 0..600 {
        let text: String = (0..40)
            .filter_map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let value = u32::try_from(state >> 40).unwrap();
                match value % 4 {
                    0 => char::from_u32(value / 4 % 0x11_0000),
                    1 => "-_.'’,&\n\r \u{ad}$#+|".chars().nth((value / 4 % 15) as usize),
                    2 => char::from_u32(0x20 + value / 4 % 0x60),
                    _ => char::from_u32(value / 4 % 0x3100),
                }
            })
            .collect();
        document_terms(&text, detect_language(&text));
        assert!(covered(&LexicalQuery::new(&text).matched(&text)).all <= 1.0001);
        for (start, end) in sentences(&text, detect_language(&text)) {
            assert!(start < end && text.get(start..end).is_some());
        }
    }
}

#[test]
fn a_number_with_commas_is_as_long_as_one_without() {
    let weight = |text: &str| {
        let terms = document_terms(text, Language::English);
        terms.into_iter().find(|(term, _)| *term == TermId::of("1000000")).map(|(_, weight)| weight)
    };
    assert_eq!(weight("costs 1,000,000 yen"), weight("costs 1000000 yen"));
    assert!(weight("costs 1000000 yen").is_some());
}

/// How much of a question a passage has, where other passages have the rest.
fn covered(matched: &PassageMatch<'_>) -> WordCoverage {
    matched.coverage(&matched.present(), &[true; 256])
}

#[test]
fn a_word_that_stands_in_no_passage_counts_as_two() {
    let query = LexicalQuery::new("How many days of sick leave are there?");
    let [paternity, sick] = ["Paternity leave is ten days.", "Sick notes are handed in."];
    let paternity = query.matched(paternity);
    let share = |known: &[bool]| (paternity.coverage(&paternity.present(), known).own * 100.0).round();
    let other = query.matched(sick).present();
    let known: Vec<bool> = paternity.present().iter().zip(other).map(|(one, other)| *one || other).collect();
    assert!((share(&known) - 67.0).abs() < 0.5, "{}", share(&known));
    assert!((share(&paternity.present()) - 50.0).abs() < 0.5);
    // A pair of characters is no word.
    let query = LexicalQuery::new("加班需要谁批准？");
    let passage = query.matched("加班必须事先得到部门经理的批准。");
    let present = passage.present();
    assert!((passage.coverage(&present, &present).all - covered(&passage).all).abs() < f32::EPSILON);
}

#[test]
fn a_typing_error_is_looked_for_only_in_words_that_stand_nowhere() {
    let query = LexicalQuery::new("May the NATO staff fly bussiness class on flight LX3182 to Aldern?");
    let passage = query.matched("Business class is for long flights.");
    let mut typed = passage.typed_words(&passage.present());
    passage.compare(&mut typed);
    let words: Vec<_> = typed.iter().map(|word| (word.typed(), word.meant())).collect();
    assert_eq!(words, [("staff", None), ("bussiness", Some("business")), ("aldern", None)]);
}

#[test]
fn coverage_is_the_share_of_content_words_that_are_there() {
    let covered = |query, text| (self::covered(&LexicalQuery::new(query).matched(text)).all * 100.0).round();
    let near = |a: f32, b: f32| assert!((a - b).abs() < 0.5, "{a} {b}");
    near(covered("What is the default port?", "The default ports are 80 and 443."), 100.0);
    near(covered("What is the default timeout?", "The default port is 80."), 50.0);
    near(covered("quantum gravity", "The default port is 80."), 0.0);
    near(covered("RFC-9110 semantics", "HTTP semantics are in RFC9110."), 100.0);
    near(covered("1,000,000 yen", "It costs 1000000 yen."), 100.0);
    near(covered("", "anything"), 0.0);
    // A code says more of what is asked about than a word.
    near(covered("How much does A-102 cost?", "Article A-102 is 5 euros."), 66.7);
    near(covered("How much does A-102 cost?", "How much does the plan cost? It costs 19 euros."), 33.3);
    near(covered("How much does A-102 cost?", "Bolt A 102 is 5 euros."), 66.7);
    near(covered("How much does A-102 cost?", "B-102 costs 5 euros."), 33.3);
    near(covered("How much does SKU-9999 cost?", "SKU-1000 costs 5 euros."), 33.3);
    assert!(
        covered("Which COVID-19 rules apply?", "COVID rules apply to all visitors.") > 67.0,
        "a word with a number"
    );
    near(covered("Is it open at 10am?", "It is open at noon."), 50.0);
    // The name of a document counts for its passages that have a word themselves.
    let query = LexicalQuery::new("What is the weight of the X200?");
    let named = |text| self::covered(&query.matched(text).of_document("X200 manual.pdf")).all * 100.0;
    near(named("The weight is 9 kg."), 100.0);
    near(named("It is new."), 0.0);
    // What French asks with is no word either, however it is written.
    let hours = "La bibliothèque est ouverte du mardi au samedi. Elle est fermée le dimanche et le lundi.";
    near(covered("Quand la bibliothèque est-elle fermée ?", hours), 100.0);
    near(covered("Est-ce que la bibliothèque est fermée ?", hours), 100.0);
    near(covered("Quand la bibliothèque ferme-t-elle ?", hours), 100.0);
    near(
        covered("Puis-je emprunter des livres ?", "Vous pouvez emprunter douze livres, qui que vous soyez."),
        100.0,
    );
    near(covered("Le rendez-vous de la gare", "Il y a une gare. La place du marché est à côté."), 50.0);
    // What a question in Chinese only asks with is no part of what it is about.
    near(covered("年假有多少天？", "入职满一年的员工每年有十天带薪年假。"), 100.0);
    near(covered("加班需要谁批准？", "加班必须事先得到部门经理的批准。"), 50.0);
    near(covered("多少？", "有多少"), 100.0);
}
