//! What the child is asked to do, before it gets the document's bytes.

use std::path::PathBuf;

use lectern_shared::model::page::PdfEngineName;
use serde::{Deserialize, Serialize};

/// How a document's bytes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SourceKind {
    /// Portable Document Format.
    Pdf,
    /// A web page.
    Html,
    /// Delimited text: CSV and its relatives.
    Table,
    /// A spreadsheet file: XLSX, XLSM, XLSB, XLS, ODS.
    Workbook,
    /// Another office document in a ZIP package, or in the container of older ones: DOCX, PPTX, ODT, ODP, EPUB, MSG.
    Package,
    /// JSON, or JSON Lines.
    Json,
    /// An e-mail, or a web page that was saved with all that belongs to it: EML, MHT.
    Mail,
    /// Text that may be Markdown.
    Text,
    /// Text that is Markdown.
    Markdown,
    /// Captions, or what somebody wrote down by hand.
    Captions,
}

/// What to read of a document, and what is known of it besides its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParseOptions {
    /// PDF: first page to read, counted from 1; the first one if absent.
    pub from_page: Option<u32>,
    /// PDF: last page to read, inclusive; the last one if absent or beyond the end.
    pub to_page: Option<u32>,
    /// The most pages that may be selected.
    pub max_pages: u32,
    /// The most text that may come out, in characters (Unicode code points).
    pub max_chars: u64,
    /// The encoding that the server named.
    pub charset: Option<String>,
    /// Where it came from, for what its links are relative to.
    pub url: Option<String>,
    /// The file's name.
    pub name: Option<String>,
    /// PDF: the pdfium library; without one the built-in engines read.
    pub pdfium: Option<PathBuf>,
    /// PDF: [`PdfEngineName::PdfOxide`] leaves out the other built-in engine, which reads first otherwise.
    pub engine: Option<PdfEngineName>,
    /// PDF: whether pages without text are handed out as images.
    pub images: bool,
}

impl Default for ParseOptions {
    fn default() -> Self {
        Self {
            from_page: None,
            to_page: None,
            max_pages: 5_000,
            max_chars: 20_000_000,
            charset: None,
            url: None,
            name: None,
            pdfium: None,
            engine: None,
            images: false,
        }
    }
}

/// What the parent tells the child before the document's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildRequest {
    /// The format of the bytes that follow.
    pub kind: SourceKind,
    /// What to read of them.
    pub options: ParseOptions,
    /// Address space the child allows itself, in bytes.
    pub memory_bytes: u64,
    /// Processor time the child allows itself, in seconds.
    pub cpu_seconds: u64,
}
