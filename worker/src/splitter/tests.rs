//! Passages of texts of every kind, and what cutting the worst of them takes.

use super::*;

fn splitter(r#type: SplitterType, chunk_size: u32, chunk_overlap: u32) -> SplitterConfig {
    SplitterConfig { r#type, chunk_size, chunk_overlap, given: None }
}

fn all(text: &str, splitter: Option<&SplitterConfig>) -> Vec<PassageRange> {
    let mut pieces = Vec::new();
    split(text, TextShape::Prose, splitter, &TokenCounter::default(), &|_| Ok(()), |piece| {
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
fn a_passage_that_begins_before_the_one_that_it_overlaps_is_where_its_place_says() {
    let mut goes_back = 0;
    for [first, second, third] in [["x", "y", "z"], ["ä", "東", "🙂"]] {
        let line = |indent, letter: &str, count| format!("{}{}\n", " ".repeat(indent), letter.repeat(count));
        let text = line(4, first, 30) + &line(8, second, 16) + &line(4, third, 15);
        let characters: Vec<char> = text.chars().collect();
        let pieces = all(&text, Some(&splitter(SplitterType::Markdown, 40, 20)));
        goes_back += pieces.windows(2).filter(|pair| pair[1].range.start < pair[0].range.start).count();
        for piece in pieces {
            let at = |offset: u64| usize::try_from(offset).unwrap();
            let slice = &characters[at(piece.char_range.start)..at(piece.char_range.end)];
            assert_eq!(text[piece.range], slice.iter().collect::<String>());
        }
    }
    assert!(goes_back > 0, "no passage begins before the one that it overlaps");
}

#[test]
fn indented_code_that_overlaps_is_where_its_place_says() {
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    let mut passages = 0;
    for _ in 0..40 {
        let line = |_| {
            let indent = " ".repeat(4 + numbers.below(9));
            format!("{indent}{}\n", numbers.one_of(&["x", "ä b", "東京"]).repeat(1 + numbers.below(20)))
        };
        let text = "Code:\n\n".to_owned() + &(0..30).map(line).collect::<Vec<_>>().concat();
        let characters: Vec<char> = text.chars().collect();
        for piece in all(&text, Some(&splitter(SplitterType::Markdown, 60, 30))) {
            let at = |offset: u64| usize::try_from(offset).unwrap();
            let slice = &characters[at(piece.char_range.start)..at(piece.char_range.end)];
            assert_eq!(text[piece.range], slice.iter().collect::<String>());
            passages += 1;
        }
    }
    assert!(passages > 300, "{passages}");
}

#[test]
fn nothing_is_lost_between_passages_and_none_is_too_large() {
    let sentences: Vec<_> = (0..3_000).map(|n| format!("Sentence number {n} says something. ")).collect();
    let text = sentences.concat();
    let pieces = all(&text, None);
    let mut covered = 0;
    for piece in &pieces {
        assert!(piece.range.start <= covered || text[covered..piece.range.start].trim().is_empty());
        assert!(TokenCounter::default().count(&text[piece.range.clone()]) <= DEFAULT_TOKENS);
        covered = piece.range.end;
    }
    assert!(text[covered..].trim().is_empty());
    assert!(pieces.windows(2).any(|pair| pair[1].range.start < pair[0].range.end), "passages overlap");
}

#[test]
fn a_line_without_end_is_cut_in_stretches_of_which_nothing_is_lost() {
    let json = format!("{{{}}}", r#""käy":[1,"#.repeat(20_000));
    let text = format!("First line.\n{json}\nLast line. {}", "Words of it. ".repeat(5_000));
    let stretches = stretches(&text, LONG_LINE, false);
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
    split(&text, TextShape::Rows, None, &TokenCounter::default(), &|_| Ok(()), |piece| {
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
    split(&text, TextShape::Markdown, None, &TokenCounter::default(), &|_| Ok(()), |piece| {
        at_heading += usize::from(text[piece.range].starts_with("## Section"));
        Ok::<_, std::convert::Infallible>(())
    })
    .unwrap();
    assert_eq!(at_heading, 6);
}

#[test]
fn a_table_is_kept_whole_where_it_fits_and_its_rows_where_it_does_not() {
    let table = |name: &str, rows: usize| {
        let row = |n: usize| format!("| {name} {n} | {} | {} |\n", n * 37, n * 91);
        let rows = (0..rows).map(row).collect::<String>();
        format!("| {name} | People | Area |\n| --- | --- | --- |\n{rows}\n")
    };
    let prose = "Words and more words. ".repeat(30);
    let text = format!("{prose}\n\n{}{}{prose}", table("Town", 35), table("Lake", 150));
    let mut passages = Vec::new();
    let Ok(()) = split(&text, TextShape::Markdown, None, &TokenCounter::default(), &|_| Ok(()), |piece| {
        passages.push(text[piece.range].to_owned());
        Ok::<_, std::convert::Infallible>(())
    });
    let town: Vec<&String> = passages.iter().filter(|passage| passage.contains("| Town ")).collect();
    assert!(
        matches!(town.as_slice(), [whole] if whole.starts_with("| Town |") && whole.contains("| Town 34 |")),
        "{passages:#?}"
    );
    let rows =
        passages.iter().filter(|passage| passage.contains("| Lake ")).flat_map(|passage| passage.lines());
    let torn: Vec<&str> = rows.filter(|row| row.starts_with('|') != row.ends_with('|')).collect();
    assert_eq!(torn, [""; 0]);
    assert!(passages.iter().filter(|passage| passage.contains("| Lake ")).count() > 2, "{passages:#?}");
    assert!(passages.iter().any(|passage| passage.contains("| --- |\n| Lake 0 |")), "{passages:#?}");
}

#[test]
fn no_passage_has_more_tokens_than_the_model_takes_in_however_it_is_measured() {
    let sentences: Vec<_> = (0..500).map(|n| format!("Sentence number {n} says something. ")).collect();
    let text = sentences.concat();
    let sizing = TokenCounter::limited(254);
    for (kind, size) in [
        (SplitterType::Token, 5_000),
        (SplitterType::Character, 9_000),
        (SplitterType::Recursive, 300),
        (SplitterType::Markdown, 1_000_000),
    ] {
        let mut covered = 0;
        split(&text, TextShape::Prose, Some(&splitter(kind, size, 0)), &sizing, &|_| Ok(()), |piece| {
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

#[test]
fn what_the_model_takes_in_bounds_how_far_is_looked_for_a_passage() {
    let text = ",a".repeat(50_000);
    let sizing = TokenCounter::limited(254);
    let furthest = std::cell::Cell::new(0_usize);
    let go_on = |bytes: usize| {
        furthest.set(furthest.get().max(bytes));
        Ok::<_, std::convert::Infallible>(())
    };
    let splitter = splitter(SplitterType::Recursive, 20_000, 0);
    let mut covered = 0;
    let Ok(()) = split(&text, TextShape::Prose, Some(&splitter), &sizing, &go_on, |piece| {
        assert_eq!(piece.range.start, covered);
        covered = piece.range.end;
        Ok(())
    });
    assert_eq!(covered, text.len());
    assert!(furthest.get() <= LONG_LINE, "{}", furthest.get());
    let measure = PassageMeasure::letters(20_000, &sizing);
    let PassageLimits { capacity, bytes, .. } = measure.room(0);
    assert!(bytes < (capacity + 1) * BYTES_PER_TOKEN, "{bytes} bytes for {capacity} tokens");
    assert!(measure.size(&"x".repeat(bytes + 1)) > capacity, "what is beyond is too large");
    assert!(measure.size("Words of an ordinary sentence, in a usual text.") < 20);
}

// --- as it always was -------------------------------------------------------------------------------------------------

/// Measures for the crate that cut texts before, and does so still where nothing is out of the way.
struct AsMeasured<'s>(PassageMeasure<'s>);

impl text_splitter::ChunkSizer for AsMeasured<'_> {
    fn size(&self, chunk: &str) -> usize {
        self.0.size(chunk)
    }
}

/// The passages that this crate makes of a text without long lines.
fn as_before(text: &str, markdown: bool, measure: PassageMeasure<'_>, overlap: usize) -> Vec<Range<usize>> {
    let room = measure.room(overlap);
    let config = text_splitter::ChunkConfig::new(room.capacity).with_overlap(room.overlap).unwrap();
    let config = config.with_sizer(AsMeasured(measure));
    let range = |(start, chunk): (usize, &str)| start..start + chunk.len();
    if markdown {
        text_splitter::MarkdownSplitter::new(config).chunk_indices(text).map(range).collect()
    } else {
        text_splitter::TextSplitter::new(config).chunk_indices(text).map(range).collect()
    }
}

fn ranges(
    text: &str,
    shape: TextShape,
    splitter: &SplitterConfig,
    sizing: &TokenCounter,
) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let Ok(()) = split(text, shape, Some(splitter), sizing, &|_| Ok(()), |piece| {
        ranges.push(piece.range);
        Ok::<_, std::convert::Infallible>(())
    });
    ranges
}

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most as u64).unwrap()
    }

    fn one_of<'s>(&mut self, all: &[&'s str]) -> &'s str {
        all[self.below(all.len())]
    }

    fn sentence(&mut self) -> String {
        let words = [
            "the",
            "house",
            "Grün",
            "of",
            "a",
            "contract",
            "§ 12",
            "e.g.",
            "I.",
            "3.14",
            "liability",
            "東京は日本",
            "ภาษาไทย",
            "don't",
            "🙂",
            "https://a.b/c?d=e_f",
            "*weight*",
            "**two words**",
            "`code`",
            "[link](http://x.y)",
            "[ref]",
            "$x$",
            "<b>h</b>",
            "~~gone~~",
            "Versicherungsnehmer",
            "\u{a0}",
        ];
        let longest = [4, 15, 40, 120][self.below(4)];
        let count = 1 + self.below(longest);
        let said: Vec<_> = (0..count).map(|_| self.one_of(&words)).collect();
        said.join(" ") + self.one_of(&[". ", "! ", "? ", "", "; "])
    }

    fn lines(&mut self, prefix: &[&str], most: usize) -> String {
        let count = 1 + self.below(most);
        let line = |_| format!("{}{}\n", self.one_of(prefix), self.sentence().trim());
        (0..count).map(line).collect::<Vec<_>>().concat()
    }

    fn document(&mut self, markdown: bool) -> String {
        let blocks = 1 + self.below(20);
        let block = |_| match if markdown { self.below(10) } else { self.below(3) } {
            0 => format!("{}{}{}\n\n", self.sentence(), self.sentence(), self.sentence()),
            1 => self.lines(&[""], 12) + "\n",
            2 => "\n".repeat(self.below(5)) + &" ".repeat(self.below(9)),
            3 | 4 => {
                let marks = 1 + self.below(6);
                format!("{} {}\n\n", "#".repeat(marks), self.sentence().trim())
            }
            5 => self.lines(&["- ", "  - ", "    * ", "1. ", "- [ ] "], 8) + "\n",
            6 => self.lines(&["> ", "> > ", "> > > "], 6) + "\n",
            7 => format!("```rust\n{}```\n\n", self.lines(&["    let x = ", ""], 20)),
            8 => {
                let count = self.below(20);
                let row = |n| format!("| {} | {n} |\n", self.sentence().trim());
                // Without the line that would make it a table.
                format!("\n| a | b |\n{}\n", (0..count).map(row).collect::<String>())
            }
            _ => "\n---\n\n[ref]: http://x.y \"T\"\n[^1]: Foot note here.\n\n".to_owned(),
        };
        (0..blocks).map(block).collect()
    }
}

#[test]
fn usual_texts_are_cut_where_they_always_were() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let pages = ["architecture.md", "documents.md"];
    let pages = pages.map(|page| {
        let page = std::fs::read_to_string(format!("{}/../docs/{page}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        // Without the lines that make tables: those are kept whole today.
        page.lines()
            .filter(|line| !line.starts_with("|--"))
            .map(|line| line.to_owned() + "\n")
            .collect::<String>()
    });
    let generated = (0..24).map(|number| numbers.document(number % 2 == 0)).collect::<Vec<_>>();
    let sizing = TokenCounter::default();
    let mut passages = 0;
    for (number, text) in pages.iter().chain(&generated).enumerate() {
        for (kind, size, overlap) in [
            (SplitterType::Token, 400, 60),
            (SplitterType::Token, 20 + u32::try_from(number).unwrap(), 10),
            (SplitterType::Character, 300, 150),
            (SplitterType::Markdown, 1_600, 240),
            (SplitterType::Markdown, 60, 0),
        ] {
            // The others do not go by it.
            let shapes = if kind == SplitterType::Token {
                &[TextShape::Prose, TextShape::Markdown][..]
            } else {
                &[TextShape::Prose]
            };
            for shape in shapes.iter().copied() {
                let markdown = kind == SplitterType::Markdown
                    || (kind == SplitterType::Token && shape == TextShape::Markdown);
                let capacity = size as usize;
                let measure = match kind {
                    SplitterType::Token => PassageMeasure::Tokens { capacity, sizing: &sizing },
                    SplitterType::Recursive | SplitterType::Character | SplitterType::Markdown => {
                        PassageMeasure::letters(capacity, &sizing)
                    }
                };
                let before = as_before(text, markdown, measure, overlap as usize);
                let now = ranges(text, shape, &splitter(kind, size, overlap), &sizing);
                assert_eq!(now, before, "text {number}, {kind} {size}/{overlap}, {shape:?}");
                passages += now.len();
            }
        }
    }
    assert!(passages > 3_000, "{passages}");
}

// --- the worst texts --------------------------------------------------------------------------------------------------

/// Bytes that are looked at while a text is cut, overlaps and trials and all.
fn work(text: &str, kind: SplitterType, size: u32, overlap: u32) -> usize {
    let looked_at = std::cell::Cell::new(0);
    let go_on = |bytes| {
        looked_at.set(looked_at.get() + bytes);
        Ok::<_, std::convert::Infallible>(())
    };
    let splitter = splitter(kind, size, overlap);
    let Ok(()) =
        split(text, TextShape::Markdown, Some(&splitter), &TokenCounter::default(), &go_on, |_| Ok(()));
    looked_at.get()
}

fn filled(pattern: &str, bytes: usize) -> String {
    pattern.repeat(bytes.div_ceil(pattern.len()))
}

fn deepening(mark: &str, bytes: usize) -> String {
    let mut text = String::new();
    for depth in 1.. {
        if text.len() >= bytes {
            break;
        }
        text.push_str(&mark.repeat(depth));
        text.push_str("word\n");
    }
    text
}

#[test]
fn four_times_as_much_of_the_worst_text_takes_four_times_the_work() {
    type Text = (&'static str, fn(usize) -> String);
    let texts: [Text; 14] = [
        ("deepening quotes", |bytes| deepening("> ", bytes)),
        ("deepening lists", |bytes| deepening("- ", bytes)),
        ("a line without spaces", |bytes| filled("x", bytes)),
        ("newlines", |bytes| filled("\n", bytes)),
        ("letters on lines", |bytes| filled("a\n", bytes)),
        ("headings", |bytes| filled("# a\n", bytes)),
        ("a table", |bytes| format!("|a|b|\n|-|-|\n{}", filled("|a|b|\n", bytes))),
        ("combining marks", |bytes| format!("a{}", filled("\u{301}", bytes))),
        ("emphasis", |bytes| filled("*a **b", bytes)),
        ("nested emphasis", |bytes| filled("*a ", bytes / 2) + &filled(" a*", bytes / 2)),
        ("brackets", |bytes| filled("[", bytes)),
        ("definitions", |bytes| filled("[a]: b 'c\n", bytes)),
        ("words between blanks", |bytes| filled(&("a b c ".repeat(100) + &" ".repeat(3_000)), bytes)),
        ("paragraphs that grow", |bytes| {
            (1..)
                .map(|n| "a\n".repeat(n) + &"\n".repeat(n))
                .scan(0, |length, part| {
                    *length += part.len();
                    (*length < bytes).then_some(part)
                })
                .collect()
        }),
    ];
    let check = |name: &str, text: fn(usize) -> String| {
        for (kind, size, overlap) in [(SplitterType::Token, 40, 10), (SplitterType::Markdown, 200, 100)] {
            let small = work(&text(4_000), kind, size, overlap);
            let large = work(&text(16_000), kind, size, overlap);
            assert!(large < 6 * small.max(4_000), "{name}, {kind} {size}/{overlap}: {small}, then {large}");
            assert!(large < 400 * 16_000, "{name}, {kind} {size}/{overlap}: {large}");
        }
    };
    // The test takes longer than all others together.
    std::thread::scope(|scope| {
        for (name, text) in texts {
            scope.spawn(move || check(name, text));
        }
    });
}

#[test]
fn cutting_ends_in_the_midst_of_a_passage_when_it_must_not_go_on() {
    let text = "Words of a sentence without any end, and more of them ".repeat(10_000);
    let asked = std::cell::Cell::new(0);
    let go_on = |_| {
        asked.set(asked.get() + 1);
        if asked.get() < 5 { Ok(()) } else { Err("given up") }
    };
    let mut pieces = 0;
    let ended = split(&text, TextShape::Prose, None, &TokenCounter::default(), &go_on, |_| {
        pieces += 1;
        Ok(())
    });
    assert_eq!((ended, pieces, asked.get()), (Err("given up"), 0, 5));
}
