//! Commands of the operator: a program and its arguments, which are run without a shell. Arguments may be secrets, so that a problem tells
//! where it is, and nothing of them.

use super::{ConfigError, SettingsSource, parse::ParseResult};

impl SettingsSource {
    /// A setting that holds commands. Its value is not in the problem.
    pub(super) fn commands<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> ParseResult<T>,
    ) -> Result<Option<T>, ConfigError> {
        let Some(text) = self.get(name)? else { return Ok(None) };
        let refuse = |problem: String| ConfigError { setting: name.to_owned(), problem };
        parse(text.trim()).map(Some).map_err(refuse)
    }
}

/// The words of a command; at least one, which names the program.
pub(super) fn words(text: &str) -> ParseResult<Vec<String>> {
    let text = text.trim();
    let Some(words) = shlex::split(text) else {
        let place = open_end(text).map(|at| format!(" (character {at})")).unwrap_or_default();
        return Err(format!("has a quote that is not closed, or a backslash at its end{place}"));
    };
    match words.first() {
        Some(program) if is_variable(program) => {
            let problem = "must begin with the name of a program, and not with a variable: no shell sets it, \
                           `env NAME=value program` does";
            Err(problem.to_owned())
        }
        Some(program) if !program.is_empty() && !program.starts_with('-') => Ok(words),
        Some(_) | None => Err("must begin with the name of a program".to_owned()),
    }
}

/// Whether the word before a program is what a shell sets for it, which may be a secret: `NAME=value`. Folders may have such names.
fn is_variable(word: &str) -> bool {
    !word.starts_with('-') && word.split('/').next().is_some_and(|first| first.contains('='))
}

/// The quote that is not closed, or the backslash that nothing stands behind: which character of a command it is, from 1.
fn open_end(text: &str) -> Option<usize> {
    let mut quoting = ShellQuoting::default();
    for (at, c) in (1..).zip(text.chars()) {
        quoting.is_quoted(at, c);
    }
    quoting.quote.map(|(_, at)| at).or(quoting.backslash)
}

/// What is within quotes, or behind a backslash, where a text is read from its beginning as a shell reads it.
#[derive(Default)]
pub(super) struct ShellQuoting {
    /// The quote that is open, and where it stands.
    quote: Option<(char, usize)>,
    /// Where the backslash stands that was just read.
    backslash: Option<usize>,
}

impl ShellQuoting {
    /// Reads the next character, and tells whether it means nothing by itself: it is quoted, or quotes others.
    pub(super) fn is_quoted(&mut self, at: usize, c: char) -> bool {
        if self.backslash.take().is_some() {
            return true;
        }
        match (c, self.quote) {
            ('\\', None | Some(('"', _))) => self.backslash = Some(at),
            ('\'' | '"', None) => self.quote = Some((c, at)),
            (_, Some((open, _))) if c == open => self.quote = None,
            (_, Some(_)) => {}
            (_, None) => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_words_of_which_the_first_names_a_program() {
        assert_eq!(words(r#" read "a b" c\ d 'it"s' "#).unwrap(), ["read", "a b", "c d", "it\"s"]);
        assert_eq!(words("/opt/a=b/read --key=c").unwrap(), ["/opt/a=b/read", "--key=c"]);
        for nothing in ["", " ", "''", "'' --key hunter2", "--key=hunter2 read"] {
            assert_eq!(words(nothing).unwrap_err(), "must begin with the name of a program");
        }
    }

    #[test]
    fn a_variable_before_a_program_is_refused_and_not_shown() {
        for command in ["KEY=hunter2 read", "KEY='hunter2 /x' read", "KEY=/srv/hunter2 read", "KEY= read"] {
            let problem = words(command).unwrap_err();
            assert!(problem.contains("not with a variable"), "{command}: {problem}");
            assert!(!problem.contains("hunter2") && !problem.contains("KEY"), "{problem}");
        }
        assert_eq!(words("env KEY=hunter2 read").unwrap(), ["env", "KEY=hunter2", "read"]);
    }

    #[test]
    fn what_a_command_leaves_open_is_told_by_its_place() {
        for (command, place) in [
            ("read 'page", 6),
            ("'read --key hunter2", 1),
            (r#"read "it's" 'and \"#, 13),
            ("read 'ä' \"ö", 10),
            (r#"read "a \" b"#, 6),
            (r"read \", 6),
            (r"read \\ \", 9),
        ] {
            let problem = words(command).unwrap_err();
            assert!(problem.ends_with(&format!("(character {place})")), "{command}: {problem}");
            assert!(!problem.contains("hunter2"), "{problem}");
        }
    }
}
