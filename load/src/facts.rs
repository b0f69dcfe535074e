//! Documents that can be asked for: English text, tables and PDFs with facts in them, each of which follows from a seed and
//! the document's number. So nothing has to be remembered to know what an answer should say.

use std::fmt::Write as _;

use crate::{
    pdf,
    random::SeededRandom,
    words::{ADJECTIVES, FIRST_NAMES, LINKS, MONTHS, NOUNS, TIMES, VERBS},
};

/// Facts in every document.
pub(crate) const FACTS: u64 = 3;
/// Sizes of the texts in bytes, about: most documents are small.
const SIZES: [usize; 12] =
    [1_000, 1_000, 1_500, 2_000, 2_000, 3_000, 4_000, 5_000, 7_000, 10_000, 14_000, 20_000];

/// Something that one document says, and no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocumentFact {
    /// What to ask.
    pub(crate) question: String,
    /// What the document says.
    pub(crate) sentence: String,
    /// The words of it that answer the question.
    pub(crate) answer: String,
}

/// What a document is sent as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CorpusFormat {
    /// Text in the request.
    Text,
    /// A table in the request.
    Table,
    /// A file.
    Pdf,
}

impl CorpusFormat {
    /// That of the document of this number: of ten one is a table and one a PDF.
    pub(crate) fn of(number: u64) -> Self {
        match number % 10 {
            3 => Self::Table,
            7 => Self::Pdf,
            _ => Self::Text,
        }
    }
}

/// The documents of one run.
#[derive(Clone, Debug)]
pub(crate) struct DocumentLibrary {
    run: String,
    seed: u64,
}

impl DocumentLibrary {
    /// The documents of the run that is called `run`; their texts follow from `seed`.
    pub(crate) fn new(run: &str, seed: u64) -> Self {
        Self { run: run.to_owned(), seed }
    }

    /// What a document is called.
    pub(crate) fn name(&self, number: u64) -> String {
        format!("{} {number:06}", self.run)
    }

