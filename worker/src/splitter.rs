//! Cutting text into passages.

use std::ops::Range;

use lectern_shared::model::document::{Splitter, SplitterType};
use text_splitter::{ChunkCharIndex, ChunkConfig, ChunkSizer, MarkdownSplitter, TextSplitter};

use crate::ingest::Sizing;

/// Tokens of a passage unless the document says otherwise.
const DEFAULT_TOKENS: usize = 400;
/// Tokens that a passage repeats of the one before it, unless the document says otherwise.
const DEFAULT_OVERLAP: usize = 60;

/// What a text is made of, which decides how it is cut when its document does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Sentences and paragraphs.
    Prose,
    /// Markdown: passages begin at headings where they can.
    Markdown,
    /// Rows, each of which says by itself what it is: nothing is gained by repeating one.
    Rows,
}

/// A passage of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Where it stands, in bytes.
    pub(crate) range: Range<usize>,
    /// Where it stands, in code points.
    pub(crate) char_range: Range<u64>,
}

/// A line of more bytes has too few boundaries, or none at all.
const LONG_LINE: usize = 16 << 10;
/// Bytes that are at least one token, blanks or not: a passage of megabytes of blanks is none either.
const BYTES_PER_TOKEN: usize = 64;
/// Bytes that are at least one character.
const BYTES_PER_CHARACTER: usize = 4;

/// Counts tokens. What is larger than a passage by its bytes alone is not looked through: a text without any boundary would
/// be, as a whole, for each of its passages.
struct Tokens<'s> {
    capacity: usize,
    sizing: &'s Sizing,
}

impl ChunkSizer for Tokens<'_> {
    fn size(&self, chunk: &str) -> usize {
        let least = chunk.len() / BYTES_PER_TOKEN;
        if least > self.capacity { least } else { self.sizing.count(chunk).max(least) }
    }
}

/// Counts characters, like [`Tokens`]: a passage of the `most` of them is as large as `capacity`. What has more tokens than the
/// model takes in is too large as well; `capacity` is that number of tokens then. It must not be larger than `most`, because
/// `text-splitter` takes for granted that nothing is larger than the number of its bytes.
struct Letters<'s> {
    most: usize,
    capacity: usize,
    tokens: Option<&'s Sizing>,
}

impl<'s> Letters<'s> {
    fn new(letters: usize, sizing: &'s Sizing) -> Self {
        match sizing.most().filter(|most| *most < letters) {
            Some(tokens) => Self { most: letters, capacity: tokens, tokens: Some(sizing) },
            // So few characters never have too many tokens.
            None => Self { most: letters, capacity: letters, tokens: None },
        }
    }

    /// How large that many characters are.
    fn of(&self, characters: usize) -> usize {
        characters.saturating_mul(self.capacity).div_ceil(self.most)
    }
}

impl ChunkSizer for Letters<'_> {
    fn size(&self, chunk: &str) -> usize {
        let least = self.of(chunk.len() / BYTES_PER_CHARACTER);
        if least > self.capacity {
            return least;
        }
        let letters = self.of(chunk.chars().count());
        match self.tokens {
            Some(sizing) if letters <= self.capacity => letters.max(sizing.count(chunk)),
            _ => letters,
        }
    }
}

