//! Pages of a document: what was read of each, and by what.

use serde::{Deserialize, Serialize};

use super::text_enum;

text_enum! {
    /// What read a PDF.
    PdfEngineName {
        /// The built-in engine.
        Hayro => "hayro",
        /// The built-in engine for what [`PdfEngineName::Hayro`] cannot read.
        PdfOxide => "pdf_oxide",
        /// The native library, when the operator has set it.
        Pdfium => "pdfium",
    }
}

/// A page of a document that can be drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageInfo {
    /// Its place in the source, counted from 1.
    pub number: u32,
    /// How wide it is, in points (1/72 inch), as it is seen: after its rotation.
    pub width: f32,
    /// How high it is, in points.
    pub height: f32,
    /// Characters of its text (Unicode code points) as it was read, white space included.
    pub chars: u32,
    /// Words that were recognised on its image (OCR), in reading order; empty where the page itself has text.
    pub words: Vec<RecognisedWord>,
}

/// A word that was recognised on the image of a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecognisedWord {
    /// What it says.
    pub text: String,
    /// Where it is.
    pub place: PageBox,
    /// How sure the recogniser is, from 0 to 100.
    pub confidence: u8,
}

/// A rectangle on a page as it is seen, in points (1/72 inch) from the page's left upper corner; y grows downwards.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PageBox {
    /// The left edge.
    pub left: f32,
    /// The upper edge.
    pub top: f32,
    /// The right edge, not left of `left`.
    pub right: f32,
    /// The lower edge, not above `top`.
    pub bottom: f32,
}
