//! What a glyph stands for: what its font says, or what can be concluded where it says nothing.

use std::collections::HashMap;

use hayro::{
    hayro_interpret::{
        font::{Glyph, OutlineFontData},
        hayro_cmap::{BfString, CMap, CMapName, CidFamily, load_embedded},
    },
    hayro_syntax::{
        Pdf,
        object::{Array, Dict, Name, Object, String as PdfString},
    },
};

use skrifa::{FontRef, MetadataProvider as _};

/// The most characters that a glyph stands for; longer ones are a replacement of a whole line.
const MAX_CHARS: usize = 100;
/// Fonts whose tables are kept, and entries of a table that are looked at.
const MAX_FONTS: usize = 30;
const MAX_MAPPINGS: usize = 100_000;
/// The most objects of a document in which fonts are looked for.
const MAX_OBJECTS: usize = 200_000;

/// Finds what glyphs stand for.
pub(super) struct UnicodeFallback<'a> {
    pdf: &'a Pdf,
    /// The composite fonts of the document by their names, once one was needed.
    composite: Option<HashMap<String, CompositeFont>>,
    /// The characters of the glyphs of embedded fonts, by what identifies a font's data.
    embedded: HashMap<u128, HashMap<u32, char>>,
}

/// A font of many thousand glyphs, of one of the collections of East Asian characters that everybody has.
struct CompositeFont {
    /// From the codes of a text to the collection's numbers.
    encoding: CMap,
    /// From these to characters; none where the numbers are the font's own.
    unicode: Option<CMap>,
}

impl<'a> UnicodeFallback<'a> {
    pub(super) fn new(pdf: &'a Pdf) -> Self {
        Self { pdf, composite: None, embedded: HashMap::new() }
    }

    /// None when nobody knows.
    pub(super) fn text_of(&mut self, glyph: &Glyph<'_>) -> Option<String> {
        let told = match glyph.as_unicode() {
            Some(BfString::Char(c)) => Some(c.to_string()),
            Some(BfString::String(text)) => Some(text),
            None => None,
        };
        told.map(|text| text.chars().filter(|c| is_said(*c)).take(MAX_CHARS).collect::<String>())
            .filter(|text| !text.is_empty())
            .or_else(|| self.concluded(glyph))
    }

    fn concluded(&mut self, glyph: &Glyph<'_>) -> Option<String> {
        let code = glyph.char_code();
        if let Glyph::Outline(outline) = glyph
            && let Some(font) = outline.font_data()
        {
            let glyph = outline.glyph_id().to_u32();
            if let Some(c) = self.embedded_characters(&font).get(&glyph) {
                return Some(c.to_string());
            }
            let fonts = self.composite.get_or_insert_with(|| composite_fonts(self.pdf));
            if let Some(font) = font.postscript_name.and_then(|name| fonts.get(&name)) {
                return font.text_of(code);
            }
        }
        // Fonts that name their glyphs in a way of their own, or draw them, keep the codes of Windows as a rule.
        u8::try_from(code).ok().and_then(windows_1252).map(String::from)
    }

    /// What the font's own table says of its glyphs.
    fn embedded_characters(&mut self, font: &OutlineFontData) -> &HashMap<u32, char> {
        if self.embedded.len() >= MAX_FONTS {
            self.embedded.clear();
        }
        self.embedded.entry(font.cache_key).or_insert_with(|| {
            let Ok(file) = FontRef::new((*font.data).as_ref()) else { return HashMap::new() };
            let mut characters = HashMap::new();
            for (code, glyph) in file.charmap().mappings().take(MAX_MAPPINGS) {
                // Symbols' codes are their own: what they look like stands nowhere.
                let character = char::from_u32(code).filter(|c| is_said(*c) && !is_private(*c));
                if let Some(character) = character {
                    characters.entry(glyph.to_u32()).or_insert(character);
                }
            }
            characters
        })
    }
}

