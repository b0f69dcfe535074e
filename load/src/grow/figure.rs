//! What is measured at each step, and the tables that show it.

use std::{fmt::Write as _, time::Duration};

use crate::{
    bench::{FigureColumn, grouped, markdown_rows},
    out::note,
};

/// A line of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GrowFigure {
    Held,
    Opening,
    Ingestion,
    List,
    ListMiddle,
    SearchCold,
    SearchWarm,
    SearchLexical,
    SearchHybrid,
    SearchDocuments,
    SearchFilter,
    PredictSome,
    PredictAll,
    NewDocument,
    NewFound,
    MemoryIngested,
    MemoryAsked,
    MemoryRestarted,
    Disk,
    Restart,
    FirstSearch,
}

/// What is measured of one workspace, in the order of its table.
const ONE: &[GrowFigure] = &[
    GrowFigure::Held,
    GrowFigure::Ingestion,
    GrowFigure::List,
    GrowFigure::ListMiddle,
    GrowFigure::SearchLexical,
    GrowFigure::SearchHybrid,
    GrowFigure::SearchDocuments,
    GrowFigure::SearchFilter,
    GrowFigure::PredictSome,
    GrowFigure::PredictAll,
    GrowFigure::NewDocument,
    GrowFigure::NewFound,
    GrowFigure::Restart,
    GrowFigure::FirstSearch,
    GrowFigure::MemoryIngested,
    GrowFigure::MemoryAsked,
    GrowFigure::MemoryRestarted,
    GrowFigure::Disk,
];

/// What is measured of many workspaces, in the order of their table.
const MANY: &[GrowFigure] = &[
    GrowFigure::Held,
    GrowFigure::Opening,
    GrowFigure::Ingestion,
    GrowFigure::List,
    GrowFigure::SearchCold,
    GrowFigure::SearchWarm,
    GrowFigure::NewDocument,
    GrowFigure::NewFound,
    GrowFigure::Restart,
    GrowFigure::FirstSearch,
    GrowFigure::MemoryIngested,
    GrowFigure::MemoryRestarted,
    GrowFigure::MemoryAsked,
    GrowFigure::Disk,
];

impl GrowFigure {
    /// What it is called.
    fn title(self) -> &'static str {
        match self {
            Self::Held => "what it holds",
            Self::Opening => "POST /workspaces, by 8 clients",
            Self::Ingestion => "ingestion during the step",
            Self::List => "GET /documents?limit=50, p50 / p95",
            Self::ListMiddle => "the same from the middle of the list, p50 / p95",
            Self::SearchCold => "POST /search, the first in a workspace since the start, p50 / p95",
            Self::SearchWarm => "POST /search, the second in a workspace, p50 / p95",
            Self::SearchLexical => "POST /search by words, p50 / p95",
            Self::SearchHybrid => "POST /search by words and meaning, p50 / p95",
            Self::SearchDocuments => "POST /search in 10 documents, p50 / p95",
            Self::SearchFilter => "POST /search with a filter that one document of 20 meets, p50 / p95",
            Self::PredictSome => "predict (`extractive`), at most 1,000 documents linked, p50 / p95",
            Self::PredictAll => "predict (`extractive`), a collection with everything linked, p50 / p95",
            Self::NewDocument => "a new document, from POST until SUCCEEDED, median",
            Self::NewFound => "the search right after it, which finds it, median",
            Self::MemoryIngested => "memory after the ingestion",
            Self::MemoryAsked => "memory after the requests",
            Self::MemoryRestarted => "memory after a restart and one search",
            Self::Disk => "size on the disk",
            Self::Restart => "restart until ready, median",
            Self::FirstSearch => "the first search after it, median",
        }
    }
}

/// What was measured at one step.
pub(super) type StepColumn = FigureColumn<GrowFigure>;

/// What was measured of one growth: a column for each step.
pub(super) struct GrowthTable {
    title: String,
    /// What grows, in the plural.
    unit: &'static str,
    figures: &'static [GrowFigure],
    columns: Vec<StepColumn>,
    notes: Vec<String>,
}

impl GrowthTable {
    /// One workspace that grows, in this mode.
    pub(super) fn of_one(mode: &str) -> Self {
        Self::new(format!("{mode}, one workspace"), "passages", ONE)
    }

    /// More and more workspaces, in this mode.
    pub(super) fn of_many(mode: &str) -> Self {
        Self::new(format!("{mode}, many workspaces"), "workspaces", MANY)
    }

