//! What kinds of documents there are.

use super::text_enum;

text_enum! {
    /// What kind of source a document has.
    DocumentType {
        /// Plain text and what is read like it.
        Txt => "TXT",
        /// A PDF file.
        Pdf => "PDF",
        /// The transcript of a video.
        Video => "VIDEO",
        /// A table.
        Csv => "CSV",
        /// A web page.
        Url => "URL",
    }
}
