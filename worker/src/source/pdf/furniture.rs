//! The furniture of a document's pages: running titles, page numbers and other lines that stand at the top or the bottom
//! of most pages. They would turn up in the middle of sentences that go on over a page, and in every search.
//!
//! Judged over all pages, and with doubt in favour of the text: a line goes only when it stands in the same place on most
//! pages (left and right ones may differ), says the same apart from the page's own number, and does not look like the
//! beginning or the end of what the page is about: a table that goes on, a refrain, a form's label, a title with a number.

mod line;

use std::collections::{BTreeMap, BTreeSet};

use self::line::{LineFigure, NormalizedLine, PageLine, lines};

/// Fewer pages than these have no lines that repeat, only lines that are alike.
const FEWEST_PAGES: usize = 4;
/// The least pages that a line has to be on.
const FEWEST_SIGHTINGS: usize = 3;
/// Lines that are looked at from either edge of a page.
const ZONE: usize = 3;
/// The share of the pages, of the left or of the right ones that "most" means, in percent.
const MOST: usize = 60;
/// Lines that are compared to tell whether the pages are copies of one form.
const SAMPLED: usize = 10;
/// From this share of lines that are on most pages, in percent, pages are copies of one form.
const FORM: usize = 30;

/// Takes the furniture away from a document's pages, given with their numbers in ascending order. A page that is nothing
/// else stays as it is.
pub(super) fn remove(pages: &mut [(u32, String)]) {
    let all: Vec<PageLines<'_>> = pages.iter().map(|(number, text)| PageLines::new(*number, text)).collect();
    let cuts: Vec<BTreeSet<usize>> = if all.iter().filter(|page| page.counts()).count() < FEWEST_PAGES {
        Vec::new()
    } else {
        FurnitureDetector::of(&all).cuts()
    };
    let kept: Vec<Option<String>> = all.iter().zip(&cuts).map(|(page, cut)| page.without(cut)).collect();
    for ((_, text), kept) in pages.iter_mut().zip(kept) {
        if let Some(kept) = kept {
            *text = kept;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PageEdge {
    Top,
    Bottom,
}

/// A page and those of its lines that are not blank.
struct PageLines<'a> {
    number: u32,
    text: &'a str,
    lines: Vec<PageLine<'a>>,
}

impl<'a> PageLines<'a> {
    fn new(number: u32, text: &'a str) -> Self {
        Self { number, text, lines: lines(text) }
    }

    /// Whether it has an edge and something besides.
    fn counts(&self) -> bool {
        self.lines.len() > 1
    }

    /// How many lines from either edge may be furniture: never the same one from both.
    fn zone(&self) -> usize {
        ZONE.min(self.lines.len() / 2)
    }

    /// The line that is `depth` lines from an edge.
    fn at(&self, edge: PageEdge, depth: usize) -> Option<&PageLine<'a>> {
        self.index(edge, depth).and_then(|index| self.lines.get(index))
    }

    fn index(&self, edge: PageEdge, depth: usize) -> Option<usize> {
        match edge {
            PageEdge::Top => (depth < self.lines.len()).then_some(depth),
            PageEdge::Bottom => self.lines.len().checked_sub(depth + 1),
        }
    }

    /// Whether a blank line parts the line at a depth from the next one inwards.
    fn is_apart(&self, edge: PageEdge, depth: usize) -> bool {
        let line = self.at(edge, depth);
        match edge {
            PageEdge::Top => self.at(edge, depth + 1).is_some_and(|next| next.after_blank),
            PageEdge::Bottom => line.is_some_and(|line| line.after_blank),
        }
    }

    /// The first lines with words that are not cut.
    fn left(&self, cut: &BTreeSet<usize>) -> Vec<&'a str> {
        let lines = self.lines.iter().enumerate().filter(|(index, _)| !cut.contains(index));
        let words = lines.map(|(_, line)| line.text).filter(|text| text.contains(char::is_alphabetic));
        words.take(SAMPLED).collect()
    }

    /// The text without some lines; none when nothing changes, or nothing would be left.
    fn without(&self, cut: &BTreeSet<usize>) -> Option<String> {
        let kept = |(index, _): &(usize, &PageLine<'_>)| !cut.contains(index);
        let says = |(_, line): (usize, &PageLine<'_>)| line.text.contains(char::is_alphanumeric);
        if cut.is_empty() || !self.lines.iter().enumerate().filter(kept).any(says) {
            return None;
        }
        let mut text = String::with_capacity(self.text.len());
        let mut blank = false;
        for (index, line) in self.lines.iter().enumerate() {
            blank |= line.after_blank;
            if cut.contains(&index) {
                continue;
            }
            if !text.is_empty() {
                text.push_str(if blank { "\n\n" } else { "\n" });
            }
            blank = false;
            text.push_str(line.text);
        }
        Some(text)
    }
}

/// What a line says on whatever page it is on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct LinePattern {
    edge: PageEdge,
    key: String,
    figures: Vec<FigurePattern>,
}

impl LinePattern {
    /// Whether a number in it counts with the pages.
    fn counts(&self) -> bool {
        self.figures.iter().any(|figure| matches!(figure, FigurePattern::Counts(_)))
    }

    /// Whether it is a page's number beyond doubt: it says so, or nothing else.
    fn is_page_number(&self) -> bool {
        is_bare_number(self) || (self.counts() && line::names_page(&self.key, self.figures.len()))
    }
}

/// How a number in a line goes from page to page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FigurePattern {
    /// It counts with the pages, so many ahead of them.
    Counts(i64),
    /// It stays what it is.
    Stays(u64),
}

