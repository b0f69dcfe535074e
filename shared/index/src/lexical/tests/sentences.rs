use super::*;

fn split(text: &str) -> Vec<&str> {
    split_in(Language::English, text)
}

fn split_in(language: Language, text: &str) -> Vec<&str> {
    sentences(text, language).map(|(start, end)| &text[start..end]).collect()
}

#[test]
fn sentences_end_where_a_reader_would_end_them() {
    assert_eq!(split("One. Two! Three?  "), ["One.", "Two!", "Three?"]);
    assert_eq!(
        split("Dr. Smith met J. Doe, e.g. at 3.5 km. They left."),
        ["Dr. Smith met J. Doe, e.g. at 3.5 km.", "They left."]
    );
    assert_eq!(split("Das gilt z.B. Dienstags. Ende."), ["Das gilt z.B. Dienstags.", "Ende."]);
    assert_eq!(split("猫がいる。犬もいる！"), ["猫がいる。", "犬もいる！"]);
    assert!(split(" \n\n ").is_empty());
}

#[test]
fn an_ordinal_ends_no_sentence_where_it_is_written_with_a_full_stop() {
    for (language, text, parts) in [
        (
            Language::German,
            "Er endet am 30. Juni 2027. Danach nicht.",
            ["Er endet am 30. Juni 2027.", "Danach nicht."],
        ),
        (Language::German, "Zahlbar bis zum 3. Werktag. Bar.", ["Zahlbar bis zum 3. Werktag.", "Bar."]),
        (Language::Hungarian, "A 3. Kerületben van. Itt.", ["A 3. Kerületben van.", "Itt."]),
        (Language::Danish, "Det er den 2. Verdenskrig. Her.", ["Det er den 2. Verdenskrig.", "Her."]),
        (Language::Other, "Je to na 5. Avenue. Zde.", ["Je to na 5. Avenue.", "Zde."]),
        // Of a number at the end, what follows tells.
        (Language::German, "Es sind 30. Die Frist gilt.", ["Es sind 30.", "Die Frist gilt."]),
        (
            Language::German,
            "Er endet 2027. Kündigen muss niemand.",
            ["Er endet 2027.", "Kündigen muss niemand."],
        ),
        (Language::English, "It costs 30. Members pay less.", ["It costs 30.", "Members pay less."]),
        (Language::French, "Il y en a 30. Chacun paie.", ["Il y en a 30.", "Chacun paie."]),
    ] {
        assert_eq!(split_in(language, text), parts, "{text}");
    }
}

#[test]
fn an_abbreviation_ends_no_sentence_in_its_language() {
    for (language, text) in [
        (Language::German, "Geräte, z. B. Bohrer, werden in Raum Nr. 5 ausgegeben."),
        (Language::German, "Geräte, z.\u{a0}B. Bohrer, d. h. Leihgaben, u. a. Sägen."),
        (Language::German, "Das gilt gem. Abs. 2 für max. 5 Personen bis 5 Mio. Euro."),
        (Language::French, "M. Dupont et Mme Roy, l’art. 5, p. ex. Lyon, tél. 5."),
        (Language::Spanish, "La Sra. Ruiz vive en la Avda. Goya, núm. 5."),
        (Language::Italian, "Il sig. Rossi e l'avv. Bianchi, pag. 5."),
        (Language::Swedish, "Det gäller t.ex. Malmö, bl.a. Lund."),
        (Language::Russian, "Это на ул. Ленина, т. е. Москва."),
        (Language::English, "Mr. Doe, no. 5, met J. Smith at St. Mary's."),
    ] {
        assert_eq!(split_in(language, text), [text]);
    }
    assert_eq!(split("He is the best. They left."), ["He is the best.", "They left."]);
    assert_eq!(split("It is 5 m. They left."), ["It is 5 m.", "They left."]);
    assert_eq!(split("You don't. They do."), ["You don't.", "They do."]);
    assert_eq!(split("It is the tenant’s. They pay."), ["It is the tenant’s.", "They pay."]);
    assert_eq!(split_in(Language::French, "Il y en a. Chacun paie."), ["Il y en a.", "Chacun paie."]);
    assert_eq!(split_in(Language::Danish, "De skammer sig. Her."), ["De skammer sig.", "Her."]);
    assert!(split(&format!("A{}", ".\u{5d0}".repeat(100))).len() > 1, "there is an end to what can be one");
}

