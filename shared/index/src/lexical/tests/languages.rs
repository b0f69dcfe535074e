use super::{super::question_language, *};

#[test]
fn languages_are_told_from_text_and_from_function_words() {
    for (text, language) in [
        (
            "The quick brown fox jumps over the lazy dog, and then it was gone for ever from this place.",
            Language::English,
        ),
        (
            "Der schnelle Fuchs springt über den faulen Hund und läuft danach wieder in den dunklen Wald zurück.",
            Language::German,
        ),
        ("Wo ist der Hund?", Language::German),
        ("Où est le chien ?", Language::French),
        ("Install guide", Language::English),
        ("これは日本語の文章です。", Language::Japanese),
        ("这是一个中文句子。", Language::Chinese),
        ("이것은 한국어 문장입니다.", Language::Korean),
        ("Быстрая лиса прыгает через ленивую собаку и убегает в лес.", Language::Russian),
        ("Internet2是什么", Language::Chinese),
        ("Sky Movies和Sky Box office也包含什么可选音轨？", Language::Chinese),
        ("FIFAとは何", Language::Japanese),
        ("What does 北京 mean?", Language::English),
        ("Who is 毛泽东?", Language::English),
        ("Ποιος ίδρυσε την McKinsey & Company;", Language::Greek),
        ("", Language::Other),
        ("12345 !!", Language::Other),
    ] {
        assert_eq!(detect_language(text), language, "{text}");
    }
    for language in Language::ALL {
        assert_eq!(Language::from_code(u32::from(language.code())), Some(language));
    }
}

#[test]
fn a_foreign_word_or_two_make_no_other_language_of_an_english_text() {
    for text in [
        "invoice due date",
        "cost per unit",
        "tax due",
        "tax due per unit",
        "overtime pay per hour",
        "garage door opener",
        "men shoes",
        "dog food",
        "font size",
        "hay fever",
        "I'm in time",
        "vitamin C, D",
        "comment on the font",
        "die casting machine per unit",
        "Rio de Janeiro",
        "Cost per unit\nDue\nDesk 100\nLamp 20",
        "amount: 300, due: 2026-05-01\namount: 12, due: 2026-05-02\namount: 99, due: 2026-06-11",
        "Garage door replaced",
    ] {
        assert_eq!(detect_language(text), Language::English, "{text}");
        assert_eq!(question_language(text, &[Language::English]), Language::English, "{text}");
    }
}

#[test]
fn a_short_question_is_told_by_its_function_words() {
    for (text, language) in [
        ("Wann kommt die Müllabfuhr?", Language::German),
        ("Wie hoch ist die Miete?", Language::German),
        ("Welche Auszeichnung erhielt Marlee Matlin?", Language::German),
        ("Kündigungsfrist für Mietverträge in Berlin", Language::German),
        ("Quel est le prix ?", Language::French),
        ("Comment réinitialiser mon mot de passe ?", Language::French),
        ("¿Cuánto cuesta?", Language::Spanish),
        ("¿Dónde está el banco?", Language::Spanish),
        ("Quanto costa il biglietto?", Language::Italian),
        ("Onde fica o banco?", Language::Portuguese),
        ("Waar is het station?", Language::Dutch),
        ("När kommer bussen?", Language::Swedish),
        ("Hvad koster det?", Language::Danish),
        ("Hva koster det?", Language::Norwegian),
        ("Kuinka paljon se maksaa?", Language::Finnish),
    ] {
        assert_eq!(question_language(text, &[Language::English]), language, "{text}");
    }
}

#[test]
fn a_question_that_does_not_tell_its_language_is_in_that_of_most_texts() {
    let german = [Language::German, Language::English];
    assert_eq!(question_language("Kündigungsfrist Probezeit", &german), Language::German);
    assert_eq!(question_language("Kubernetes Cluster", &german), Language::German);
    assert_eq!(question_language("die Katze", &german), Language::German);
    assert_eq!(question_language("who is the owner of the house", &german), Language::English);
    assert_eq!(question_language("RFC-9110", &[Language::English]), Language::English);
    assert_eq!(question_language("9110", &german), Language::German);
    assert_eq!(question_language("Kubernetes", &[Language::Chinese]), Language::English);
    assert_eq!(question_language("东京在哪里", &german), Language::Chinese);
    assert_eq!(question_language("Kubernetes", &[]), Language::English);
    assert_eq!(question_language("", &[]), Language::Other);
}
