//! A model's name on a hub.

use std::{fmt, str::FromStr};

use super::HubError;

/// The most bytes of an owner, a name or a part of a revision.
const MAX_PART: usize = 96;

/// A model on a hub: `owner/name`, or `owner/name@revision` with a commit, branch or tag. Its parts are safe as segments
/// of a path and of a URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModelId {
    owner: String,
    name: String,
    revision: Option<String>,
}

const SHAPE: &str = "a model is written owner/name, such as sentence-transformers/all-MiniLM-L6-v2";
const NAME: &str = "a model's owner and name have letters, digits, `-`, `_` and `.` only, begin with a letter or digit, and are at most 96 characters long";
const REVISION: &str =
    "a model's revision is a commit, branch or tag: letters, digits, `-`, `_`, `.`, and `/` between them";

impl ModelId {
    /// Who published it.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The commit, branch or tag that is wanted, when it was said.
    pub fn revision(&self) -> Option<&str> {
        self.revision.as_deref()
    }
}

impl FromStr for ModelId {
    type Err = HubError;

    fn from_str(text: &str) -> Result<Self, HubError> {
        let (path, revision) = match text.trim().split_once('@') {
            Some((path, revision)) => (path, Some(revision)),
            None => (text.trim(), None),
        };
        let (owner, name) = path.split_once('/').ok_or(HubError::Name(SHAPE))?;
        if name.contains('/') {
            return Err(HubError::Name(SHAPE));
        }
        if !is_part(owner) || !is_part(name) {
            return Err(HubError::Name(NAME));
        }
        if !revision.is_none_or(|revision| revision.split('/').all(is_part) && revision.len() <= 2 * MAX_PART)
        {
            return Err(HubError::Name(REVISION));
        }
        Ok(Self { owner: owner.to_owned(), name: name.to_owned(), revision: revision.map(str::to_owned) })
    }
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)?;
        match &self.revision {
            Some(revision) => write!(f, "@{revision}"),
            None => Ok(()),
        }
    }
}

/// Never `.` or `..`, nor a hidden file: the first character is a letter or digit.
fn is_part(text: &str) -> bool {
    text.len() <= MAX_PART
        && text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// Whether it is a whole commit: nothing that it names can change.
pub(super) fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written_alike() {
        for text in [
            "sentence-transformers/all-MiniLM-L6-v2",
            "BAAI/bge-small-en-v1.5",
            "a/b@main",
            "a/b@refs/pr/5",
            "a/b@c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
        ] {
            let model: ModelId = text.parse().unwrap();
            assert_eq!(model.to_string(), text);
        }
        let model: ModelId = " owner/name@v1.0 ".parse().unwrap();
        assert_eq!((model.owner(), model.name(), model.revision()), ("owner", "name", Some("v1.0")));
    }

    #[test]
    fn what_could_leave_its_folder_or_change_a_url_is_refused() {
        let long = format!("owner/{}", "n".repeat(97));
        for (text, error) in [
            ("", SHAPE),
            ("all-MiniLM-L6-v2", SHAPE),
            ("a/b/c", SHAPE),
            ("https://huggingface.co/a/b", SHAPE),
            ("../b", NAME),
            ("a/..", NAME),
            ("/b", NAME),
            ("a/", NAME),
            ("a/b?c", NAME),
            ("a/b c", NAME),
            ("ä/b", NAME),
            (&long, NAME),
            ("a/b@", REVISION),
            ("a/b@..", REVISION),
            ("a/b@x/../../y", REVISION),
            ("a/b@x//y", REVISION),
            ("a/b@x%2f", REVISION),
            ("a/b@c@d", REVISION),
        ] {
            assert_eq!(text.parse::<ModelId>().unwrap_err().to_string(), error, "{text}");
        }
    }
}