#[test]
fn a_line_break_inside_a_paragraph_ends_no_sentence() {
    assert_eq!(
        split("This sentence was broken\r\nby a PDF. The next\none too."),
        ["This sentence was broken\r\nby a PDF.", "The next\none too."]
    );
    assert_eq!(split("# Title\nBody text\n\nOther"), ["# Title", "Body text", "Other"]);
    assert_eq!(split("Items:\n- first thing\n- second thing"), ["Items:", "- first thing", "- second thing"]);
    assert_eq!(
        split("Scope\nThis document describes the interface."),
        ["Scope", "This document describes the interface."]
    );
}

#[test]
fn the_number_of_an_item_and_a_heading_of_a_word_or_two_are_no_sentences() {
    assert_eq!(split("1. Empty the drip tray. Rinse it."), ["1. Empty the drip tray.", "Rinse it."]);
    assert_eq!(
        split("2. Hiring freeze. The hiring freeze ends in March. It is short."),
        ["2. Hiring freeze. The hiring freeze ends in March.", "It is short."]
    );
    assert_eq!(
        split("§ 2 Fees\n(1) It is due.\n(2) It grows."),
        ["§ 2 Fees", "(1) It is due.", "(2) It grows."]
    );
    assert_eq!(split("- Budget."), ["- Budget."]);
    assert_eq!(
        split("参加人员：张三、李四\n一、预算。董事会批准了预算。李四反对。\n（二）仓库。推迟决定。"),
        ["参加人员：张三、李四", "一、预算。董事会批准了预算。", "李四反对。", "（二）仓库。推迟决定。"]
    );
    assert_eq!(split("Budget. It was approved."), ["Budget.", "It was approved."]);
    assert!(split(&"1. ".repeat(100)).len() > 1, "there is an end to what can be a number");
}

#[test]
fn fields_with_their_names_are_apart_and_a_row_of_them_is_whole() {
    assert_eq!(split("Monday: 9-17\nTuesday: closed"), ["Monday: 9-17", "Tuesday: closed"]);
    assert_eq!(split("保修期：两年\n功率：1500瓦"), ["保修期：两年", "功率：1500瓦"]);
    assert_eq!(
        split("There is one way out of here that everybody\nknows: the door"),
        ["There is one way out of here that everybody\nknows: the door"],
        "one colon makes no field"
    );
    let rows = "Article: A-1\nDescription: Ask us. Open daily.\nPrice: 8.95\n\nArticle: A-2\nPrice: 11.20\n";
    assert_eq!(
        split(rows),
        ["Article: A-1\nDescription: Ask us. Open daily.\nPrice: 8.95", "Article: A-2\nPrice: 11.20"]
    );
    let long = format!("Name: X\nAbout: {}\nPrice: 5", "word ".repeat(150).trim_end());
    assert_eq!(split(&format!("{long}\n\nName: Y\nPrice: 6")), [long.as_str(), "Name: Y\nPrice: 6"]);
    let asked = "Q: Who?\nA: Ada. And Bo.\n\nQ: When?\nA: In May.";
    assert_eq!(split(asked), ["Q: Who?", "A: Ada.", "And Bo.", "Q: When?", "A: In May."]);
}