    fn new(title: String, unit: &'static str, figures: &'static [GrowFigure]) -> Self {
        Self { title, unit, figures, columns: Vec::new(), notes: Vec::new() }
    }

    /// Adds a figure of the step that was begun last.
    pub(super) fn add(&mut self, figure: GrowFigure, value: String) {
        if let Some(column) = self.columns.last_mut() {
            column.add(figure, value);
        }
    }

    /// Begins the step of this size.
    pub(super) fn begin(&mut self, step: u64) {
        self.columns.push(StepColumn::new(self.named(step)));
    }

    /// Says what is being done.
    pub(super) fn note(&self, what: &str) {
        let step = self.columns.last().map_or("", |column| column.title.as_str());
        note(&format!("{}: {step}: {what}", self.title));
    }

    /// Adds what has to be known besides.
    pub(super) fn remark(&mut self, text: String) {
        self.notes.push(text);
    }

    /// The steps after `done` are not measured, because of the limit.
    pub(super) fn end_early(&mut self, done: u64, left: &[u64], limit: Duration) {
        for step in left {
            self.columns.push(StepColumn::new(self.named(*step)));
        }
        let (done, limit) = (self.named(done), humantime::format_duration(limit));
        self.notes.push(format!("ended after {done}: --time-limit, {limit}, was over"));
    }

    fn named(&self, step: u64) -> String {
        format!("{} {}", grouped(step), self.unit)
    }

    /// The table and what is said below it, as Markdown. Lines of which nothing was measured are left out.
    fn markdown(&self) -> String {
        let titles = self.columns.iter().map(|column| column.title.as_str());
        let head: Vec<&str> = [self.title.as_str()].into_iter().chain(titles).collect();
        let is_measured =
            |figure: &GrowFigure| self.columns.iter().any(|column| column.value(*figure).is_some());
        let row = |figure: &GrowFigure| {
            let values = self.columns.iter().map(|column| column.value(*figure).unwrap_or("–"));
            [figure.title()].into_iter().chain(values).collect()
        };
        let rows: Vec<Vec<&str>> =
            self.figures.iter().filter(|figure| is_measured(figure)).map(row).collect();
        let mut text = markdown_rows(&head, &rows);
        text.push('\n');
        for note in &self.notes {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "- {}: {note}", self.title);
        }
        if !self.notes.is_empty() {
            text.push('\n');
        }
        text
    }
}

/// All tables, and lines about the machine and the run below them.
pub(super) fn markdown(tables: &[GrowthTable], facts: &[String]) -> String {
    let mut text: String = tables.iter().map(GrowthTable::markdown).collect();
    for fact in facts {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- {fact}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_column_for_each_step_and_no_line_without_a_figure() {
        let mut table = GrowthTable::of_one("embedded");
        table.begin(1_000);
        table.add(GrowFigure::List, "1.0 / 2.0 ms".to_owned());
        table.begin(10_000);
        table.add(GrowFigure::List, "1.1 / 2.1 ms".to_owned());
        table.add(GrowFigure::Disk, "3.0 MB".to_owned());
        table.remark("a note".to_owned());
        assert_eq!(
            markdown(&[table], &["a fact".to_owned()]),
            "| embedded, one workspace | 1,000 passages | 10,000 passages |\n\
             |---|---|---|\n\
             | GET /documents?limit=50, p50 / p95 | 1.0 / 2.0 ms | 1.1 / 2.1 ms |\n\
             | size on the disk | – | 3.0 MB |\n\
             \n- embedded, one workspace: a note\n\n- a fact\n"
        );
    }

    #[test]
    fn a_growth_that_took_too_long_says_so() {
        let mut table = GrowthTable::of_many("cluster");
        table.begin(100);
        table.add(GrowFigure::Restart, "40 ms".to_owned());
        table.end_early(100, &[1_000, 10_000], Duration::from_mins(90));
        let text = table.markdown();
        assert!(text.contains("| 100 workspaces | 1,000 workspaces | 10,000 workspaces |"), "{text}");
        assert!(text.contains("| restart until ready, median | 40 ms | – | – |"), "{text}");
        assert!(text.contains("ended after 100 workspaces: --time-limit, 1h 30m, was over"), "{text}");
    }

    #[test]
    fn every_figure_of_a_table_is_in_it_once() {
        for figures in [ONE, MANY] {
            for figure in figures {
                assert_eq!(figures.iter().filter(|other| *other == figure).count(), 1, "{figure:?}");
            }
        }
    }
}
