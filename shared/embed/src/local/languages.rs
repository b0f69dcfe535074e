//! Which languages a model was made for, told from its vocabulary.
//!
//! A vocabulary is learnt from the same texts as the model: the words that a language cannot do without are whole tokens in it
//! when the model has read that language, and in pieces otherwise. Names of models say less, and not of one's own.

use lectern_index::lexical::function_words;
use lectern_shared::model::language::Language;
use tokenizers::Tokenizer;

/// The part of the words or characters of a language that must be whole. Of words of four letters and more, English
/// vocabularies have less than a fifth of any other language, and vocabularies for a language nearly all of its own.
const NEEDED_WORDS: f64 = 0.75;
/// Vocabularies for other languages have up to half of the most frequent Chinese characters.
const NEEDED_CHARACTERS: f64 = 0.9;
/// The part of all languages that makes a vocabulary one for every language.
const MANY: f64 = 0.75;

/// Frequent words of the languages for which the index has no function words.
const WORDS: [(Language, &str); 6] = [
    (
        Language::Arabic,
        "في من على إلى عن مع هذا هذه ذلك التي الذي كان كانت هو هي ما لا لم لن أو ثم قد كل بعد قبل بين حتى عند غير إن أن",
    ),
    (
        Language::Greek,
        "και το να του της με για την που από είναι στο στην δεν τα οι των τον θα τη μια ένα σε ότι όπως αυτό αλλά κατά \
         μετά πολύ όταν μόνο",
    ),
    (
        Language::Hungarian,
        "hogy nem csak volt mint vagy lesz amely szerint után között azonban pedig vannak minden ezek kell még már \
         lehet ahol voltak ezért ilyen hanem azok mert",
    ),
    (
        Language::Romanian,
        "este care pentru din sunt mai sau prin după fost fiind acest această între când unde dacă poate toate către \
         până fără astfel aceste sale foarte decât despre",
    ),
    (
        Language::Tamil,
        "ஒரு இந்த என்று மற்றும் அந்த அவர் இது நான் என தான் என்ற உள்ள பல அது மேலும் இருந்து கொண்டு வேண்டும் போது என்ன \
         நாம் அவர்கள்",
    ),
    (
        Language::Turkish,
        "için olarak olan daha kadar sonra gibi değil veya çok ancak ise tarafından göre bütün bunu önce kendi şekilde \
         olduğu arasında hem şey nasıl",
    ),
];

/// The most frequent characters, or syllables, of the languages that are written without blanks or whose words are long.
const CHARACTERS: [(Language, &str); 3] = [
    (
        Language::Chinese,
        "的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能好都然没\
         日于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长知民样现分将外但身些与高意进把法此实回二理\
         美点月明其种声全工己话儿者向情部正名定女问力机给等几很业最间新什打便位因重被走电四第门相次东政海口使教西再平真听世气信北\
         少关并内加化由却代军产入先山五太水万市",
    ),
    (
        Language::Japanese,
        "のにはをたがでてとしれさあいうえおかきくけこすせそちつなまめもよらりるろわんっ\
         日一国会人年大十二本中長出三同時政事自行社見月分議後前民生連五発間対上部東者党地合市業内相方四定今回新場金員九入選立開手\
         米力学問高代明実円関決子動京全目表戦経通外最言氏現理調体化田当八六約主題下首意法不来作性的要用制治度務強気小七成期公野協\
         取都和統以機平総加山思家話世受区領多県続進正安設保改数記院女初北午指権心界支第産結百派点教報",
    ),
    (
        Language::Korean,
        "이다의가는에을를은한고지기로도하사인자리시대나서어아정그일수부해전들제장주보상원구성과만공국여라있으적조위동경년소\
         계용관회생신것면우연중문화게까간모세안물방학법당발분실때거며오금행산미더했된할였영통선내요말없마무내되았던와려저",
    ),
];

/// A set of languages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LanguageSet(u32);

impl LanguageSet {
    /// Those that a tokenizer has a vocabulary for. It neither pads nor cuts.
    pub(super) fn of(tokenizer: &Tokenizer) -> Self {
        let mut found = Self::default();
        let words = Language::ALL.into_iter().map(|language| (language, frequent_words(language)));
        for (language, words) in words.filter(|(_, words)| !words.is_empty()) {
            if share(&words, |word| is_whole(tokenizer, word)) >= NEEDED_WORDS {
                found.insert(language);
            }
        }
        for (language, characters) in CHARACTERS {
            let characters: Vec<_> = characters.split("").filter(|character| !character.is_empty()).collect();
            if share(&characters, |character| is_token(tokenizer, character)) >= NEEDED_CHARACTERS {
                found.insert(language);
            }
        }
        let named = Language::ALL.iter().filter(|language| **language != Language::Other);
        let known = |language: &&Language| found.contains(**language);
        if part(named.clone().filter(known).count(), named.count()) >= MANY {
            found.insert(Language::Other);
        }
        found
    }

    /// Whether it is among them.
    pub(super) const fn contains(self, language: Language) -> bool {
        self.0 & (1 << language.code()) != 0
    }