#[test]
fn a_sentence_without_an_end_is_cut_between_words() {
    let long = "word ".repeat(300);
    let pieces = split(&long);
    assert!(pieces.len() >= 4);
    assert!(
        pieces.iter().all(|piece| piece.chars().count() <= MAX_SENTENCE_CHARS && piece.ends_with("word"))
    );
    let unbroken = "字".repeat(1_000);
    assert_eq!(split(&unbroken).concat(), unbroken);
    assert!(split(&unbroken).iter().all(|piece| piece.chars().count() <= MAX_SENTENCE_CHARS));
    assert_eq!(split(&"x".repeat(1_000)).concat().len(), 1_000);
    assert_eq!(split(&format!("{}{}\n", "x".repeat(500), " ".repeat(500))).concat().len(), 500);
}

#[test]
fn the_best_sentence_is_the_one_that_answers() {
    let text =
        "Lectern is a service. Lectern listens on port 8080 by default. Lectern stores its data in SQLite.";
    let best = |query| best_sentence(query, text).map(|range| &text[range]);
    assert_eq!(best("Which port does Lectern listen on?"), Some("Lectern listens on port 8080 by default."));
    assert_eq!(best("where is the data stored"), Some("Lectern stores its data in SQLite."));
    assert_eq!(best("what is quantum gravity"), None);
    assert_eq!(best(""), None);
    let text = "東京は日本の首都である。富士山の高さは3776メートルである。";
    assert_eq!(
        best_sentence("富士山の高さは？", text).map(|range| &text[range]),
        Some("富士山の高さは3776メートルである。")
    );
}

#[test]
fn what_a_heading_or_a_question_introduces_is_the_best_sentence() {
    for (query, text, best) in [
        (
            "How do I reset my password?",
            "## How do I reset my password?\n\nOpen the sign-in page and choose Forgot.",
            "Open the sign-in page and choose Forgot.",
        ),
        (
            "When are the quiet hours?",
            "# House rules\n\n## Quiet hours\n\n---\n\nQuiet time is from ten to six. Be kind.",
            "Quiet time is from ten to six.",
        ),
        (
            "How do I reset it?",
            "question: How do I reset it?\nanswer: Click the link.",
            "answer: Click the link.",
        ),
        (
            "Where do I park?",
            "Where do I park? Behind the house. Where do I sleep? Upstairs.",
            "Behind the house.",
        ),
        // Of a heading in two sentences, too.
        ("How does the pump start?", "# 2. The pump's start\n\nPull the lever.", "Pull the lever."),
        // What introduces nothing is the best there is.
        ("Where do I park?", "Dogs are allowed. Where do I park?", "Where do I park?"),
        ("parking", "## Parking\n\n## Pets\n\nDogs are allowed.", "## Parking"),
        ("ticket 4711", "#4711 is the ticket. It is closed.", "#4711 is the ticket."),
        // What is asked for further below counts with its headings, and with none that another one has ended.
        (
            "How many days of holiday are there in edition 2026?",
            "# Rules\n\n## Part 1: edition 2026\n\nEdition 2026 is valid from January. It replaces all others.\n\n\
             ### Leave\n\nThere are breaks. An employee has 31 days of holiday.\n\n\
             ## Part 2: edition 2025\n\nIt was valid for a year. An employee had 30 days of holiday, and days of rest.",
            "An employee has 31 days of holiday.",
        ),
    ] {
        assert_eq!(best_sentence(query, text).map(|range| &text[range]), Some(best), "{query} in {text}");
    }
}

