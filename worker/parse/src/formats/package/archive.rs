//! The ZIP archive that a package is, opened so that a stranger's one costs no more than is set here.

use std::{
    collections::BTreeMap,
    io::{Cursor, Read},
};

use zip::{ZipArchive, result::ZipError};

use crate::{charset, protocol::ParseError};

/// Most entries a package may have; large books and presentations have some thousands.
const MAX_ENTRIES: usize = 10_000;
/// Most bytes that one entry may unpack to.
const MAX_ENTRY: u64 = 256 << 20;
/// Most bytes that are unpacked in all, entries counted as often as they are read.
const MAX_UNPACKED: u64 = 512 << 20;
/// What an entry may unpack to for each of its packed bytes. The markup of an even table gets to a hundred; a bomb, to a thousand.
const MAX_RATIO: u64 = 250;
/// Bytes to which an entry may unpack whatever its ratio.
const RATIO_FREE: u64 = 4 << 20;
/// Where an encoding is named in a part, in bytes from its beginning.
const DECLARATION: usize = 200;

/// An archive's entries, found by their names in any case.
pub(super) struct PackageArchive {
    zip: ZipArchive<Cursor<Vec<u8>>>,
    /// Numbers of the entries by their names as [`key`] writes them.
    entries: BTreeMap<String, usize>,
    unpacked: u64,
}

impl PackageArchive {
    /// Reads the list of entries.
    pub(super) fn open(bytes: Vec<u8>) -> Result<Self, ParseError> {
        let zip = ZipArchive::new(Cursor::new(bytes)).map_err(|_| ParseError::Damaged)?;
        if zip.len() > MAX_ENTRIES {
            return Err(ParseError::Unsupported(format!("a ZIP archive of more than {MAX_ENTRIES} files")));
        }
        let mut entries = BTreeMap::new();
        for number in 0..zip.len() {
            if let Some(Ok(name)) = zip.name_for_index(number) {
                entries.entry(key(&name)).or_insert(number);
            }
        }
        Ok(Self { zip, entries, unpacked: 0 })
    }

    /// The archive's own bytes.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.zip.into_inner().into_inner()
    }

    /// Whether there is an entry of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.entries.contains_key(&key(name))
    }

    /// What an entry unpacks to; `None` when there is none of this name.
    pub(super) fn bytes(&mut self, name: &str) -> Result<Option<Vec<u8>>, ParseError> {
        let Some(number) = self.entries.get(&key(name)) else { return Ok(None) };
        let entry = self.zip.by_index(*number).map_err(|error| match error {
            ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => ParseError::PasswordRequired,
            ZipError::CompressionMethodNotSupported(_) => {
                ParseError::Unsupported("a ZIP archive that is packed in an unusual way".to_owned())
            }
            _ => ParseError::Damaged,
        })?;
        let by_ratio = entry.compressed_size().saturating_mul(MAX_RATIO).max(RATIO_FREE);
        let by_size = MAX_ENTRY.min(MAX_UNPACKED.saturating_sub(self.unpacked));
        let mut bytes = Vec::new();
        let limit = by_ratio.min(by_size);
        entry.take(limit + 1).read_to_end(&mut bytes).map_err(|_| ParseError::Damaged)?;
        let length = bytes.len() as u64;
        self.unpacked += length.min(limit);
        if length <= limit { Ok(Some(bytes)) } else { Err(ParseError::UnpacksTooFar) }
    }

    /// An entry as text, in the encoding that it names; `None` when there is none of this name.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, ParseError> {
        let Some(bytes) = self.bytes(name)? else { return Ok(None) };
        let (text, _, _) = charset::decode(&bytes, declared(&bytes).as_deref());
        Ok(Some(text.into_owned()))
    }
}

/// Names are the same whatever their case, and some programs write them from the root or with backslashes.
fn key(name: &str) -> String {
    name.trim_start_matches(['/', '\\']).replace('\\', "/").to_lowercase()
}

/// The encoding that an XML declaration names.
fn declared(bytes: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(bytes.get(..DECLARATION).unwrap_or(bytes));
    let (declaration, _) = head.split_once("?>")?;
    let (_, value) = declaration.split_once("encoding")?;
    value.split(['"', '\'']).nth(1).map(str::to_owned)
}

/// The entry that a reference in another one leads to: relative to the folder of `from`, or to the root when it begins with a slash.
/// `None` for addresses outside the package.
pub(super) fn resolve(from: &str, reference: &str) -> Option<String> {
    let reference = reference.split(['#', '?']).next().unwrap_or_default();
    if reference.is_empty() || reference.contains("://") {
        return None;
    }
    let absolute = reference.starts_with('/');
    let mut path: Vec<&str> = if absolute { Vec::new() } else { from.split('/').collect() };
    path.pop();
    for step in reference.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                path.pop();
            }
            step => path.push(step),
        }
    }
    Some(path.join("/"))
}