    /// The number of the document that is called so; none when it is not of this run.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        name.strip_prefix(&self.run)?.strip_prefix(' ')?.parse().ok()
    }

    /// One of a document's facts, `which` being below [`FACTS`].
    pub(crate) fn fact(&self, number: u64, which: u64) -> DocumentFact {
        let index = number * FACTS + which % FACTS;
        let mut random = SeededRandom::of(self.seed, index);
        let place = self.place(index);
        let (question, before, answer, after) = match index % 4 {
            0 => {
                let answer = format!("{} {}", random.pick(&FIRST_NAMES), surname(&mut random));
                let question = format!("Who is the keeper of the lighthouse of {place}?");
                (question, format!("The keeper of the lighthouse of {place} is "), answer, "")
            }
            1 => {
                let day = 1 + random.below(28);
                let answer = format!("{day} {} {}", random.pick(&MONTHS), 1750 + random.below(240));
                let question = format!("When was the bridge of {place} opened?");
                (question, format!("The bridge of {place} was opened on "), answer, "")
            }
            2 => {
                let answer = format!("{} metres", 11 + random.below(87));
                let question = format!("How tall is the mill of {place}?");
                (question, format!("The mill of {place} is "), answer, " tall")
            }
            _ => {
                let answer = format!("{} {}", random.pick(&["Saint", "Old", "Fair"]), surname(&mut random));
                let question = format!("Which ferry serves the harbour of {place}?");
                (question, format!("The harbour of {place} is served by the ferry "), answer, "")
            }
        };
        DocumentFact { question, sentence: format!("{before}{answer}{after}."), answer }
    }

    /// The text of a document of the kind [`CorpusFormat::Text`] or [`CorpusFormat::Table`].
    pub(crate) fn text(&self, number: u64) -> String {
        match CorpusFormat::of(number) {
            CorpusFormat::Table => self.table(number),
            CorpusFormat::Text | CorpusFormat::Pdf => self.paragraphs(number, self.size(number)).join("\n\n"),
        }
    }

    /// The bytes of a document of the kind [`CorpusFormat::Pdf`].
    pub(crate) fn pdf(&self, number: u64) -> Vec<u8> {
        pdf::of_paragraphs(&self.paragraphs(number, self.size(number)))
    }

    /// A text of about `size` bytes, whatever the document's kind.
    pub(crate) fn text_of_size(&self, number: u64, size: usize) -> String {
        self.paragraphs(number, size).join("\n\n")
    }

    /// A PDF of exactly so many full pages, each with text of its own.
    pub(crate) fn pdf_of_pages(&self, number: u64, pages: usize) -> Vec<u8> {
        let mut random = SeededRandom::of(self.seed ^ 0x9d, number);
        let pages: Vec<String> = (1..=pages)
            .map(|page| {
                let mut text = format!("{}, page {page}\n\n", self.name(number));
                for _ in 0..40 {
                    let mut line = sentence(&mut random);
                    line.truncate(line.floor_char_boundary(92));
                    text.push_str(&line);
                    text.push('\n');
                }
                text
            })
            .collect();
        pdf::of_pages(&pages)
    }

    fn size(&self, number: u64) -> usize {
        SIZES[SeededRandom::of(self.seed ^ 0x51, number).below(SIZES.len())]
    }

    /// Paragraphs of about `size` bytes with the document's facts among them.
    fn paragraphs(&self, number: u64, size: usize) -> Vec<String> {
        let mut random = SeededRandom::of(self.seed ^ 0x7e, number);
        let mut paragraphs = Vec::new();
        let mut written = 0;
        let mut told = 0;
        while written < size || told < FACTS {
            let mut paragraph = String::new();
            for place in 0..=2 + random.below(4) {
                if place > 0 {
                    paragraph.push(' ');
                }
                paragraph.push_str(&sentence(&mut random));
            }
            // Spread over the whole document: a fact at its end has to be found too.
            let due = written * usize::try_from(FACTS).unwrap_or(1) / size.max(1);
            if told < FACTS && (due >= usize::try_from(told).unwrap_or(0) || written >= size) {
                paragraph.push(' ');
                paragraph.push_str(&self.fact(number, told).sentence);
                told += 1;
            }
            written += paragraph.len() + 2;
            paragraphs.push(paragraph);
        }
        paragraphs
    }

    /// Rows with the document's facts in three of them.
    fn table(&self, number: u64) -> String {
        let mut random = SeededRandom::of(self.seed ^ 0x7a, number);
        let mut table = "entry,year,subject,remark\n".to_owned();
        let rows = self.size(number) / 90 + 6;
        let step = rows / usize::try_from(FACTS).unwrap_or(1);
        let mut told = 0;
        for row in 0..rows {
            let remark = if told < FACTS && row == step * usize::try_from(told).unwrap_or(0) + 1 {
                told += 1;
                self.fact(number, told - 1).sentence
            } else {
                sentence(&mut random)
            };
            // Writing to a string cannot fail.
            let _ = writeln!(
                table,
                "{},{},{},\"{remark}\"",
                row + 1,
                1750 + random.below(240),
                random.pick(&NOUNS)
            );
        }
        table
    }

    /// A name that no other fact of this seed has: the index, mixed, in syllables. The ending is one that no stemmer cuts off,
    /// so that different names stay different words.
    fn place(&self, index: u64) -> String {
        // An odd factor maps the numbers below 2^24 onto themselves, so no two of them meet.
        let mixed = index.wrapping_mul(0x9e_3779 | 1).wrapping_add(self.seed) % (1 << 24);
        let mut name = syllables(mixed, 4);
        name.push_str("holm");
        name
    }
}

/// A surname, not necessarily a rare one.
fn surname(random: &mut SeededRandom) -> String {
    let mut name = syllables(random.next() % (1 << 18), 3);
    name.push_str("nd");
    name
}