    const fn insert(&mut self, language: Language) {
        self.0 |= 1 << language.code();
    }
}

fn frequent_words(language: Language) -> Vec<&'static str> {
    if let Some((_, words)) = WORDS.iter().find(|(listed, _)| *listed == language) {
        return words.split_ascii_whitespace().collect();
    }
    // Short words are alike in too many languages, and pieces of words are short.
    let long = |word: &&str| word.chars().count() > 3 && word.chars().all(char::is_alphabetic);
    function_words(language).filter(long).collect()
}

fn share(all: &[&str], test: impl Fn(&str) -> bool) -> f64 {
    let passed = all.iter().filter(|one| test(one)).count();
    part(passed, all.len())
}

#[expect(clippy::cast_precision_loss, reason = "counts of words")]
fn part(some: usize, all: usize) -> f64 {
    some as f64 / all.max(1) as f64
}

/// Whether a word, after another one, is one token. That way the marks of word beginnings and what the tokenizer does to
/// letters are its own affair.
fn is_whole(tokenizer: &Tokenizer, word: &str) -> bool {
    let before = tokens(tokenizer, "a");
    let with = tokens(tokenizer, &format!("a {word}"));
    with.len() == before.len() + 1 && !with.last().is_some_and(|token| is_unknown(token))
}

/// Whether a character is a token, if need be after the mark of a beginning.
fn is_token(tokenizer: &Tokenizer, character: &str) -> bool {
    let tokens = tokens(tokenizer, character);
    let mut tokens = tokens.iter().filter(|token| !matches!(token.as_str(), "▁" | "Ġ"));
    tokens.next().is_some_and(|token| !is_unknown(token)) && tokens.next().is_none()
}

/// By their numbers: some tokenizers answer with the text where a token is missing.
fn tokens(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
    let Ok(encoding) = tokenizer.encode(text, false) else { return Vec::new() };
    encoding.get_ids().iter().map(|id| tokenizer.id_to_token(*id).unwrap_or_default()).collect()
}

/// What stands for anything that is not in the vocabulary.
fn is_unknown(token: &str) -> bool {
    matches!(token, "[UNK]" | "<unk>" | "[unk]" | "<UNK>")
}

#[cfg(test)]
mod tests {
    use lectern_index::lexical::function_words;
    use lectern_shared::model::language::Language;
    use tokenizers::Tokenizer;

    use super::{CHARACTERS, LanguageSet, WORDS};
    use crate::local::testing::{tokenizer_json, unigram_json};

    fn known(json: &serde_json::Value) -> Vec<Language> {
        let mut tokenizer = Tokenizer::from_bytes(json.to_string()).expect("a tokenizer");
        tokenizer.with_padding(None).with_truncation(None).expect("a tokenizer");
        let languages = LanguageSet::of(&tokenizer);
        Language::ALL.into_iter().filter(|language| languages.contains(*language)).collect()
    }

    fn words(language: Language) -> Vec<String> {
        let listed =
            WORDS.iter().filter(|(listed, _)| *listed == language).flat_map(|(_, words)| words.split(' '));
        listed.chain(function_words(language)).map(str::to_owned).collect()
    }

    fn characters(language: Language) -> Vec<String> {
        let (_, all) = CHARACTERS.iter().find(|(listed, _)| *listed == language).expect("listed");
        all.chars().map(String::from).collect()
    }

    fn everything() -> Vec<String> {
        let words = Language::ALL.into_iter().flat_map(words);
        words.chain(CHARACTERS.iter().flat_map(|(language, _)| characters(*language))).collect()
    }

    #[test]
    fn a_vocabulary_with_the_words_of_a_language_is_one_for_that_language() {
        for language in
            [Language::English, Language::German, Language::Russian, Language::Turkish, Language::Tamil]
        {
            assert_eq!(known(&tokenizer_json(&words(language), false)), [language]);
        }
    }

    #[test]
    fn letters_alone_are_no_language() {
        assert_eq!(known(&tokenizer_json(&[], false)), []);
    }

    #[test]
    fn accents_may_be_stripped_by_the_tokenizer() {
        let plain: Vec<_> = words(Language::German)
            .iter()
            .map(|word| word.replace('ü', "u").replace('ö', "o").replace('ä', "a"))
            .collect();
        assert_eq!(known(&tokenizer_json(&plain, true)), [Language::German]);
    }

    #[test]
    fn nearly_all_characters_are_needed_for_chinese_japanese_and_korean() {
        for language in [Language::Chinese, Language::Japanese, Language::Korean] {
            let all = characters(language);
            assert_eq!(known(&tokenizer_json(&all, false)), [language]);
            assert_eq!(known(&tokenizer_json(&all[..all.len() * 3 / 4], false)), []);
        }
    }

    #[test]
    fn a_vocabulary_of_every_language_knows_the_others_too() {
        assert_eq!(known(&tokenizer_json(&everything(), false)), Language::ALL);
    }

    #[test]
    fn words_that_begin_with_a_mark_are_whole() {
        assert_eq!(known(&unigram_json(&everything())), Language::ALL);
        assert_eq!(known(&unigram_json(&words(Language::French))), [Language::French]);
    }
}
