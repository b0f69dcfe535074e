//! Which language a text is certainly in, as pages name it (BCP 47). Whoever reads it aloud, hyphenates it or chooses the shapes of its
//! characters is better told nothing than something wrong.

use std::collections::HashSet;

use lectern_shared::model::language::Language;
use whatlang::{Info, Lang, Script};

use super::{
    language::{DETECTOR, language_of},
    stop_words::StopLanguages,
    tokenize::{TokenizeMode, tokenize},
};

/// The most bytes that are looked at: pages show many texts.
const SAMPLE_BYTES: usize = 4 * 1024;
/// Letters from which trigrams are trusted without function words, in the script of many languages.
const TRUSTED_LATIN: usize = 80;
/// The same in scripts of a few languages, each with letters of its own.
const TRUSTED_OTHERS: usize = 40;
/// Characters from which the old forms among them tell Chinese: Japanese names have some.
const TRUSTED_HAN: usize = 60;

/// Characters of simplified Chinese that neither Japanese, Korean nor traditional Chinese has.
const SIMPLIFIED: &str = "这们时说对过还样问题实现发应为员业东车见长门马语请让给经线统络设计认识订动产劳务规则财资费货质贷吗妈谁读\
     买卖钱银铁钢纸级红绿组织结图书场处术师报单战传";
/// Words of Chinese that Japanese does not have.
const CHINESE: &str = "這們麼沒嗎您她你啦哪吧呢";
/// Characters of traditional Chinese that neither simplified Chinese has nor Japanese, but for names.
const OLD_FORMS: &str = "國學會來對點當從關實發應與體區數處總經將轉廣單傳觀權變這們麼沒嗎";

/// The languages that have a list of function words.
const LISTED: [(Language, &str); 11] = [
    (Language::English, "en"),
    (Language::German, "de"),
    (Language::French, "fr"),
    (Language::Spanish, "es"),
    (Language::Italian, "it"),
    (Language::Portuguese, "pt"),
    (Language::Dutch, "nl"),
    (Language::Swedish, "sv"),
    (Language::Danish, "da"),
    (Language::Norwegian, "no"),
    (Language::Finnish, "fi"),
];

/// Other languages in Latin letters, which have accents or letters of their own. Those without are told too often from lists of names.
const ACCENTED: [(Lang, &str); 12] = [
    (Lang::Cat, "ca"),
    (Lang::Ces, "cs"),
    (Lang::Est, "et"),
    (Lang::Hun, "hu"),
    (Lang::Lav, "lv"),
    (Lang::Lit, "lt"),
    (Lang::Pol, "pl"),
    (Lang::Ron, "ro"),
    (Lang::Slk, "sk"),
    (Lang::Slv, "sl"),
    (Lang::Tur, "tr"),
    (Lang::Vie, "vi"),
];

/// Languages that share their script with a few others.
const SHARING: [(Lang, &str); 14] = [
    (Lang::Ara, "ar"),
    (Lang::Bel, "be"),
    (Lang::Bul, "bg"),
    (Lang::Heb, "he"),
    (Lang::Hin, "hi"),
    (Lang::Mar, "mr"),
    (Lang::Mkd, "mk"),
    (Lang::Nep, "ne"),
    (Lang::Pes, "fa"),
    (Lang::Rus, "ru"),
    (Lang::Srp, "sr"),
    (Lang::Ukr, "uk"),
    (Lang::Urd, "ur"),
    (Lang::Yid, "yi"),
];