impl CompositeFont {
    fn new(dict: &Dict<'_>) -> Option<Self> {
        let encoding = match dict.get::<Object<'_>>(b"Encoding")? {
            Object::Name(name) => match CMapName::from_bytes(&name) {
                CMapName::IdentityH => CMap::identity_h(),
                CMapName::IdentityV => CMap::identity_v(),
                other => CMap::parse(load_embedded(other)?, load_embedded)?,
            },
            Object::Stream(stream) => CMap::parse(&stream.decoded_data().ok()?, load_embedded)?,
            _ => return None,
        };
        let named = encoding.metadata().character_collection.as_ref().map(|collection| &collection.family);
        let unicode = named.and_then(CidFamily::ucs2_cmap).or_else(|| collection(dict)?.ucs2_cmap());
        let unicode = unicode.and_then(load_embedded).and_then(|data| CMap::parse(data, load_embedded));
        Some(Self { encoding, unicode })
    }

    fn text_of(&self, code: u32) -> Option<String> {
        let unicode = self.unicode.as_ref()?;
        let cid = (1..=4).find_map(|length| self.encoding.lookup_cid_code(code, length))?;
        match unicode.lookup_bf_string(cid)? {
            BfString::Char(c) => is_said(c).then(|| c.to_string()),
            BfString::String(text) => Some(text).filter(|text| !text.is_empty()),
        }
    }
}

/// The collection of a font whose encoding does not tell it.
fn collection(dict: &Dict<'_>) -> Option<CidFamily> {
    let descendant = dict.get::<Array<'_>>(b"DescendantFonts")?.iter::<Dict<'_>>().next()?;
    let system = descendant.get::<Dict<'_>>(b"CIDSystemInfo")?;
    let registry = system.get::<PdfString<'_>>(b"Registry")?;
    let ordering = system.get::<PdfString<'_>>(b"Ordering")?;
    Some(CidFamily::from_registry_ordering(registry.as_bytes(), ordering.as_bytes()))
}

fn composite_fonts(pdf: &Pdf) -> HashMap<String, CompositeFont> {
    let dicts = pdf.objects().into_iter().take(MAX_OBJECTS).filter_map(|object| match object {
        Object::Dict(dict) => Some(dict),
        _ => None,
    });
    let fonts = dicts.filter(|dict| dict.get::<Name<'_>>(b"Subtype").is_some_and(|kind| &*kind == b"Type0"));
    let named = fonts.filter_map(|font| {
        let name = font.get::<Name<'_>>(b"BaseFont")?;
        Some((without_subset(name.as_str()).to_owned(), CompositeFont::new(&font)?))
    });
    named.collect()
}

/// A font's name without the six letters that name a part of it.
fn without_subset(name: &str) -> &str {
    match name.split_once('+') {
        Some((tag, rest)) if tag.len() == 6 => rest,
        _ => name,
    }
}

/// Whether a character says something: fonts give NUL and the replacement character to glyphs of which they know nothing.
fn is_said(c: char) -> bool {
    !matches!(c, '\0' | '\u{fffd}' | '\u{fffe}' | '\u{ffff}')
}

/// Whether a character is one of those whose meaning everybody may choose.
fn is_private(c: char) -> bool {
    matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..)
}

/// The printable characters of Windows-1252.
fn windows_1252(code: u8) -> Option<char> {
    if code < 0x20 || code == 0x7f {
        return None;
    }
    let (text, _) = encoding_rs::WINDOWS_1252.decode_without_bom_handling(std::slice::from_ref(&code));
    text.chars().next().filter(|c| !c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_windows_are_letters_and_control_codes_are_nothing() {
        assert_eq!(windows_1252(b'A'), Some('A'));
        assert_eq!(windows_1252(0x93), Some('“'));
        assert_eq!(windows_1252(0xfc), Some('ü'));
        assert_eq!(windows_1252(0x07), None);
        assert_eq!(windows_1252(0x81), None);
    }

    #[test]
    fn the_tag_of_a_subset_is_no_part_of_a_fonts_name() {
        assert_eq!(without_subset("ABCDEF+Gothic-Medium"), "Gothic-Medium");
        assert_eq!(without_subset("A+B"), "A+B");
        assert_eq!(without_subset("Gothic"), "Gothic");
    }
}
