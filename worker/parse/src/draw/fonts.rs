//! Fonts of the system for what a PDF does not bring: hayro has substitutes for Latin letters only.

use std::{
    fs::File,
    io::Read,
    path::Path,
    sync::{Arc, OnceLock},
};

use hayro::hayro_interpret::{
    FontResolverFn,
    font::{FontData, FontQuery},
    hayro_cmap::CidFamily,
};

/// Where fonts with East Asian characters lie on common systems, the smaller ones first.
const PLACES: &[&str] = &[
    "/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf",
    "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc",
    "/usr/share/fonts/truetype/fonts-japanese-gothic.ttf",
    "/usr/share/fonts/opentype/ipaexfont-gothic/ipaexg.ttf",
    "/usr/share/fonts/truetype/nanum/NanumGothic.ttf",
    "/usr/share/fonts/truetype/arphic/uming.ttc",
    "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc",
    "/usr/share/fonts/noto-cjk/NotoSansCJK-Regular.ttc",
    "/usr/share/fonts/google-noto-cjk/NotoSansCJK-Regular.ttc",
];
/// The largest font that is read, in bytes.
const MAX_BYTES: u64 = 40 << 20;

/// A font that was opened before any byte of a document was seen, and is read when a page needs it: behind the child's walls
/// nothing can be opened.
#[derive(Default)]
pub(crate) struct SystemFonts {
    east_asian: Option<File>,
    /// What it holds, once it was needed.
    read: OnceLock<Option<FontData>>,
}

impl SystemFonts {
    /// Opens what there is.
    pub(crate) fn open() -> Self {
        let is_font = |path: &&&str| {
            Path::new(path).metadata().is_ok_and(|file| file.is_file() && file.len() <= MAX_BYTES)
        };
        let east_asian = PLACES.iter().find(is_font).and_then(|path| File::open(path).ok());
        Self { east_asian, read: OnceLock::new() }
    }

    /// How hayro asks for fonts.
    pub(super) fn resolver(self: Arc<Self>) -> FontResolverFn {
        Arc::new(move |query| match query {
            FontQuery::Standard(font) => Some(font.get_font_data()),
            FontQuery::Fallback(font) => {
                let family = font.character_collection.as_ref().map(|collection| &collection.family);
                let own = family.is_some_and(is_east_asian).then(|| self.east_asian()).flatten();
                own.map(|data| (data, 0)).or_else(|| Some(font.pick_standard_font().get_font_data()))
            }
        })
    }

    fn east_asian(&self) -> Option<FontData> {
        let read = || {
            let mut bytes = Vec::new();
            self.east_asian.as_ref()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
            Some(Arc::new(bytes) as FontData)
        };
        self.read.get_or_init(read).clone()
    }
}

fn is_east_asian(family: &CidFamily) -> bool {
    matches!(
        family,
        CidFamily::AdobeJapan1 | CidFamily::AdobeGB1 | CidFamily::AdobeCNS1 | CidFamily::AdobeKorea1
    )
}