/// Where one of the sayings was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LinePosition {
    page: usize,
    depth: usize,
}

/// Where a line was seen, and with which numbers.
type SeenLine = (LinePosition, Vec<LineFigure>);

/// What is furniture on which page.
struct FurnitureDetector<'a> {
    pages: &'a [PageLines<'a>],
    /// Every saying that is on enough pages, and where it was seen.
    sayings: BTreeMap<LinePattern, Vec<LinePosition>>,
}

impl<'a> FurnitureDetector<'a> {
    fn of(pages: &'a [PageLines<'a>]) -> Self {
        let mut sayings = sightings(pages);
        sayings.retain(|_, seen| keep_usual_depth(seen));
        let spaced =
            pages.iter().filter(|page| page.counts() && page.lines.iter().any(|line| line.after_blank));
        let spaced = is_most(spaced.count(), pages.iter().filter(|page| page.counts()).count());
        let mut judgement = Self { pages, sayings: BTreeMap::new() };
        sayings.retain(|saying, seen| judgement.is_furniture(saying, seen));
        judgement.sayings = sayings;
        judgement.spare_titles();
        // What is taken from the inner side uncovers the next one.
        for _ in 0..ZONE {
            let body = judgement.innermost_of_body(spaced);
            if body.is_empty() {
                break;
            }
            judgement.sayings.retain(|saying, _| !body.contains(saying));
        }
        if are_copies(pages, &judgement.cuts()) {
            judgement.sayings.retain(|saying, _| saying.counts());
        }
        judgement
    }

    fn is_furniture(&self, saying: &LinePattern, seen: &[LinePosition]) -> bool {
        let counting = saying.figures.iter().enumerate().find_map(|(at, figure)| match figure {
            FigurePattern::Counts(ahead) => Some((at, *ahead)),
            FigurePattern::Stays(_) => None,
        });
        let worded = saying.key.contains(char::is_alphabetic);
        match counting {
            Some(_) if !worded => self.is_frequent(seen, true),
            Some((which, ahead)) => {
                let tabbed = self.is_tabbed(saying, seen);
                let label = line::is_page_label(&saying.key, which, saying.figures.len(), ahead, tabbed);
                label && self.is_frequent(seen, true) && !self.is_said_inside_too(saying, seen)
            }
            None => self.is_frequent(seen, false) && !self.is_said_inside_too(saying, seen),
        }
    }

    /// Spares titles that count with the pages, as those of exercises and case studies of which each has a page do: where a page
    /// has a number of its own, another one at its top that is part of a title is not the page's.
    fn spare_titles(&mut self) {
        let numbers = self.sayings.iter().filter(|(saying, _)| saying.is_page_number());
        let numbered: BTreeSet<usize> =
            numbers.flat_map(|(_, seen)| seen.iter().map(|sighting| sighting.page)).collect();
        let is_title = |(saying, seen): &(&LinePattern, &Vec<LinePosition>)| {
            let beside = seen.iter().filter(|sighting| numbered.contains(&sighting.page)).count();
            saying.edge == PageEdge::Top
                && saying.counts()
                && !saying.is_page_number()
                && beside * 2 > seen.len()
                && !self.is_tabbed(saying, seen)
        };
        let titles: BTreeSet<LinePattern> =
            self.sayings.iter().filter(is_title).map(|(saying, _)| saying.clone()).collect();
        self.sayings.retain(|saying, _| !titles.contains(saying));
    }

    /// Whether a saying always stands in parts that are far from one another.
    fn is_tabbed(&self, saying: &LinePattern, seen: &[LinePosition]) -> bool {
        let tabbed = |sighting: &LinePosition| {
            self.line(saying.edge, *sighting).is_some_and(|line| line.text.contains('\t'))
        };
        seen.iter().all(tabbed)
    }

    /// Whether a saying is on most pages, or on most of the left or the right ones. What counts with the pages may begin
    /// and end with a part of the document.
    fn is_frequent(&self, seen: &[LinePosition], counts: bool) -> bool {
        let (Some(first), Some(last)) = (seen.first(), seen.last()) else { return false };
        let whole = 0..=self.pages.len().saturating_sub(1);
        let span = if counts && seen.len() > FEWEST_SIGHTINGS { first.page..=last.page } else { whole };
        let candidates = |parity: Option<u32>| {
            let pages = self.pages.get(span.clone()).unwrap_or_default().iter();
            pages
                .filter(|page| page.counts() && parity.is_none_or(|parity| page.number % 2 == parity))
                .count()
        };
        let sightings = |parity: u32| {
            let on = |sighting: &&LinePosition| {
                self.pages.get(sighting.page).is_some_and(|page| page.number % 2 == parity)
            };
            seen.iter().filter(on).count()
        };
        let enough = |seen: usize, of: usize| seen >= FEWEST_SIGHTINGS && is_most(seen, of);
        enough(seen.len(), candidates(None))
            || (0..2).any(|parity| enough(sightings(parity), candidates(Some(parity))))
    }

    /// Whether pages say the same in their middle, too.
    fn is_said_inside_too(&self, saying: &LinePattern, seen: &[LinePosition]) -> bool {
        let again = seen.iter().filter(|sighting| {
            self.pages.get(sighting.page).is_some_and(|page| {
                let end = page.lines.len().saturating_sub(page.zone());
                let inside = page.lines.get(page.zone()..end).unwrap_or_default();
                inside.iter().any(|line| line.says(&saying.key))
            })
        });
        again.count() * 5 > seen.len()
    }

    fn line(&self, edge: PageEdge, sighting: LinePosition) -> Option<&PageLine<'a>> {
        self.pages.get(sighting.page)?.at(edge, sighting.depth)
    }

    /// The sayings that would be cut from each page, by edge and depth: constant ones only as far in as all lines outside
    /// them go, too.
    fn reach(&self) -> BTreeMap<(usize, PageEdge), BTreeMap<usize, &LinePattern>> {
        let mut found: BTreeMap<(usize, PageEdge), BTreeMap<usize, &LinePattern>> = BTreeMap::new();
        for (saying, seen) in &self.sayings {
            for sighting in seen {
                found.entry((sighting.page, saying.edge)).or_default().insert(sighting.depth, saying);
            }
        }
        for lines in found.values_mut() {
            let unbroken = (0..ZONE).take_while(|depth| lines.contains_key(depth)).count();
            lines.retain(|depth, saying| *depth < unbroken || is_bare_number(saying));
        }
        found
    }

    /// The constant sayings that are next to the text and, on most pages where they are, look like a part of it.
    fn innermost_of_body(&self, spaced: bool) -> BTreeSet<LinePattern> {
        let mut votes: BTreeMap<&LinePattern, (usize, usize)> = BTreeMap::new();
        for ((page, edge), lines) in self.reach() {
            let (Some((depth, saying)), Some(page)) = (lines.last_key_value(), self.pages.get(page)) else {
                continue;
            };
            if saying.counts() {
                continue;
            }
            let (body, all) = votes.entry(saying).or_default();
            *all += 1;
            *body += usize::from(belongs_to_body(page, edge, *depth, spaced));
        }
        let body = votes.into_iter().filter(|(_, (body, all))| body * 2 > *all);
        body.map(|(saying, _)| saying.clone()).collect()
    }

    /// The lines to be cut, by their numbers, page by page.
    fn cuts(&self) -> Vec<BTreeSet<usize>> {
        let mut cuts = vec![BTreeSet::new(); self.pages.len()];
        for ((number, edge), lines) in self.reach() {
            if let (Some(page), Some(cut)) = (self.pages.get(number), cuts.get_mut(number)) {
                cut.extend(lines.keys().filter_map(|depth| page.index(edge, *depth)));
            }
        }
        cuts
    }
}