#[test]
fn of_a_table_the_row_that_is_asked_for_is_the_best_sentence() {
    let text = "These are our goods, when you will have them, and what we want for them.\n\n\
                | Product | Delivery time | Price |\n|---|:-:|--:|\n| A100 | 3 days | 10 euros |\n\
                | B200 | 9 days | 20 euros |\n\n| Product | Weight |\n|---|---|\n| B200 | 5 kg |\n";
    let best = |query| best_sentence(query, text).map(|range| &text[range]);
    assert_eq!(best("What is the delivery time of product B200?"), Some("| B200 | 9 days | 20 euros |"));
    assert_eq!(best("What is the delivery time of product A100?"), Some("| A100 | 3 days | 10 euros |"));
    assert_eq!(best("What is the weight of product B200?"), Some("| B200 | 5 kg |"));
    assert_eq!(best("which products and prices are there"), Some("| A100 | 3 days | 10 euros |"));
    // As Markdown has it too.
    let text =
        "Product | Delivery time\n--- | ---\nDesk | 3 weeks\nLamp | 2 days\nWe deliver on working days.";
    let best = |query| best_sentence(query, text).map(|range| &text[range]);
    assert_eq!(best("What is the delivery time of the desk?"), Some("Desk | 3 weeks"));
    assert_eq!(best("Delivery time lamp"), Some("Lamp | 2 days"));
    assert_eq!(best("On which days do you deliver?"), Some("We deliver on working days."));
}

#[test]
fn a_question_about_the_columns_of_a_table_is_answered_by_its_rows() {
    let text = "# Fees\n\n| Service | Fee per month | Deposit |\n|---|---|---|\n| Locker | 5 euros | 20 euros |\n\
                | Parking | Ask us. Open daily. | 100 euros |\n\nThe fees are due in May.\n";
    let best = |query: &str, text| {
        let query = LexicalQuery::new(query);
        let ranges = query.matched(text).best_sentences();
        ranges.into_iter().map(|range| &text[range]).collect::<Vec<&str>>()
    };
    assert_eq!(
        best("How much is the deposit?", text),
        ["| Locker | 5 euros | 20 euros |", "| Parking | Ask us. Open daily. | 100 euros |"]
    );
    assert_eq!(best("How much is the deposit of a locker?", text), ["| Locker | 5 euros | 20 euros |"]);
    assert_eq!(best("When are they due?", text), ["The fees are due in May."]);
    assert_eq!(
        best("Deposit", "| Service | Deposit |\n|---|---|\n| Locker | 20 euros |\n|  |  |\n"),
        ["| Locker | 20 euros |"],
        "an empty row says nothing"
    );
    assert_eq!(
        best("Deposit", "| Service | Deposit |\n|---|---|\n"),
        ["| Service | Deposit |"],
        "there are no rows"
    );
}

#[test]
fn a_title_in_plain_text_counts_for_what_it_introduces() {
    for (query, text, best) in [
        (
            "What is the weight of the pump X300?",
            "Product X300\n\nThe pump X300 moves 75 litres a minute. It weighs 19 kg.\n",
            "The pump X300 moves 75 litres a minute.",
        ),
        ("Who pays the deposit?", "Deposit\r\n\r\nThe tenant pays. Or others.", "The tenant pays."),
        ("第二章 退货", "第二章 退货\n\n三十天内可以退。\n", "三十天内可以退。"),
        // What says something is no title, and neither is what stands above another line.
        ("What is the deposit?", "Deposit 20 euros\n\nThe locker is free in May.", "Deposit 20 euros"),
        ("What is the weight?", "Weight: 19 kg\n\nThe pump is new.", "Weight: 19 kg"),
        ("What is the price?", "Price on request\n\nDelivery by mail\n\n", "Price on request"),
        ("押金多少", "押金20元\n\n五月归还储物柜。", "押金20元"),
    ] {
        assert_eq!(best_sentence(query, text).map(|range| &text[range]), Some(best), "{query} in {text}");
    }
}

#[test]
fn the_headings_that_a_passage_stands_under_count_for_its_sentences() {
    let text =
        "Breaks are paid. An employee has 31 days of holiday.\n\n## Part 4: pay\n\nHoliday pay is due.";
    let headings = ["Handbook".to_owned(), "Part 3: edition 2026".to_owned()];
    let query = LexicalQuery::new("How many days of holiday are there in edition 2026?");
    let (bare, under) = (query.matched(text), query.matched(text).under([(0, headings.as_slice())]));
    assert!(covered(&under).all > covered(&bare).all);
    assert_eq!(under.best_sentence().map(|range| &text[range]), Some("An employee has 31 days of holiday."));
    let elsewhere = query.matched("Bicycles belong in the yard.").under([(0, headings.as_slice())]);
    assert!(covered(&elsewhere).all < f32::EPSILON, "a passage that has no word itself answers nothing");
}