/// A number in base 64, a syllable a digit, with a capital letter.
fn syllables(mut number: u64, count: usize) -> String {
    const CONSONANTS: &[u8; 16] = b"bdfghjklmnprstvz";
    const VOWELS: &[u8; 4] = b"aeio";
    let mut name = String::new();
    for at in 0..count {
        let digit = usize::try_from(number % 64).unwrap_or(0);
        number /= 64;
        let consonant = char::from(CONSONANTS[digit / 4]);
        name.push(if at == 0 { consonant.to_ascii_uppercase() } else { consonant });
        name.push(char::from(VOWELS[digit % 4]));
    }
    name
}

/// A sentence that says nothing in particular.
fn sentence(random: &mut SeededRandom) -> String {
    let adjective = random.pick(&ADJECTIVES);
    let (subject, object) = (random.pick(&NOUNS), random.pick(&NOUNS));
    let (verb, time) = (random.pick(&VERBS), random.pick(&TIMES));
    match random.below(6) {
        0 => format!("The {adjective} {subject} {verb} the {object} {time}."),
        1 => format!("{}, the {subject} {verb} the {adjective} {object}.", random.pick(&LINKS)),
        2 => format!("The {object} was {verb} by the {adjective} {subject} {time}."),
        3 => {
            let count = 2 + random.below(90);
            format!("About {count} people saw how the {subject} {verb} the {adjective} {object}.")
        }
        4 => {
            let other = random.pick(&NOUNS);
            format!("The {subject} and the {object} were {verb} {time}, and the {other} was {adjective}.")
        }
        _ => format!("Nobody knew why the {adjective} {subject} had {verb} the {object} {time}."),
    }
}

/// A text with every run of white space as one blank: passages of a PDF break their lines elsewhere.
pub(crate) fn flattened(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn library() -> DocumentLibrary {
        DocumentLibrary::new("Load x", 7)
    }

    #[test]
    fn a_document_says_all_its_facts_whatever_it_is_sent_as() {
        for number in 0..200 {
            let text = match CorpusFormat::of(number) {
                CorpusFormat::Text | CorpusFormat::Table => library().text(number),
                CorpusFormat::Pdf => {
                    String::from_utf8(library().pdf(number)).unwrap().replace(") Tj T*\n(", " ")
                }
            };
            for which in 0..FACTS {
                let fact = library().fact(number, which);
                assert!(text.contains(&fact.sentence), "{number} does not say {:?}", fact.sentence);
                assert!(fact.sentence.contains(&fact.answer));
                assert!(!fact.question.contains(&fact.answer));
            }
        }
    }

    #[test]
    fn no_two_facts_are_about_the_same_place() {
        let mut seen = HashSet::new();
        for number in 0..20_000 {
            for which in 0..FACTS {
                let question = library().fact(number, which).question;
                assert!(seen.insert(question.clone()), "{question} is asked twice");
            }
        }
    }

    #[test]
    fn the_same_seed_writes_the_same_documents_and_another_one_others() {
        assert_eq!(library().text(5), library().text(5));
        assert_ne!(library().text(5), library().text(6));
        assert_ne!(library().text(5), DocumentLibrary::new("Load x", 8).text(5));
    }

    #[test]
    fn documents_have_one_to_twenty_kilobytes_and_several_kinds() {
        let mut kinds = HashSet::new();
        let mut sizes = Vec::new();
        for number in 0..300 {
            kinds.insert(format!("{:?}", CorpusFormat::of(number)));
            sizes.push(library().text(number).len());
        }
        assert_eq!(kinds.len(), 3);
        assert!(sizes.iter().all(|size| (700..24_000).contains(size)), "{sizes:?}");
        assert!(sizes.iter().any(|size| *size > 15_000));
    }

    #[test]
    fn a_document_is_known_by_its_name() {
        assert_eq!(library().number(&library().name(4_711)), Some(4_711));
        assert_eq!(library().number("Load y 000001"), None);
        assert_eq!(library().number("Annual report"), None);
    }

    #[test]
    fn a_measured_text_has_about_the_size_that_was_asked_for() {
        for number in 0..50 {
            let size = library().text_of_size(number, 1_000).len();
            assert!((900..1_900).contains(&size), "{size}");
        }
    }
}
