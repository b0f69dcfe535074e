//! The page that a table goes to.

use std::{fs, io, path::Path};

use super::BenchError;

/// The lines of a page between which a command's figures stand: `<!-- name -->` and `<!-- /name -->`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageMarkers(pub(crate) &'static str);

impl PageMarkers {
    /// `page` with `text` between the two markers; none when it has not both of them, in this order.
    fn filled(self, page: &str, text: &str) -> Option<String> {
        let begin = format!("<!-- {} -->\n", self.0);
        let end = format!("<!-- /{} -->", self.0);
        let (before, rest) = page.split_once(&begin)?;
        let (_, after) = rest.split_once(&end)?;
        Some(format!("{before}{begin}\n{}\n\n{end}{after}", text.trim()))
    }
}

/// Puts `text` between the markers of `file`; one that is not there, or is empty, becomes this text. Any other one without them stays as
/// it is, and the text goes beside it, since it took long to measure.
pub(crate) fn write_table(file: &Path, markers: PageMarkers, text: &str) -> Result<(), BenchError> {
    let there = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.into()),
    };
    if there.trim().is_empty() {
        return Ok(fs::write(file, text)?);
    }
    match markers.filled(&there, text) {
        Some(page) => Ok(fs::write(file, page)?),
        None => {
            let beside = file.with_added_extension("new");
            fs::write(&beside, text)?;
            Err(BenchError::NoMarkers { file: file.to_owned(), name: markers.0, beside })
        }
    }
}

/// How this program was started, from its arguments.
pub(crate) fn command_line(arguments: impl Iterator<Item = String>) -> String {
    let shown = arguments.map(|argument| {
        let (option, value) = match argument.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (format!("{option}="), value),
            _ => (String::new(), argument.as_str()),
        };
        // Addresses may hold passwords, and paths say nothing to others.
        let value = match (value.split_once("://"), value.rsplit_once('/')) {
            (Some((scheme, _)), _) => format!("{scheme}://…"),
            (None, Some((folder, name))) if folder.is_empty() || folder.starts_with('/') => {
                format!("…/{name}")
            }
            _ => value.to_owned(),
        };
        format!("{option}{value}")
    });
    format!("lectern-load {}", shown.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: PageMarkers = PageMarkers("table");

    #[test]
    fn only_what_is_between_the_markers_is_replaced() {
        let page = "# Title\n<!-- table -->\nold\n<!-- /table -->\n<!-- grow -->\n<!-- /grow -->\nEnd\n";
        let new = TABLE.filled(page, "new\n").unwrap();
        assert_eq!(
            new,
            "# Title\n<!-- table -->\n\nnew\n\n<!-- /table -->\n<!-- grow -->\n<!-- /grow -->\nEnd\n"
        );
        assert_eq!(TABLE.filled(&new, "new").unwrap(), new);
        let both = PageMarkers("grow").filled(&new, "more").unwrap();
        assert_eq!(both, new.replace("<!-- grow -->\n", "<!-- grow -->\n\nmore\n\n"));
    }

    #[test]
    fn a_page_without_both_markers_in_their_order_is_not_touched() {
        assert_eq!(TABLE.filled("<!-- /table -->\n<!-- table -->\n", "new"), None);
        assert_eq!(TABLE.filled("# Title\n<!-- grow -->\n<!-- /grow -->\n", "new"), None);
    }

    #[test]
    fn a_table_goes_between_the_markers_of_a_file_or_is_all_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("table.md");
        write_table(&file, TABLE, "| a |\n").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "| a |\n");
        fs::write(&file, "# T\n<!-- table -->\n<!-- /table -->\n").unwrap();
        write_table(&file, TABLE, "| b |\n").unwrap();
        assert!(fs::read_to_string(&file).unwrap().contains("-->\n\n| b |\n\n<!--"));
        // A page that has other tables is no file for this one.
        let error = write_table(&file, PageMarkers("grow"), "| c |\n").unwrap_err().to_string();
        assert!(error.contains("<!-- grow -->") && error.contains("table.md.new"), "{error}");
        assert!(fs::read_to_string(&file).unwrap().contains("| b |"));
        assert_eq!(fs::read_to_string(folder.path().join("table.md.new")).unwrap(), "| c |\n");
    }

    #[test]
    fn the_command_shows_no_address_and_no_place_of_the_machine() {
        let arguments =
            ["table", "--database-url", "postgres://ada:secret@db/x", "--redis-url=redis://:secret@db"];
        let paths = ["--programs", "target/release", "--model-dir", "/srv/models/mini"];
        let shown = command_line(arguments.into_iter().chain(paths).map(str::to_owned));
        assert_eq!(
            shown,
            "lectern-load table --database-url postgres://… --redis-url=redis://… --programs target/release --model-dir …/mini"
        );
    }
}
