//! What is known of glyphs that come again.

use hayro::hayro_interpret::font::Glyph;

use super::unicode::UnicodeFallback;

/// What the glyphs of one run stand for and how wide they are: all are of one font, where most come several times, and where to look
/// a name up takes longer than all else that is done with a glyph.
#[derive(Default)]
pub(super) struct KnownGlyphs {
    texts: CodeTable<Option<String>>,
    widths: CodeTable<Option<f32>>,
}

impl KnownGlyphs {
    pub(super) fn text_of(
        &mut self,
        glyph: &Glyph<'_>,
        fallback: &mut UnicodeFallback<'_>,
    ) -> Option<String> {
        self.texts.get_or_find(glyph.char_code(), || fallback.text_of(glyph))
    }

    /// By how much the writing moves on, in units of the font, as far as it says so.
    pub(super) fn width_of(&mut self, glyph: &Glyph<'_>) -> Option<f32> {
        self.widths.get_or_find(glyph.char_code(), || match glyph {
            Glyph::Outline(outline) => outline.advance_width(),
            Glyph::Type3(drawn) => drawn.advance_width(),
        })
    }
}

/// Something about glyphs by their codes.
struct CodeTable<T>(Vec<(u32, T)>);

impl<T> Default for CodeTable<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Clone> CodeTable<T> {
    /// The most that are looked through: more would take longer than to ask the font.
    const MOST: usize = 64;

    fn get_or_find(&mut self, code: u32, find: impl FnOnce() -> T) -> T {
        if let Some((_, known)) = self.0.iter().find(|(known, _)| *known == code) {
            return known.clone();
        }
        let found = find();
        if self.0.len() < Self::MOST {
            self.0.push((code, found.clone()));
        }
        found
    }
}