/// The tag of the language that a text is in; empty where that is not certain, as of most texts of a few words.
pub fn language_tag(text: &str) -> &'static str {
    let sample = &text[..text.floor_char_boundary(SAMPLE_BYTES)];
    let Some(info) = DETECTOR.detect(sample) else { return "" };
    let letters = LetterCounts::of(sample);
    match info.script() {
        Script::Latin if letters.latin * 4 >= letters.all * 3 => latin_tag(sample, &info, letters),
        _ if letters.latin * 2 > letters.all => "",
        Script::Mandarin | Script::Hiragana | Script::Katakana => han_tag(sample),
        Script::Arabic | Script::Cyrillic | Script::Devanagari | Script::Hebrew => {
            let is_sure = info.is_reliable() && letters.all >= TRUSTED_OTHERS;
            tag_in(&SHARING, info.lang()).filter(|_| is_sure).unwrap_or_default()
        }
        script => own_script_tag(script),
    }
}

/// The letters of a text.
#[derive(Clone, Copy, Debug, Default)]
struct LetterCounts {
    all: usize,
    latin: usize,
    /// Those of the Latin ones that English does not have.
    accented: usize,
}

impl LetterCounts {
    fn of(text: &str) -> Self {
        let mut counts = Self::default();
        for c in text.chars().filter(|c| c.is_alphabetic()) {
            let is_accented = matches!(c, '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}');
            counts.all += 1;
            counts.latin += usize::from(is_accented || c.is_ascii());
            counts.accented += usize::from(is_accented);
        }
        counts
    }
}