#[test]
fn what_answers_a_question_that_goes_on_from_another_has_a_word_of_its_own() {
    let text = "The warranty of valves is five years. The warranty of pumps is two years. Pumps are blue.";
    let best = |question| {
        let query = LexicalQuery::going_on(question, "What is the warranty of valves?");
        query.matched(text).best_sentence().map(|range| &text[range])
    };
    assert_eq!(best("And of pumps?"), Some("The warranty of pumps is two years."));
    assert_eq!(best("Why?"), Some("The warranty of valves is five years."));
    assert_eq!(best("And of boilers?"), None);
    // Parts of another code are no words of its own.
    let codes = "| Error code | Meaning |\n|---|---|\n| E02 | The grinder is blocked |\n| E07 | The unit is missing |\n";
    let coded = |question| {
        let query = LexicalQuery::going_on(question, "What does error code E07 mean?");
        query.matched(codes).best_sentence().map(|range| &codes[range])
    };
    assert_eq!(coded("And E02?"), Some("| E02 | The grinder is blocked |"));
    assert_eq!(coded("And E99?"), None);
    let covered = |text| {
        let query = LexicalQuery::going_on("And of pumps?", "What is the warranty of valves?");
        super::covered(&query.matched(text))
    };
    assert!(covered("Pumps are blue.").own > 0.9 && covered("Pumps are blue.").all < 0.4);
    assert!(covered("The warranty of valves is five years.").own < 0.1);
}

/// What is quoted of a text.
fn quoted<'a>(query: &str, text: &'a str) -> Vec<&'a str> {
    let query = LexicalQuery::new(query);
    let ranges = query.matched(text).best_sentences();
    ranges.into_iter().map(|range| &text[range]).collect()
}

#[test]
fn what_only_stands_under_words_of_the_question_comes_behind_what_has_more_of_them() {
    let text = "# The X200 coffee machine\n\n| Property | Value |\n|---|---|\n| Power | 1450 W |\n| Weight | 9 kg |\n\n\
                ## Descaling\n\nDescale the machine every three months or after five hundred cups of coffee or tea.\n";
    assert_eq!(
        quoted("How do I descale the machine?", text),
        ["Descale the machine every three months or after five hundred cups of coffee or tea."]
    );
    assert_eq!(quoted("How heavy is the machine?", text), ["| Power | 1450 W |", "| Weight | 9 kg |"]);
}

#[test]
fn the_rows_that_are_asked_for_are_quoted_whole() {
    let rows = "Name: Anna Schmidt\nDepartment: Sales\nPhone: 4411\n\nName: Bob Stone\nDepartment: IT\nPhone: 4412\n\n\
                Name: Cara Diaz\nDepartment: Sales\nPhone: 4413\n";
    let [anna, bob, cara] = [
        "Name: Anna Schmidt\nDepartment: Sales\nPhone: 4411",
        "Name: Bob Stone\nDepartment: IT\nPhone: 4412",
        "Name: Cara Diaz\nDepartment: Sales\nPhone: 4413",
    ];
    assert_eq!(quoted("What is the phone of Bob Stone?", rows), [bob]);
    assert_eq!(quoted("Who is in sales?", rows), [anna, cara]);
    assert_eq!(quoted("phone", rows), [anna, bob, cara]);
    let table = "| Name | Department |\n|---|---|\n| Anna | Sales |\n| Bob | IT |\n| Cara | Sales |\n";
    assert_eq!(quoted("Who is in sales?", table), ["| Anna | Sales |", "| Cara | Sales |"]);
}

