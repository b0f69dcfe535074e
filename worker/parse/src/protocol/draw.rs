//! Drawing one page of a PDF: what the child is asked, before it gets the PDF's bytes, and the one message that it answers.

use lectern_shared::model::page::{PageBox, RecognisedWord};
use serde::{Deserialize, Serialize};

use super::{in_base64, order::MAX_SIDE};

/// The hidden subcommand under which the binary is a child that draws a page.
pub const DRAW_COMMAND: &str = "__draw";

/// Pixels that an image has from left to right, at least and at most.
pub const IMAGE_WIDTHS: std::ops::RangeInclusive<u32> = 200..=2_400;

/// How an image is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageFormat {
    /// Portable Network Graphics.
    Png,
    /// WebP without loss.
    Webp,
}

impl ImageFormat {
    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Webp => "image/webp",
        }
    }

    /// Width and height of an image in pixels, as its first bytes say; none when it is not of this format.
    fn size_of(self, image: &[u8]) -> Option<(u32, u32)> {
        let four = |at: usize| image.get(at..)?.first_chunk::<4>().copied();
        match self {
            Self::Png => {
                let is_png = image.starts_with(b"\x89PNG\r\n\x1a\n") && image.get(12..16)? == b"IHDR";
                is_png.then_some((u32::from_be_bytes(four(16)?), u32::from_be_bytes(four(20)?)))
            }
            Self::Webp => {
                let is_webp =
                    image.starts_with(b"RIFF") && image.get(8..16)? == b"WEBPVP8L" && *image.get(20)? == 0x2f;
                // Fourteen bits for each side, less one.
                let bits = u32::from_le_bytes(four(21)?);
                is_webp.then_some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
            }
        }
    }
}

/// A text that is to be marked on a page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextToMark {
    /// What is marked, as it was read.
    pub text: String,
    /// What stands before it, as far as that is known: a page may say the same words in several places.
    pub before: String,
    /// What stands behind it.
    pub after: String,
}

impl From<&str> for TextToMark {
    /// A text of which nothing else is known.
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }
}

/// What is to be drawn, and within which limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DrawRequest {
    /// The page, counted from 1.
    pub page: u32,
    /// Pixels from left to right, within [`IMAGE_WIDTHS`]. A page that is very long gets fewer.
    pub width: u32,
    /// How the image is written.
    pub format: ImageFormat,
    /// Texts that are to be marked on the page; what they say of other pages is not looked for.
    pub marks: Vec<TextToMark>,
    /// The words that were recognised on the page, if it is a scan: texts are looked for among them.
    pub words: Vec<RecognisedWord>,
    /// Address space the child allows itself, in bytes.
    pub memory_bytes: u64,
    /// Processor time the child allows itself, in seconds.
    pub cpu_seconds: u64,
}

/// A page as it was drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageDrawing {
    /// The image, in the format that was asked for.
    #[serde(with = "in_base64")]
    pub image: Vec<u8>,
    /// Pixels from left to right.
    pub width: u32,
    /// Pixels from top to bottom.
    pub height: u32,
    /// The page's size as seen, in points.
    pub page_width: f32,
    /// See `page_width`.
    pub page_height: f32,
    /// What was marked: one box for each line of each text.
    pub boxes: Vec<PageBox>,
}

/// The most boxes of a drawing.
pub(crate) const MAX_BOXES: usize = 500;

impl PageDrawing {
    /// Whether this can be the answer to a request: the parent believes nothing else.
    pub fn answers(&self, request: &DrawRequest) -> bool {
        let side = |side: f32| (1.0..=MAX_SIDE).contains(&side);
        // What a browser would make room for.
        request.format.size_of(&self.image) == Some((self.width, self.height))
            && (1..=request.width).contains(&self.width)
            && (1..=u32::from(u16::MAX)).contains(&self.height)
            && side(self.page_width)
            && side(self.page_height)
            && self.boxes.len() <= MAX_BOXES
            && self.boxes.iter().all(|place| is_box(*place, self.page_width, self.page_height))
    }
}

/// Whether a box stands on a page of this size, or hardly beside it.
fn is_box(place: PageBox, width: f32, height: f32) -> bool {
    const BESIDE: f32 = 10.0;
    let PageBox { left, top, right, bottom } = place;
    let along = |from: f32, to: f32, end: f32| -BESIDE <= from && from <= to && to <= end + BESIDE;
    along(left, right, width) && along(top, bottom, height)
}

/// Why a page is not drawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum DrawError {
    /// The PDF is protected by a password.
    #[error("the PDF is protected by a password")]
    PasswordRequired,
    /// It cannot be opened by what draws.
    #[error("the PDF is damaged, or in a form that cannot be drawn")]
    Damaged,
    /// It has no such page.
    #[error("the PDF has {pages} pages")]
    NoSuchPage {
        /// How many it has.
        pages: u32,
    },
    /// The image is larger than is sent.
    #[error("the image is too large; ask for a smaller width")]
    TooLarge,
    /// What draws gave up.
    #[error("the page could not be drawn")]
    Failed,
}

/// What the child answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum DrawMessage {
    /// The page.
    Drawn(PageDrawing),
    /// Why there is none.
    Failed(DrawError),
}