fn tag_in(tags: &[(Lang, &'static str)], lang: Lang) -> Option<&'static str> {
    tags.iter().find(|(listed, _)| *listed == lang).map(|(_, tag)| *tag)
}

/// The language of a script that hardly any other is written in.
const fn own_script_tag(script: Script) -> &'static str {
    match script {
        Script::Armenian => "hy",
        Script::Bengali => "bn",
        Script::Georgian => "ka",
        Script::Greek => "el",
        Script::Gujarati => "gu",
        Script::Gurmukhi => "pa",
        Script::Hangul => "ko",
        Script::Kannada => "kn",
        Script::Khmer => "km",
        Script::Malayalam => "ml",
        Script::Myanmar => "my",
        Script::Oriya => "or",
        Script::Sinhala => "si",
        Script::Tamil => "ta",
        Script::Telugu => "te",
        Script::Thai => "th",
        _ => "",
    }
}

/// The language of a text in Latin letters, by its function words, or by trigrams where there is no list of them.
fn latin_tag(text: &str, info: &Info, letters: LetterCounts) -> &'static str {
    let words = ListedWords::of(text);
    let guess = info.is_reliable().then(|| info.lang());
    if let Some((language, tag)) = words.certain() {
        // Languages without a list share words with those that have one.
        let is_denied = guess.is_some_and(|guess| language_of(guess) != language);
        return if is_denied { "" } else { tag };
    }
    let is_accented = letters.latin >= TRUSTED_LATIN && letters.accented * 50 >= letters.latin;
    guess
        .filter(|_| is_accented && words.are_few())
        .and_then(|guess| tag_in(&ACCENTED, guess))
        .unwrap_or_default()
}

/// The words of a text that are function words of some language.
#[derive(Debug, Default)]
struct ListedWords {
    /// How many words the text has.
    all: usize,
    listed: Vec<(String, StopLanguages)>,
}

impl ListedWords {
    fn of(text: &str) -> Self {
        let mut words = Self::default();
        tokenize(text, TokenizeMode::Query, &mut |token| {
            if !token.kind.is_counted() || !token.text.starts_with(char::is_alphabetic) {
                return;
            }
            words.all += 1;
            let languages = StopLanguages::of(token.text);
            if languages != StopLanguages::default() {
                words.listed.push((token.text.to_owned(), languages));
            }
        });
        words
    }

    /// Whether a text in a listed language would have more of them.
    const fn are_few(&self) -> bool {
        self.listed.len() * 3 < self.all
    }

    /// The one language that words of its own tell. They and those that it shares with others are a quarter of the text, and several.
    fn certain(&self) -> Option<(Language, &'static str)> {
        let own =
            |language: Language| self.listed.iter().filter(|(_, listed)| listed.is_only(language)).count();
        let counted = LISTED.iter().map(|listed| (own(listed.0), listed));
        let (most, (language, tag)) = counted.max_by_key(|(count, _)| *count)?;
        let others: usize =
            LISTED.iter().filter(|(other, _)| other != language).map(|(other, _)| own(*other)).sum();
        let shared = self.listed.iter().filter(|(_, listed)| listed.contains(*language));
        let distinct: HashSet<&str> = shared.clone().map(|(word, _)| word.as_str()).collect();
        // A quotation of a few words stands in many longer texts.
        let is_certain =
            most > 0 && others * 5 <= most && distinct.len() > 1 && shared.count() * 4 >= self.all;
        is_certain.then_some((*language, *tag))
    }
}

/// The language of a text in Chinese characters or kana.
fn han_tag(text: &str) -> &'static str {
    let (mut han, mut kana, mut simplified, mut chinese, mut old) =
        (0_usize, 0_usize, 0_usize, 0_usize, 0_usize);
    for c in text.chars() {
        match c {
            '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' => kana += 1,
            '\u{3400}'..='\u{9fff}' => {
                han += 1;
                simplified += usize::from(SIMPLIFIED.contains(c));
                chinese += usize::from(CHINESE.contains(c));
                old += usize::from(OLD_FORMS.contains(c));
            }
            _ => {}
        }
    }
    let is_chinese = kana * 20 < han;
    match (simplified, chinese) {
        (0, 0) if kana > 1 && kana * 10 >= han => "ja",
        _ if kana > 1 && kana * 4 >= han => "ja",
        (1.., _) if is_chinese && old == 0 => "zh-Hans",
        (0, 2..) if is_chinese && old > 0 => "zh-Hant",
        (0, _) if kana == 0 && han >= TRUSTED_HAN && old * 20 >= han => "zh-Hant",
        (1.., _) | (_, 2..) if is_chinese => "zh",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_of_a_text_is_named_where_it_is_certain() {
        for (text, tag) in [
            (
                "The quick brown fox jumps over the lazy dog, and then it was gone for ever from this place.",
                "en",
            ),
            (
                "Der schnelle Fuchs springt über den faulen Hund und läuft danach wieder in den dunklen Wald zurück.",
                "de",
            ),
            ("Wo ist der Hund?", "de"),
            ("Où est le chien ?", "fr"),
            ("これは日本語の文章です。", "ja"),
            ("休暇は一年に三十日あります。", "ja"),
            ("这是一个中文句子，我们对这个问题说过。", "zh-Hans"),
            ("這是我們的問題，你沒說過。", "zh-Hant"),
            // Written so in both.
            ("你好，你在哪里呢？", "zh"),
            ("이것은 한국어 문장입니다.", "ko"),
            ("Η άδεια είναι τριάντα ημέρες.", "el"),
            ("ลาพักร้อนได้สามสิบวัน", "th"),
        ] {
            assert_eq!(language_tag(text), tag, "{text}");
        }
        let russian = "Быстрая лиса прыгает через ленивую собаку и убегает в лес, потому что там её ждут лисята, \
                       которые ещё ничего не ели сегодня и очень хотят есть.";
        assert_eq!(language_tag(russian), "ru");
    }

    #[test]
    fn nothing_is_guessed_of_a_text_that_does_not_tell() {
        for text in [
            "",
            "12345 !!",
            "Rio de Janeiro",
            "invoice due date",
            "tax due per unit",
            "Die Hard",
            "Haus und Hof GmbH, Sand und Kies KG",
            "E-04 E-05 A7 B12",
            // Japanese as well as Chinese.
            "東京都公立大学法人就業規則",
            "國學院大學",
            "北京",
            // Russian as well as Bulgarian.
            "Привет",
            // Two languages.
            "What is the answer? Wie ist die Antwort und was sagt ihr?",
            "FIFAとは何",
        ] {
            assert_eq!(language_tag(text), "", "{text}");
        }
    }
}
