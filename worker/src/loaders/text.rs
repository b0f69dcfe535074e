//! Plain text and Markdown, in whatever encoding they come.

use lectern_shared::model::job::Warning;
use tokio::{fs::File, io::AsyncReadExt};

use super::{Extracted, LoadContext, charset, markdown};
use crate::{ingest::Failure, sandbox::Structure};

/// How a text is told to be Markdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Markdown {
    /// By what it is called.
    Known,
    /// By what it looks like, if at all.
    Perhaps,
}

/// Text that came with the document.
pub(super) async fn from_inline(content: String, context: &LoadContext<'_>) -> Result<Extracted, Failure> {
    let limit = context.limits.characters;
    blocking(move || Ok(structured(tidy(&content, limit)?, Markdown::Perhaps))).await
}

/// Text from a file.
pub(super) async fn load(
    file: File,
    bytes: u64,
    charset: Option<String>,
    kind: Markdown,
    context: &LoadContext<'_>,
) -> Result<Extracted, Failure> {
    let (text, warnings) = read(file, bytes, charset, context.limits.characters).await?;
    let mut extracted = blocking(move || Ok(structured(text, kind))).await?;
    extracted.warnings = warnings;
    Ok(extracted)
}

/// A whole file as text, with its line ends made alike, and what had to be gone past.
pub(super) async fn read(
    mut file: File,
    bytes: u64,
    charset: Option<String>,
    limit: u64,
) -> Result<(String, Vec<Warning>), Failure> {
    let mut raw = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
    file.read_to_end(&mut raw).await?;
    blocking(move || {
        let (text, encoding, replaced) = charset::decode(&raw, charset.as_deref());
        let mut warnings = Vec::new();
        if replaced {
            let count = text.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER).count() as u64;
            warnings.push(Warning {
                code: "undecodable_bytes".to_owned(),
                message: format!("Some bytes are not valid {} and were replaced.", encoding.name()),
                count,
            });
        }
        Ok((tidy(&text, limit)?, warnings))
    })
    .await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Failure::Panicked)?
}

fn structured(text: String, kind: Markdown) -> Extracted {
    let is_markdown = kind == Markdown::Known || markdown::looks_like(&text);
    let mut extracted = Extracted::plain(text);
    if is_markdown {
        extracted.structure = Structure::Markdown;
    }
    extracted
}

/// Line ends as `\n`, no NUL and no byte order mark.
pub(super) fn tidy(text: &str, limit: u64) -> Result<String, Failure> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut tidied = String::with_capacity(text.len());
    let mut characters = 0_u64;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\0' => continue,
            '\r' => {
                rest.next_if_eq(&'\n');
                tidied.push('\n');
            }
            c => tidied.push(c),
        }
        characters += 1;
        if characters > limit {
            let message =
                format!("The text has more than {limit} characters. Split it into several documents.");
            return Err(Failure::permanent("too_large", message));
        }
    }
    Ok(tidied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_are_made_alike_and_nul_is_dropped() {
        assert_eq!(tidy("\u{feff}a\r\nb\rc\n\0d", 100).unwrap(), "a\nb\nc\nd");
        assert!(matches!(tidy("abc", 2), Err(Failure::Document(error)) if error.code == "too_large"));
    }
}
