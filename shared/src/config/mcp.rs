//! Programs that serve the Model Context Protocol over their standard input and output.

use super::{
    ConfigError, SettingsSource,
    command::{self, ShellQuoting},
    parse::ParseResult,
};

/// Longest name of a program.
const NAME: usize = 64;

/// What a program gets of the service's environment: where programs and its own files are, and its language.
const ENVIRONMENT: [&str; 3] = ["PATH", "HOME", "LANG"];

/// A program that the operator lets tools use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpProgram {
    /// What tools call it by.
    pub name: String,
    /// The program and its arguments; at least one word.
    pub command: Vec<String>,
    /// All that it gets of the environment, by name.
    pub environment: Vec<(String, String)>,
}

/// The programs that are named.
pub(super) fn programs(source: &SettingsSource) -> Result<Vec<McpProgram>, ConfigError> {
    let environment = source.passed_on(&ENVIRONMENT);
    let programs = source.commands("LECTERN_MCP_SERVERS", |text| {
        let mut programs: Vec<McpProgram> = Vec::new();
        let entries = entries(text).into_iter().map(str::trim).filter(|entry| !entry.is_empty());
        for (place, entry) in (1..).zip(entries) {
            let (name, command) = named_command(place, entry)?;
            if programs.iter().any(|other| other.name == name) {
                return Err(format!("names {name} twice"));
            }
            programs.push(McpProgram { name, command, environment: environment.clone() });
        }
        Ok(programs)
    })?;
    Ok(programs.unwrap_or_default())
}

/// A program's name and its command, as they stand at a place of the list. Whatever is no name may belong to a command, and is not told.
fn named_command(place: usize, entry: &str) -> ParseResult<(String, Vec<String>)> {
    let is_name = |name: &&str| {
        (1..=NAME).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    let named = entry.split_once('=').map(|(name, command)| (name.trim(), command));
    let (name, command) = named.filter(|(name, _)| is_name(name)).ok_or_else(|| {
        format!(
            "must list programs as name=command, separated by `;`, the names of letters, digits, `.`, `_` and `-`; number {place} is none"
        )
    })?;
    match command::words(command) {
        Ok(words) => Ok((name.to_owned(), words)),
        Err(problem) => Err(format!("the command of {name} {problem}")),
    }
}

/// What stands between semicolons; one within quotes or behind a backslash separates nothing.
fn entries(text: &str) -> Vec<&str> {
    let (mut found, mut begin) = (Vec::new(), 0);
    let mut quoting = ShellQuoting::default();
    for (at, c) in text.char_indices() {
        if !quoting.is_quoted(at, c) && c == ';' {
            found.push(&text[begin..at]);
            begin = at + 1;
        }
    }
    found.push(&text[begin..]);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<McpProgram>, ConfigError> {
        let pairs = [("LECTERN_MCP_SERVERS", text), ("PATH", "/bin"), ("SECRET", "s3cret")];
        programs(&SettingsSource::from_pairs(&pairs))
    }

    #[test]
    fn programs_are_read_with_arguments_of_any_kind() {
        let read =
            read(r#"files=/usr/bin/mcp-files --root '/srv/my; files' "a;b" c\;d ; clock = mcp-clock;"#)
                .unwrap();
        let commands: Vec<_> = read.iter().map(|one| (one.name.as_str(), one.command.join("|"))).collect();
        assert_eq!(
            commands,
            [
                ("files", "/usr/bin/mcp-files|--root|/srv/my; files|a;b|c;d".to_owned()),
                ("clock", "mcp-clock".to_owned())
            ]
        );
        assert_eq!(read[0].environment, [("PATH".to_owned(), "/bin".to_owned())], "and nothing else");
    }

    #[test]
    fn what_is_no_list_of_programs_is_refused_with_what_is_wrong() {
        assert_eq!(read(" ; "), Ok(Vec::new()));
        for (text, hint) in [
            ("/usr/bin/mcp-files", "name=command"),
            ("my files=mcp-files", "name=command"),
            ("files=", "of files must begin with the name of a program"),
            ("files=''", "of files must begin with the name of a program"),
            ("files=a;files=b", "files twice"),
            (
                "files=a; clock= b 'c",
                "of clock has a quote that is not closed, or a backslash at its end (character 3)",
            ),
            ("files=a;; clock", "number 2 is none"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.problem.contains(hint), "{text}: {error}");
        }
    }
}
