//! What an uploaded file is, and what documents can be made of it.

use lectern_shared::{
    file_name,
    format::{FileFormat, FileIdentity},
    media_type,
    model::document::DocumentType,
};

use crate::error::{ApiError, ApiErrorKind};

/// What a file tells of the document that is made of it.
pub(crate) struct FileKind {
    format: FileFormat,
    pub(crate) r#type: DocumentType,
    /// How the file is called, without folders; none when it has no usable name.
    pub(crate) file_name: Option<String>,
    /// With the encoding that its sender named, if it is a text.
    pub(crate) media_type: String,
}

impl FileKind {
    /// Tells it by the first bytes of a file, its name, and the media type that its sender gives it.
    ///
    /// # Errors
    /// When no document can be made of it.
    pub(crate) fn of(head: &[u8], name: &str, content_type: Option<&str>) -> Result<Self, ApiError> {
        let file_name = file_name::cleaned(name);
        let name = file_name.as_deref();
        let (essence, charset) =
            (content_type.and_then(media_type::essence), content_type.and_then(media_type::charset));
        let identity = FileIdentity::of(head, name, essence.as_deref(), charset.as_deref());
        let FileIdentity { format, r#type, media_type } = identity.map_err(|message| {
            ApiError::new(ApiErrorKind::UnsupportedType, "unsupported_media_type", message)
        })?;
        let media_type = media_type::with_charset(media_type, charset.as_deref());
        Ok(Self { format, r#type, file_name, media_type })
    }

    /// Of a file that is not there.
    pub(crate) fn nothing() -> Self {
        let format = FileFormat::Text;
        let media_type = format.media_type(None, None).to_owned();
        Self { format, r#type: DocumentType::Txt, file_name: None, media_type }
    }

    /// How the document is called unless its owner says otherwise.
    pub(crate) fn document_name(&self) -> &str {
        self.file_name.as_deref().unwrap_or(file_name::NAMELESS)
    }

    /// What a document of this type is with it in the place of a file of this media type: what its owner has said of the like holds on.
    pub(crate) fn type_instead_of(&self, r#type: DocumentType, former: Option<&str>) -> DocumentType {
        let is_alike = former.and_then(media_type::essence) == media_type::essence(&self.media_type);
        if is_alike && can_be(self.format, r#type) { r#type } else { self.r#type }
    }

    /// Why a document of this type cannot be made of it; none when one can.
    pub(crate) fn unfit_for(&self, r#type: DocumentType) -> Option<String> {
        if r#type == DocumentType::Url {
            let message = "cannot be URL for a file: a web page that was saved is TXT; one that is to be fetched is a \
                           document with its url";
            return Some(message.to_owned());
        }
        (!can_be(self.format, r#type))
            .then(|| format!("cannot be {} for this file, which is {}", r#type, self.r#type))
    }
}

/// Whether a document of this type can be made of a file. Among kinds of text, its owner knows best.
fn can_be(format: FileFormat, r#type: DocumentType) -> bool {
    match r#type {
        DocumentType::Pdf => format == FileFormat::Pdf,
        DocumentType::Csv => {
            matches!(
                format,
                FileFormat::Table | FileFormat::Workbook | FileFormat::Text | FileFormat::Markdown
            )
        }
        DocumentType::Video => {
            matches!(
                format,
                FileFormat::Captions | FileFormat::Text | FileFormat::Markdown | FileFormat::Json
            )
        }
        DocumentType::Txt => match format {
            FileFormat::Text
            | FileFormat::Markdown
            | FileFormat::Html
            | FileFormat::Json
            | FileFormat::Mail
            | FileFormat::Table
            | FileFormat::Captions
            | FileFormat::Package => true,
            FileFormat::Pdf | FileFormat::Workbook | FileFormat::LegacyOffice | FileFormat::Binary => false,
        },
        DocumentType::Url => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZIP: &[u8] = b"PK\x03\x04";
    const OLE2: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";

    #[test]
    fn a_file_becomes_a_document_of_the_type_that_it_shows() {
        for (head, name, content_type, r#type, media_type) in [
            (&b"%PDF-1.7\n\0\x01"[..], "called.txt", "text/plain", DocumentType::Pdf, "application/pdf"),
            (b"plain words", "notes", "", DocumentType::Txt, "text/plain"),
            (
                b"Gar\xe7on",
                "menu.txt",
                "text/plain; charset=Latin1",
                DocumentType::Txt,
                "text/plain;charset=latin1",
            ),
            (b"a,b", "table.csv", "application/octet-stream", DocumentType::Csv, "text/csv"),
            (b"a\tb", "table.TSV", "", DocumentType::Csv, "text/tab-separated-values"),
            (b"a,b", "table", "text/csv", DocumentType::Csv, "text/csv"),
            (b"# Title", "read.md", "", DocumentType::Txt, "text/markdown"),
            (b"<!DOCTYPE html>", "page.html", "text/html", DocumentType::Txt, "text/html"),
            (b"{}", "data.json", "", DocumentType::Txt, "application/json"),
            (b"From: ada@example.com\n", "letter.eml", "", DocumentType::Txt, "message/rfc822"),
            (b"From: ada@example.com\n", "letter", "message/rfc822", DocumentType::Txt, "message/rfc822"),
            (b"MIME-Version: 1.0\n", "page.mht", "", DocumentType::Txt, "multipart/related"),
            (b"WEBVTT\n", "talk.vtt", "", DocumentType::Video, "text/vtt"),
            (ZIP, "book.epub", "", DocumentType::Txt, "application/epub+zip"),
            (ZIP, "table.ods", "", DocumentType::Csv, "application/vnd.oasis.opendocument.spreadsheet"),
            (OLE2, "table.xls", "", DocumentType::Csv, "application/vnd.ms-excel"),
        ] {
            let kind = FileKind::of(head, name, Some(content_type));
            let kind = kind.unwrap_or_else(|error| panic!("{name}: {error:?}"));
            assert_eq!((kind.r#type, kind.media_type.as_str()), (r#type, media_type), "{name}");
            assert_eq!(kind.document_name(), name);
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_refused_with_what_to_do() {
        for (head, name, what) in [
            (&b"\x89PNG\r\n\x1a\n"[..], "scan.png", "DOCX"),
            (b"a\0b", "a.bin", "PDF"),
            (OLE2, "letter.doc", ".docx"),
            (OLE2, "letter.docx", "without a password"),
        ] {
            let error = FileKind::of(head, name, None).err().unwrap();
            assert_eq!(error.kind, ApiErrorKind::UnsupportedType);
            assert!(error.message.contains(what), "{name}: {}", error.message);
        }
    }

    #[test]
    fn the_type_that_is_given_must_fit_the_file() {
        use DocumentType::{Csv, Pdf, Txt, Url, Video};
        for (head, name, fitting) in [
            (&b"%PDF-1.7"[..], "a.pdf", &[Pdf][..]),
            (b"words", "a.txt", &[Txt, Csv, Video]),
            (b"a,b", "a.csv", &[Txt, Csv]),
            (b"# Title", "a.md", &[Txt, Csv, Video]),
            (b"{}", "a.json", &[Txt, Video]),
            (b"<html>", "a.html", &[Txt]),
            (b"From: ada@example.com\n", "a.eml", &[Txt]),
            (b"WEBVTT", "a.vtt", &[Txt, Video]),
            (ZIP, "a.docx", &[Txt]),
            (ZIP, "a.xlsx", &[Csv]),
        ] {
            let kind = FileKind::of(head, name, None).unwrap_or_else(|error| panic!("{name}: {error:?}"));
            for r#type in [Txt, Pdf, Csv, Video, Url] {
                assert_eq!(kind.unfit_for(r#type).is_none(), fitting.contains(&r#type), "{name} as {type}");
            }
        }
        let read =
            |head: &[u8], name| FileKind::of(head, name, None).unwrap_or_else(|error| panic!("{error:?}"));
        let (text, table) = (read(b"words", "a.txt"), read(b"a,b", "a.csv"));
        assert_eq!(text.type_instead_of(Video, Some("text/plain;charset=latin1")), Video, "as it was said");
        assert_eq!(table.type_instead_of(Txt, Some("text/csv")), Txt, "as it was said");
        assert_eq!(table.type_instead_of(Txt, Some("text/plain")), Csv, "it is another kind of file");
        assert_eq!(text.type_instead_of(Pdf, Some("application/pdf")), Txt);
        assert_eq!(text.type_instead_of(Url, None), Txt);
        assert!(FileKind::nothing().unfit_for(Url).is_some_and(|message| message.contains("url")));
    }
}