/// Cuts `text` and hands out the passages in order, as they are found; the same text and splitter always give the same
/// ones. Each is cut at the largest semantic unit that fits, and trimmed of white space; none is larger than the embedding
/// model takes in.
///
/// # Errors
/// The first error of `each`, which ends the cutting.
pub(crate) fn split<E>(
    text: &str,
    shape: Shape,
    splitter: Option<&Splitter>,
    sizing: &Sizing,
    each: impl FnMut(Piece) -> Result<(), E>,
) -> Result<(), E> {
    let (kind, size, overlap) = match splitter {
        None if shape == Shape::Rows => (SplitterType::Token, DEFAULT_TOKENS, 0),
        None => (SplitterType::Token, DEFAULT_TOKENS, DEFAULT_OVERLAP),
        Some(splitter) => (splitter.r#type, splitter.chunk_size as usize, splitter.chunk_overlap as usize),
    };
    let bounded = match kind {
        SplitterType::Token => sizing.most().map_or(size, |most| size.min(most)),
        SplitterType::Recursive | SplitterType::Character | SplitterType::Markdown => size,
    };
    let capacity = bounded.max(1);
    let overlap = overlap.min(capacity - 1);
    let letters = Letters::new(capacity, sizing);
    let scaled = (letters.capacity, overlap * letters.capacity / capacity);
    let along_structure = kind == SplitterType::Markdown || shape == Shape::Markdown;
    match kind {
        SplitterType::Token if along_structure => {
            let splitter = MarkdownSplitter::new(config(capacity, overlap, Tokens { capacity, sizing }));
            by_stretches(text, capacity, |text| splitter.chunk_char_indices(text), each)
        }
        SplitterType::Token => {
            let splitter = TextSplitter::new(config(capacity, overlap, Tokens { capacity, sizing }));
            by_stretches(text, capacity, |text| splitter.chunk_char_indices(text), each)
        }
        SplitterType::Recursive | SplitterType::Character => {
            let splitter = TextSplitter::new(config(scaled.0, scaled.1, letters));
            by_stretches(text, capacity, |text| splitter.chunk_char_indices(text), each)
        }
        SplitterType::Markdown => {
            let splitter = MarkdownSplitter::new(config(scaled.0, scaled.1, letters));
            by_stretches(text, capacity, |text| splitter.chunk_char_indices(text), each)
        }
    }
}

/// Cuts each stretch of a text by itself.
fn by_stretches<'t, I, E>(
    text: &'t str,
    capacity: usize,
    cut: impl Fn(&'t str) -> I,
    mut each: impl FnMut(Piece) -> Result<(), E>,
) -> Result<(), E>
where
    I: Iterator<Item = ChunkCharIndex<'t>>,
{
    let mut characters = 0;
    for stretch in stretches(text, LONG_LINE.max(capacity.saturating_mul(8))) {
        let start = stretch.start;
        let stretch = text.get(stretch).unwrap_or_default();
        for chunk in cut(stretch) {
            each(piece(&chunk, start, characters))?;
        }
        characters += stretch.chars().count() as u64;
    }
    Ok(())
}

/// The text in stretches that are cut by themselves: what lies between lines longer than `longest` bytes, and pieces of these
/// lines. `text-splitter` takes time by the square of what has no boundary in it, such as a megabyte of minified JSON.
fn stretches(text: &str, longest: usize) -> Vec<Range<usize>> {
    let mut stretches = Vec::new();
    let (mut begun, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        if line.len() > longest {
            if begun < at {
                stretches.push(begun..at);
            }
            while end - at > longest {
                let rest = text.get(at..end).unwrap_or_default();
                let fits = rest.get(..rest.floor_char_boundary(longest)).unwrap_or(rest);
                // Where a sentence ends, or else a word, as long as that leaves something.
                let sentence = fits.rfind(". ").map(|dot| dot + 2);
                let word = || fits.rfind(char::is_whitespace).map(|blank| blank + 1);
                let length = sentence.or_else(word).filter(|length| text.is_char_boundary(at + length));
                let length = length.filter(|length| *length > longest / 2).unwrap_or(fits.len()).max(1);
                stretches.push(at..at + length);
                at += length;
            }
            begun = at;
        }
        at = end;
    }
    if begun < text.len() {
        stretches.push(begun..text.len());
    }
    stretches
}

fn config<S: ChunkSizer>(capacity: usize, overlap: usize, sizer: S) -> ChunkConfig<S> {
    let config = ChunkConfig::new(capacity).with_overlap(overlap);
    // Refused only for an overlap that is not smaller than the capacity.
    config.unwrap_or_else(|_| ChunkConfig::new(capacity)).with_sizer(sizer)
}

/// A passage of a stretch that begins at so many bytes and characters.
fn piece(chunk: &ChunkCharIndex<'_>, bytes: usize, characters: u64) -> Piece {
    let start = characters + chunk.char_offset as u64;
    let from = bytes + chunk.byte_offset;
    Piece {
        range: from..from + chunk.chunk.len(),
        char_range: start..start + chunk.chunk.chars().count() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn splitter(r#type: SplitterType, chunk_size: u32, chunk_overlap: u32) -> Splitter {
        Splitter { r#type, chunk_size, chunk_overlap, given: None }
    }

    fn all(text: &str, splitter: Option<&Splitter>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        split(text, Shape::Prose, splitter, &Sizing::default(), |piece| {
            pieces.push(piece);
            Ok::<_, std::convert::Infallible>(())
        })
        .unwrap();
        pieces
    }

    #[test]
    fn every_passage_is_exactly_the_slice_that_its_place_names() {
        let text = "Grün ist die Heide. ".repeat(200) + "\n\n" + &"東京は日本の首都です。".repeat(200);
        let characters: Vec<char> = text.chars().collect();
        for splitter in [None, Some(splitter(SplitterType::Recursive, 120, 30))] {
            let pieces = all(&text, splitter.as_ref());
            assert!(pieces.len() > 3);
            for piece in &pieces {
                let at = |offset: u64| usize::try_from(offset).unwrap();
                let range = at(piece.char_range.start)..at(piece.char_range.end);
                assert_eq!(text[piece.range.clone()], characters[range].iter().collect::<String>());
            }
        }
    }

    #[test]
    fn nothing_is_lost_between_passages_and_none_is_too_large() {
        let sentences: Vec<_> = (0..3_000).map(|n| format!("Sentence number {n} says something. ")).collect();
        let text = sentences.concat();
        let pieces = all(&text, None);
        let mut covered = 0;
        for piece in &pieces {
            assert!(piece.range.start <= covered || text[covered..piece.range.start].trim().is_empty());
            assert!(Sizing::default().count(&text[piece.range.clone()]) <= DEFAULT_TOKENS);
            covered = piece.range.end;
        }
        assert!(text[covered..].trim().is_empty());
        assert!(pieces.windows(2).any(|pair| pair[1].range.start < pair[0].range.end), "passages overlap");
    }

    #[test]
    fn a_line_without_end_is_cut_in_stretches_of_which_nothing_is_lost() {
        let json = format!("{{{}}}", r#""käy":[1,"#.repeat(20_000));
        let text = format!("First line.\n{json}\nLast line. {}", "Words of it. ".repeat(5_000));
        let stretches = stretches(&text, LONG_LINE);
        assert!(stretches.len() > 10);
        assert!(stretches.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!((stretches[0].start, stretches.last().unwrap().end), (0, text.len()));
        let characters: Vec<char> = text.chars().collect();
        let mut covered = 0;
        for piece in all(&text, None) {
            assert!(text.get(covered..piece.range.start).is_none_or(|gap| gap.trim().is_empty()));
            covered = piece.range.end;
            let at = |offset: u64| usize::try_from(offset).unwrap();
            let slice = &characters[at(piece.char_range.start)..at(piece.char_range.end)];
            assert_eq!(text[piece.range], slice.iter().collect::<String>());
        }
        assert!(text[covered..].trim().is_empty());
    }

    #[test]
    fn rows_are_packed_whole_and_not_repeated() {
        let rows: Vec<_> = (0..200).map(|n| format!("name: person {n}\ncity: some town {n}")).collect();
        let text = rows.join("\n\n");
        let mut covered = 0;
        split(&text, Shape::Rows, None, &Sizing::default(), |piece| {
            assert!(text[piece.range.clone()].starts_with("name: person"), "a row is torn");
            assert!(piece.range.start >= covered, "a row is repeated");
            covered = piece.range.end;
            Ok::<_, std::convert::Infallible>(())
        })
        .unwrap();
        assert_eq!(covered, text.len());
    }

    #[test]
    fn passages_of_markdown_begin_at_its_headings() {
        let section = |n: usize| format!("## Section {n}\n\n{}\n", "Words and more words. ".repeat(40));
        let text = (0..6).map(section).collect::<String>();
        let mut at_heading = 0;
        split(&text, Shape::Markdown, None, &Sizing::default(), |piece| {
            at_heading += usize::from(text[piece.range].starts_with("## Section"));
            Ok::<_, std::convert::Infallible>(())
        })
        .unwrap();
        assert_eq!(at_heading, 6);
    }

    #[test]
    fn no_passage_has_more_tokens_than_the_model_takes_in_however_it_is_measured() {
        let sentences: Vec<_> = (0..500).map(|n| format!("Sentence number {n} says something. ")).collect();
        let text = sentences.concat();
        let sizing = Sizing::limited(254);
        for (kind, size) in [
            (SplitterType::Token, 5_000),
            (SplitterType::Character, 9_000),
            (SplitterType::Recursive, 300),
            (SplitterType::Markdown, 1_000_000),
        ] {
            let mut covered = 0;
            split(&text, Shape::Prose, Some(&splitter(kind, size, 0)), &sizing, |piece| {
                let passage = &text[piece.range.clone()];
                assert!(sizing.count(passage) <= 220, "{kind}: {} tokens", sizing.count(passage));
                assert!(passage.chars().count() <= size as usize, "{kind}");
                assert!(text[covered..piece.range.start].trim().is_empty(), "{kind}: something is left out");
                covered = piece.range.end;
                Ok::<_, std::convert::Infallible>(())
            })
            .unwrap();
            assert!(text[covered..].trim().is_empty(), "{kind}");
        }
    }

    #[test]
    fn a_text_without_any_boundary_is_cut_all_the_same() {
        let text = "x".repeat(10_000);
        let pieces = all(&text, Some(&splitter(SplitterType::Character, 1_000, 0)));
        assert_eq!(pieces.len(), 10);
    }
}