#[test]
fn a_list_is_quoted_with_what_introduces_it() {
    let papers =
        "Welcome to the house.\n\nThese documents must be brought:\n- passport\n- tax number\n\nBe on time.";
    assert_eq!(
        quoted("What documents must I bring?", papers),
        ["These documents must be brought:\n- passport\n- tax number"]
    );
    let hours = "Opening hours\n\nMonday: 9-17\nTuesday: closed\n\nPhone: 555\nE-mail: a@example.com\n";
    assert_eq!(
        quoted("What are the opening hours?", hours),
        ["Opening hours\n\nMonday: 9-17\nTuesday: closed"]
    );
    assert_eq!(quoted("Are you open on Tuesday?", hours), ["Tuesday: closed"]);
    assert_eq!(quoted("What is the phone?", hours), ["Phone: 555"]);
    assert_eq!(
        quoted("额定功率是多少？", "产品型号：A-200\n额定功率：1500瓦\n保修期：两年\n"),
        ["额定功率：1500瓦"]
    );
    let lease = "Article 2 - Loyer\nLe loyer mensuel est de 850 euros, charges non comprises. Il est payable le 5 de chaque mois.\n";
    assert_eq!(quoted("Quand le loyer est-il payable ?", lease), ["Il est payable le 5 de chaque mois."]);
    // A line that may be a title goes with the one right below it, since it may say something by itself.
    assert_eq!(
        quoted(
            "Who has jurisdiction?",
            "§ 5 Jurisdiction\nThe place of jurisdiction is the city of Hamburg."
        ),
        ["§ 5 Jurisdiction\nThe place of jurisdiction is the city of Hamburg."]
    );
}

#[test]
fn what_two_sentences_say_together_is_quoted_together() {
    let minutes = "1. Budget. The board approved the budget of two million. Luis Ortega voted against it.\n\
                   2. Hiring. The hiring freeze ends in March. It does not apply to apprentices.\n";
    assert_eq!(
        quoted("Does the hiring freeze apply to apprentices?", minutes),
        ["2. Hiring. The hiring freeze ends in March. It does not apply to apprentices."]
    );
    assert_eq!(quoted("When does the freeze end?", minutes), ["2. Hiring. The hiring freeze ends in March."]);
    let pumps = "The pump P-77 is not made any more. Its successor is P-78.\n\nThe successor of the chair was elected.";
    assert_eq!(
        quoted("What is the successor of P-77?", pumps),
        ["The pump P-77 is not made any more. Its successor is P-78."]
    );
}

#[test]
fn a_title_is_not_quoted_for_the_rows_that_stand_below_it() {
    let manual = "Error codes\n\nCode Meaning\tWhat to do\nE18 The water does not drain Clean the pump filter\n\
                  F21 The motor does not turn Call the service: 0800 555 0199\n";
    for question in ["What should I do about error F21?", "What does the motor error mean?", "error code F21"]
    {
        let quoted = quoted(question, manual);
        assert!(quoted[0].contains("F21 The motor does not turn"), "{question}: {quoted:?}");
    }
    // Without anything better it is the best there is.
    assert_eq!(quoted("Where are the error codes?", manual), ["Error codes"]);
}

#[test]
fn a_sentence_with_the_words_of_its_heading_goes_before_those_that_only_stand_under_it() {
    let handbook = "# Handbook\n\n## Annual leave\n\nEvery full-time employee has 28 days of annual leave per calendar year. \
                    Up to five days may be carried over until 31 March of the following year. \
                    Requests are approved by the line manager within three working days.\n";
    assert_eq!(
        quoted("How many days of annual leave do I get?", handbook),
        ["Every full-time employee has 28 days of annual leave per calendar year."]
    );
    assert_eq!(
        quoted("Who approves requests for annual leave?", handbook),
        ["Requests are approved by the line manager within three working days."]
    );
    // What stands right below a question answers it.
    let answers = "## How do I cancel my order?\n\nWrite to us within an hour. An order that has been shipped cannot be cancelled.\n";
    assert_eq!(quoted("How do I cancel my order?", answers), ["Write to us within an hour."]);
}
