//! The media types and the ends of names that are known.

use super::FileFormat::{
    self, Captions, Html, Json, LegacyOffice, Mail, Markdown, Package, Pdf, Table, Text, Workbook,
};

/// A kind of file.
#[derive(Debug)]
struct FileType {
    format: FileFormat,
    media_type: &'static str,
    /// How its name ends; the usual end first.
    extensions: &'static [&'static str],
}

const fn kind(format: FileFormat, media_type: &'static str, extensions: &'static [&'static str]) -> FileType {
    FileType { format, media_type, extensions }
}

/// They say nothing of what a file is.
const VAGUE: [&str; 2] = ["text/plain", "application/octet-stream"];

/// An e-mail that Outlook saved.
const OUTLOOK: &str = "application/vnd.ms-outlook";

/// The first of each format is the one of a file of which no more is known.
const KINDS: &[FileType] = &[
    kind(Pdf, "application/pdf", &["pdf"]),
    kind(Html, "text/html", &["html", "htm"]),
    kind(Html, "application/xhtml+xml", &["xhtml", "xht"]),
    kind(Markdown, "text/markdown", &["md", "markdown", "mdown", "mkd"]),
    kind(Markdown, "text/x-markdown", &[]),
    kind(Table, "text/csv", &["csv"]),
    kind(Table, "text/tab-separated-values", &["tsv", "tab"]),
    kind(Table, "text/x-csv", &[]),
    kind(Table, "application/csv", &[]),
    kind(Table, "text/comma-separated-values", &[]),
    kind(Json, "application/json", &["json"]),
    kind(Json, "application/x-ndjson", &["ndjson", "jsonl"]),
    kind(Json, "application/jsonl", &[]),
    kind(Json, "application/geo+json", &["geojson"]),
    kind(Json, "text/json", &[]),
    kind(Mail, "message/rfc822", &["eml"]),
    kind(Mail, "multipart/related", &["mhtml", "mht"]),
    kind(Mail, "application/x-mimearchive", &[]),
    kind(Captions, "text/vtt", &["vtt"]),
    kind(Captions, "application/x-subrip", &["srt"]),
    kind(Captions, "text/srt", &[]),
    kind(Captions, "application/ttml+xml", &["ttml", "dfxp"]),
    kind(Captions, "application/ttaf+xml", &[]),
    kind(Captions, "text/plain", &["sbv"]),
    kind(Text, "text/plain", &["txt"]),
    kind(Text, "application/xml", &["xml"]),
    kind(Text, "application/rss+xml", &["rss"]),
    kind(Text, "application/atom+xml", &["atom"]),
    kind(Text, "image/svg+xml", &["svg"]),
    kind(Package, "application/zip", &["zip"]),
    kind(Package, "application/vnd.openxmlformats-officedocument.wordprocessingml.document", &["docx"]),
    kind(Package, "application/vnd.openxmlformats-officedocument.wordprocessingml.template", &["dotx"]),
    kind(Package, "application/vnd.ms-word.document.macroenabled.12", &["docm"]),
    kind(Package, "application/vnd.openxmlformats-officedocument.presentationml.presentation", &["pptx"]),
    kind(Package, "application/vnd.openxmlformats-officedocument.presentationml.slideshow", &["ppsx"]),
    kind(Package, "application/vnd.openxmlformats-officedocument.presentationml.template", &["potx"]),
    kind(Package, "application/vnd.ms-powerpoint.presentation.macroenabled.12", &["pptm"]),
    kind(Package, "application/vnd.oasis.opendocument.text", &["odt"]),
    kind(Package, "application/vnd.oasis.opendocument.text-template", &["ott"]),
    kind(Package, "application/vnd.oasis.opendocument.presentation", &["odp"]),
    kind(Package, "application/vnd.oasis.opendocument.presentation-template", &["otp"]),
    kind(Package, "application/epub+zip", &["epub"]),
    kind(Package, OUTLOOK, &["msg"]),
    kind(Workbook, "application/octet-stream", &[]),
    kind(Workbook, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", &["xlsx"]),
    kind(Workbook, "application/vnd.openxmlformats-officedocument.spreadsheetml.template", &["xltx"]),
    kind(Workbook, "application/vnd.ms-excel.sheet.macroenabled.12", &["xlsm"]),
    kind(Workbook, "application/vnd.ms-excel.template.macroenabled.12", &["xltm"]),
    kind(Workbook, "application/vnd.ms-excel.sheet.binary.macroenabled.12", &["xlsb"]),
    kind(Workbook, "application/vnd.ms-excel", &["xls", "xlt"]),
    kind(Workbook, "application/vnd.oasis.opendocument.spreadsheet", &["ods"]),
    kind(Workbook, "application/vnd.oasis.opendocument.spreadsheet-template", &["ots"]),
    kind(LegacyOffice, "application/x-ole-storage", &[]),
    kind(LegacyOffice, "application/msword", &["doc", "dot"]),
    kind(LegacyOffice, "application/vnd.ms-powerpoint", &["ppt", "pps", "pot"]),
];

/// What a file's name and media type say of it.
#[derive(Debug)]
pub(super) struct FormatHints<'a> {
    /// What comes after the name's last dot, in lower case.
    extension: Option<String>,
    content_type: Option<&'a str>,
}

impl<'a> FormatHints<'a> {
    pub(super) fn of(name: Option<&str>, content_type: Option<&'a str>) -> Self {
        Self { extension: name.and_then(extension), content_type }
    }

    fn by_extension(&self) -> Option<&'static FileType> {
        let extension = self.extension.as_deref()?;
        KINDS.iter().find(|kind| kind.extensions.contains(&extension))
    }

    fn by_type(&self) -> Option<&'static FileType> {
        let content_type = self.content_type.filter(|content_type| !VAGUE.contains(content_type))?;
        KINDS.iter().find(|kind| kind.media_type == content_type)
    }

    /// Whether it is called a page.
    pub(super) fn is_sent_as_page(&self) -> bool {
        self.by_type().is_some_and(|kind| kind.format == Html)
    }

    /// Whether it is called a spreadsheet. The name of another kind of container wins over the media type.
    pub(super) fn is_workbook(&self) -> bool {
        let containers = [Package, Workbook, LegacyOffice];
        let by_extension = self.by_extension().filter(|kind| containers.contains(&kind.format));
        by_extension.or_else(|| self.by_type()).is_some_and(|kind| kind.format == Workbook)
    }

    /// Whether it is called an e-mail of Outlook.
    pub(super) fn is_outlook(&self) -> bool {
        self.by_extension().or_else(|| self.by_type()).is_some_and(|kind| kind.media_type == OUTLOOK)
    }

    /// What it is called, if it is text.
    pub(super) fn text(&self) -> Option<FileFormat> {
        let of_text = |kind: &FileType| match kind.format {
            // Programs export tables under the names of spreadsheets.
            Workbook => Some(Table),
            // A text file under this name shows nothing but that it was named.
            Text if kind.extensions == ["txt"] => None,
            format @ (Html | Markdown | Table | Captions | Json | Mail | Text) => Some(format),
            Pdf | Package | LegacyOffice | FileFormat::Binary => None,
        };
        let other_json = || self.content_type.is_some_and(|content_type| content_type.ends_with("+json"));
        self.by_extension()
            .and_then(of_text)
            .or_else(|| self.by_type().and_then(of_text))
            .or_else(|| other_json().then_some(Json))
    }
}

/// What comes after a name's last dot, in lower case.
pub(super) fn extension(name: &str) -> Option<String> {
    name.trim_end().rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase())
}

/// The media type of a file of a known format: of those that it can have, the one that its name, or else its sender, tells.
pub(super) fn media_type(format: FileFormat, named: &FormatHints<'_>) -> &'static str {
    let fits = |kind: &&FileType| kind.format == format;
    let kind = named.by_extension().filter(fits).or_else(|| named.by_type().filter(fits));
    kind.or_else(|| KINDS.iter().find(fits)).map_or("application/octet-stream", |kind| kind.media_type)
}

/// How names of files of this media type end; the usual end first, none when any may.
pub(super) fn extensions(media_type: &str) -> &'static [&'static str] {
    if VAGUE.contains(&media_type) {
        return &[];
    }
    KINDS.iter().find(|kind| kind.media_type == media_type).map_or(&[], |kind| kind.extensions)
}
