//! What an uploaded file is.

use lectern_shared::model::document::DocumentType;

use crate::routes::documents::file_name;

/// Bytes from the beginning that are looked at.
pub(super) const SNIFFED: usize = 1_024;

/// How files begin that are neither text nor PDF.
const MAGIC: &[&[u8]] = &[
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"\xd0\xcf\x11\xe0",
    b"Rar!",
    b"7z\xbc\xaf",
    b"\x28\xb5\x2f\xfd",
    b"BZh",
    b"\xfd7zXZ",
    b"%!PS",
];

/// What the bytes of a file tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Pdf,
    Text,
}

impl Kind {
    /// Tells it by the first bytes of a file; none when it is neither.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        let head = head.get(..SNIFFED).unwrap_or(head);
        if head.windows(5).any(|window| window == b"%PDF-") {
            return Some(Self::Pdf);
        }
        let wide = head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff");
        let binary = (!wide && head.contains(&0)) || MAGIC.iter().any(|magic| head.starts_with(magic));
        (!binary).then_some(Self::Text)
    }

    /// Whether a document of this type can be made of it.
    pub(super) fn can_be(self, r#type: DocumentType) -> bool {
        match r#type {
            DocumentType::Pdf => self == Self::Pdf,
            DocumentType::Txt | DocumentType::Csv => self == Self::Text,
            DocumentType::Url | DocumentType::Video => false,
        }
    }
}

/// What a file tells of the document that is made of it.
pub(super) struct Told {
    pub(super) kind: Kind,
    pub(super) r#type: DocumentType,
    pub(super) document_name: String,
}

impl Told {
    /// Tells it by the first bytes of a file, its name, and what its sender calls it; none when it is neither PDF nor text.
    pub(super) fn of(head: &[u8], name: &str, content_type: Option<&str>) -> Option<Self> {
        let kind = Kind::of(head)?;
        let document_name = file_name::document_name(name);
        let r#type = match kind {
            Kind::Pdf => DocumentType::Pdf,
            Kind::Text if file_name::is_table(&document_name) || content_type == Some("text/csv") => {
                DocumentType::Csv
            }
            Kind::Text => DocumentType::Txt,
        };
        Some(Self { kind, r#type, document_name })
    }

    /// Of a file that is not there.
    pub(super) fn nothing() -> Self {
        Self { kind: Kind::Text, r#type: DocumentType::Txt, document_name: file_name::document_name("") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_told_by_its_first_bytes() {
        let late = [&vec![b' '; SNIFFED - 5][..], b"%PDF-1.4"].concat();
        let too_late = [&vec![b' '; SNIFFED - 4][..], b"%PDF-1.4"].concat();
        for (head, kind) in [
            (&b"%PDF-1.7\n\0\x01"[..], Some(Kind::Pdf)),
            (b"junk before %PDF-1.4", Some(Kind::Pdf)),
            (&late, Some(Kind::Pdf)),
            (&too_late, Some(Kind::Text)),
            (b"plain words", Some(Kind::Text)),
            (b"gr\xfcn", Some(Kind::Text)),
            (b"\xff\xfeh\0i\0", Some(Kind::Text)),
            (b"\x89PNG\r\n\x1a\n", None),
            (b"PK\x03\x04 a spreadsheet", None),
            (b"a\0b", None),
        ] {
            assert_eq!(Kind::of(head), kind, "{:?}", String::from_utf8_lossy(head));
        }
    }
}
