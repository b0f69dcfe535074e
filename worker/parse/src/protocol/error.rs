//! Why a document cannot be parsed, which its owner has to act on, and why a parser ends early.

use serde::{Deserialize, Serialize};

/// Why a parser in the child ends early.
#[derive(Debug)]
pub enum ParseAbort {
    /// The document cannot be parsed.
    Document(ParseError),
    /// The parser panicked where it cannot go on.
    Panicked,
    /// Nobody takes the frames any more.
    Output(std::io::Error),
}

impl From<ParseError> for ParseAbort {
    fn from(error: ParseError) -> Self {
        Self::Document(error)
    }
}

/// The document cannot be parsed. `Display` is one plain sentence or two for the document's owner.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum ParseError {
    /// The file opens only with a password that we do not have.
    #[error("The file is protected by a password. Remove the protection and add the document again.")]
    PasswordRequired,
    /// There are no bytes.
    #[error("The file is empty. Add the document again from a complete copy.")]
    Empty,
    /// What the bytes seem to be cannot be made out in them, or has nothing in it.
    #[error(
        "The file is damaged or incomplete, or is not what it seems to be. Open it in the program that it is made for, save it as a new file, and add the document again."
    )]
    Damaged,
    /// The selected range has more pages than are allowed.
    #[error(
        "{pages} pages are more than the limit of {limit}. Have fewer of them read, or split the document."
    )]
    TooManyPages {
        /// Pages in the selected range.
        pages: u32,
        /// Pages allowed.
        limit: u32,
    },
    /// The text is longer than is allowed.
    #[error(
        "The document has more than {limit} characters of text. Split it into several documents, or have fewer pages of a PDF read."
    )]
    TooLarge {
        /// Characters (Unicode code points) allowed.
        limit: u64,
    },
    /// A part of a package is far larger unpacked than packed, or than is read.
    #[error(
        "The file unpacks to more than is read: its parts are far larger than the file is. Split it into several documents, or leave out what is not text."
    )]
    UnpacksTooFar,
    /// An e-mail or a web archive is made of more parts than are looked at.
    #[error(
        "The file has more than {limit} parts, or parts more than {depth} deep within each other. Save its text as a new file, and add that."
    )]
    TooManyParts {
        /// Parts allowed.
        limit: usize,
        /// Parts that may be around a part.
        depth: usize,
    },
    /// The selected range is not in the document.
    #[error("The pages to read are not in the document: it has {pages} pages, counted from 1.")]
    InvalidPageRange {
        /// Pages in the document.
        pages: u32,
    },
    /// The pages are there and carry no text.
    #[error(
        "No text was found in the PDF: its pages are probably scanned images. Where text recognition (OCR) read nothing either, add a sharper scan; else run it on the file and add the result."
    )]
    NoExtractableText,
    /// A web page whose text is put into it by scripts.
    #[error(
        "The page is made by scripts in the browser: it has no text of its own. Save it from a browser and upload it, or give the address of a version that needs no scripts."
    )]
    ScriptedPage,
    /// The format is one that is not read.
    #[error("The file is of a kind that cannot be read: {0}.")]
    Unsupported(String),
    /// All processor time that a document may take is used up.
    #[error(
        "The document takes more than {seconds} s of processor time to read and to cut into passages. Split it into several documents, or simplify it: very deep nesting, very long tables or a very small chunk_size take the most."
    )]
    OutOfTime {
        /// Seconds of processor time allowed.
        seconds: u64,
    },
    /// The parser ended without finishing, or had to be stopped.
    #[error(
        "{0} Open it in the program that it is made for, save it as a new file, and add the document again."
    )]
    Crashed(ParserCrash),
}

/// How a child ended that did not finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum ParserCrash {
    /// It died: a signal, the memory or processor limit, a stack overflow.
    #[error("The file could not be read: the parser stopped while working on it.")]
    Died,
    /// It said nothing for too long, or took too long altogether.
    #[error("The file could not be read: parsing it takes too long.")]
    TooSlow,
    /// It sent more than it may, or something that is not a frame.
    #[error("The file could not be read: the parser's output was not usable.")]
    BadOutput,
}

impl ParseError {
    /// The code shown as `ingestion.error.code`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::PasswordRequired => "password_required",
            Self::Empty | Self::Damaged => "damaged",
            Self::TooManyPages { .. } => "too_many_pages",
            Self::TooLarge { .. } | Self::UnpacksTooFar | Self::TooManyParts { .. } => "too_large",
            Self::InvalidPageRange { .. } => "invalid_page_range",
            Self::NoExtractableText | Self::ScriptedPage => "no_extractable_text",
            Self::Unsupported(_) => "unsupported_content_type",
            Self::OutOfTime { .. } => "timeout",
            Self::Crashed(_) => "parser_crashed",
        }
    }
}