fn is_most(part: usize, of: usize) -> bool {
    part * 100 >= of * MOST
}

fn is_bare_number(saying: &LinePattern) -> bool {
    saying.counts() && !saying.key.contains(char::is_alphabetic)
}

/// Every line near an edge, by what it says.
fn sightings(pages: &[PageLines<'_>]) -> BTreeMap<LinePattern, Vec<LinePosition>> {
    let mut by_key: BTreeMap<(PageEdge, String), Vec<SeenLine>> = BTreeMap::new();
    for (number, page) in pages.iter().enumerate().filter(|(_, page)| page.counts()) {
        for edge in [PageEdge::Top, PageEdge::Bottom] {
            for depth in 0..page.zone() {
                let Some(NormalizedLine { key, figures }) = page.at(edge, depth).and_then(PageLine::apart)
                else {
                    continue;
                };
                by_key.entry((edge, key)).or_default().push((LinePosition { page: number, depth }, figures));
            }
        }
    }
    let mut sayings: BTreeMap<LinePattern, Vec<LinePosition>> = BTreeMap::new();
    for ((edge, key), seen) in by_key {
        if seen.len() < FEWEST_SIGHTINGS {
            continue;
        }
        let number =
            |sighting: &LinePosition| pages.get(sighting.page).map_or(0, |page| i64::from(page.number));
        let mut tally: BTreeMap<(usize, FigurePattern), usize> = BTreeMap::new();
        for (sighting, figures) in &seen {
            for (at, figure) in figures.iter().enumerate() {
                for steady in [
                    FigurePattern::Counts(figure.ahead_of(number(sighting))),
                    FigurePattern::Stays(figure.value),
                ] {
                    *tally.entry((at, steady)).or_default() += 1;
                }
            }
        }
        for (sighting, figures) in seen {
            let steady = figures.iter().enumerate().map(|(at, figure)| {
                let (counts, stays) = (
                    FigurePattern::Counts(figure.ahead_of(number(&sighting))),
                    FigurePattern::Stays(figure.value),
                );
                if tally.get(&(at, counts)) >= tally.get(&(at, stays)) { counts } else { stays }
            });
            let saying = LinePattern { edge, key: key.clone(), figures: steady.collect() };
            sayings.entry(saying).or_default().push(sighting);
        }
    }
    sayings
}

/// Leaves the sightings at the usual depth, or one line beside it, one for a page, in the order of the pages. False when
/// too few are left.
fn keep_usual_depth(seen: &mut Vec<LinePosition>) -> bool {
    let at = |depth: usize| seen.iter().filter(|sighting| sighting.depth == depth).count();
    let usual = (0..ZONE).max_by_key(|depth| (at(*depth), ZONE - depth)).unwrap_or_default();
    seen.retain(|sighting| sighting.depth.abs_diff(usual) <= 1);
    seen.sort_by_key(|sighting| (sighting.page, sighting.depth.abs_diff(usual), sighting.depth));
    seen.dedup_by_key(|sighting| sighting.page);
    seen.len() >= FEWEST_SIGHTINGS
}

/// Whether the pages are copies of one form: much of what is left when some lines are cut is on most of them.
fn are_copies(pages: &[PageLines<'_>], cuts: &[BTreeSet<usize>]) -> bool {
    let left = || pages.iter().zip(cuts).filter(|(page, _)| page.counts()).map(|(page, cut)| page.left(cut));
    let mut frequency: BTreeMap<&str, usize> = BTreeMap::new();
    for text in left().flat_map(|lines| lines.into_iter().collect::<BTreeSet<_>>()) {
        *frequency.entry(text).or_default() += 1;
    }
    let pages_left = left().count();
    let (mut common, mut all) = (0_usize, 0_usize);
    for text in left().flatten() {
        all += 1;
        common += usize::from(frequency.get(text).is_some_and(|count| is_most(*count, pages_left)));
    }
    all > 0 && common * 100 >= all * FORM
}

/// Whether a line at the inner side of the furniture reads on into the page: a sentence, a refrain or a line of a stanza,
/// the head of a table, or a remark on the table below it.
fn belongs_to_body(page: &PageLines<'_>, edge: PageEdge, depth: usize, spaced: bool) -> bool {
    let Some(line) = page.at(edge, depth) else { return false };
    let apart = page.is_apart(edge, depth);
    let next = [1, 2].map(|further| page.at(edge, depth + further));
    let [below, _] = next;
    let is_over_table = edge == PageEdge::Top && below.is_some_and(|below| below.in_table);
    line.heads(next)
        || (!apart && (spaced || line.is_part_of_a_sentence()))
        || (is_over_table && (line.is_remark() || line.is_part_of_a_sentence()))
}

#[cfg(test)]
mod tests;
