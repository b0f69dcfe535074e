//! What is measured, and the table that shows it.

use std::fmt::Write as _;

use crate::bench::{FigureColumn, markdown_rows};

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableFigure {
    Size,
    StartEmpty,
    StartExisting,
    Idle,
    IdleWithModel,
    Client,
    PostAlone,
    PostBusy,
    List,
    SearchLexical,
    SearchHybrid,
    Predict,
    IngestLexical,
    IngestDense,
    Pdf,
}

impl TableFigure {
    /// All of them, in the order of the table.
    const ALL: [Self; 15] = [
        Self::PostAlone,
        Self::PostBusy,
        Self::List,
        Self::SearchLexical,
        Self::SearchHybrid,
        Self::Predict,
        Self::IngestLexical,
        Self::IngestDense,
        Self::Pdf,
        Self::Idle,
        Self::IdleWithModel,
        Self::StartEmpty,
        Self::StartExisting,
        Self::Size,
        Self::Client,
    ];

    /// What it is called, and the goal.
    fn text(self) -> (&'static str, &'static str) {
        match self {
            Self::PostAlone => ("POST /documents, nothing else going on, p50 / p95", "≤ 5 ms p50"),
            Self::PostBusy => ("POST /documents while the ones before are ingested, p50 / p95", "–"),
            Self::List => ("GET /documents?limit=50, p50 / p95", "≤ 2 ms p50"),
            Self::SearchLexical => ("POST /search by words, p50 / p95", "≤ 5 ms p50"),
            Self::SearchHybrid => ("POST /search by words and meaning, p50 / p95", "≤ 5 ms p50"),
            Self::Predict => ("predict, without the model's own time, p50 / p95", "≤ 5 ms p50"),
            Self::IngestLexical => ("ingestion of small TXT, by words", "≥ 200 documents/s"),
            Self::IngestDense => ("ingestion of small TXT, by words and meaning", "–"),
            Self::Pdf => ("ingestion of PDF", "–"),
            Self::Idle => ("idle memory without a model", "< 100 MB"),
            Self::IdleWithModel => ("idle memory with the model", "< 100 MB"),
            Self::StartEmpty => ("start until ready, nothing there yet", "< 1 s"),
            Self::StartExisting => ("start until ready, again", "< 1 s"),
            Self::Size => ("size of the programs", "< 60 MB"),
            Self::Client => ("of each time above, the client's share (GET /health/live), p50", "–"),
        }
    }
}

/// What was measured of one mode.
pub(super) type TableColumn = FigureColumn<TableFigure>;

/// The table and what is said below it, as Markdown. `facts` are lines about the machine and the run.
pub(super) fn markdown(columns: &[TableColumn], facts: &[String]) -> String {
    let titles = columns.iter().map(|column| column.title.as_str());
    let head: Vec<&str> = ["", "goal"].into_iter().chain(titles).collect();
    let row = |figure: TableFigure| {
        let (title, goal) = figure.text();
        let values = columns.iter().map(|column| column.value(figure).unwrap_or("not measured"));
        [title, goal].into_iter().chain(values).collect()
    };
    let rows: Vec<Vec<&str>> = TableFigure::ALL.into_iter().map(row).collect();
    let mut text = markdown_rows(&head, &rows);
    text.push('\n');
    for fact in facts {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- {fact}");
    }
    for column in columns {
        for note in &column.notes {
            let _ = writeln!(text, "- {}: {note}", column.title);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_figure_once_and_says_what_was_not_measured() {
        let mut column = TableColumn::new("embedded");
        column.add(TableFigure::List, "1.0 / 2.0 ms".to_owned());
        column.notes.push("a note".to_owned());
        let text = markdown(&[column, TableColumn::new("cluster")], &["a fact".to_owned()]);
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(rows.len(), 2 + TableFigure::ALL.len());
        assert!(rows.iter().all(|row| row.matches('|').count() == 5), "{text}");
        assert!(text.contains("| ≤ 2 ms p50 | 1.0 / 2.0 ms | not measured |"), "{text}");
        assert!(text.ends_with("- a fact\n- embedded: a note\n"), "{text}");
    }
}
