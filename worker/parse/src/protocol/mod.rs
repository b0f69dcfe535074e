//! What the parent and the parsing child say to each other: a request, then frames until the last word, and what the parent
//! admits of them.
//!
//! Both sides use it, and it uses neither. The child may have been taken over by the document: whatever comes from it is
//! checked by [`FrameOrder`], frame by frame, or by [`ListingCollector`].

mod draw;
mod error;
mod frame;
mod in_base64;
mod listing;
mod order;
mod request;

pub(crate) use self::{
    draw::MAX_BOXES,
    frame::{MAX_TITLE, announced, decode},
    listing::{MAX_ENTRY_TEXT, MAX_LINKS, is_page},
    order::{MAX_HEADINGS, MAX_SECTIONS, MAX_SIDE},
};
pub use self::{
    draw::{
        DRAW_COMMAND, DrawError, DrawMessage, DrawRequest, IMAGE_WIDTHS, ImageFormat, PageDrawing, TextToMark,
    },
    error::{ParseAbort, ParseError, ParserCrash},
    frame::{
        ChildMessage, MAX_MESSAGE, MAX_URL, MarkKind, MessageDecoder, OutlineEntry, PageSize, ParseFrame,
        ParsedPart, SourceMetadata, TextMark, TextMarkup, WireError, encode,
    },
    listing::{
        FeedEntry, FeedListing, LIST_COMMAND, Listing, ListingCollector, ListingError, ListingKind,
        ListingMessage, ListingRequest, MAX_LISTED, MAX_LISTED_BYTES, PageLinks, SitemapListing,
    },
    order::FrameOrder,
    request::{ChildRequest, ParseOptions, SourceKind},
};

/// The code of the warning that pages of a PDF are not in the file at all.
pub const INCOMPLETE_FILE: &str = "incomplete_file";

/// The hidden subcommand under which the binary is a parsing child.
pub const PARSE_COMMAND: &str = "__parse";
/// The hidden subcommand under which the binary is a child that tries its walls.
pub const WALLS_COMMAND: &str = "__walls";
