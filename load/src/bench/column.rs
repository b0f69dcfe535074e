//! Figures side by side.

/// A column of a table: what was measured of each of its lines, which are of the type `F`.
#[derive(Clone, Debug)]
pub(crate) struct FigureColumn<F> {
    /// What stands above it.
    pub(crate) title: String,
    values: Vec<(F, String)>,
    /// What has to be known besides.
    pub(crate) notes: Vec<String>,
}

impl<F: Copy + PartialEq> FigureColumn<F> {
    /// Nothing yet.
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), values: Vec::new(), notes: Vec::new() }
    }

    /// Adds a figure.
    pub(crate) fn add(&mut self, figure: F, value: String) {
        self.values.push((figure, value));
    }

    /// A figure; none when it was not measured.
    pub(crate) fn value(&self, figure: F) -> Option<&str> {
        self.values.iter().find(|(known, _)| *known == figure).map(|(_, value)| value.as_str())
    }
}

/// A table in Markdown. Each row has as many cells as `head`.
pub(crate) fn markdown_rows(head: &[&str], rows: &[Vec<&str>]) -> String {
    let mut text = line(head);
    text.push('|');
    text.push_str(&"---|".repeat(head.len()));
    text.push('\n');
    for row in rows {
        text.push_str(&line(row));
    }
    text
}

fn line(cells: &[&str]) -> String {
    let mut line = "|".to_owned();
    for cell in cells {
        line.push(' ');
        line.push_str(cell);
        // An empty cell is one blank.
        line.push_str(if cell.is_empty() { "|" } else { " |" });
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_between_bars() {
        let text = markdown_rows(&["", "one", "two"], &[vec!["first", "1", "2"], vec!["second", "", "–"]]);
        assert_eq!(text, "| | one | two |\n|---|---|---|\n| first | 1 | 2 |\n| second | | – |\n");
    }

    #[test]
    fn a_column_tells_what_was_measured_from_what_was_not() {
        let mut column = FigureColumn::new("embedded");
        column.add(1, "a".to_owned());
        assert_eq!((column.value(1), column.value(2)), (Some("a"), None));
    }
}
