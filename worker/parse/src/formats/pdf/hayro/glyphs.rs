//! The glyphs of a page as its content shows them, each with what it stands for and where a reader sees it.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use hayro::{
    hayro_interpret::{
        BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps, InterpreterCache,
        InterpreterSettings, RectExt, SoftMask, TransformExt,
        font::{Glyph, GlyphRun, PositionedGlyph},
        hayro_cmap::WritingMode,
        interpret_page,
    },
    hayro_syntax::{
        Pdf,
        object::{Dict, String as PdfString},
        page::Page,
    },
    kurbo::{Affine, BezPath, Point, Rect, Shape, Vec2},
};
use lectern_shared::model::page::PageBox;

use super::{super::decoded_string, known::KnownGlyphs, unicode::UnicodeFallback};
use crate::protocol::{MAX_SIDE, PageSize};

/// The most glyphs of a page that are looked at; a newspaper's has 30,000.
const MAX_GLYPHS: usize = 200_000;
/// The most things that a page draws: maps have a million lines. Drawings that draw one another draw without end.
const MAX_DRAWN: usize = 5_000_000;
/// The em square, in which glyphs are placed.
const UNITS_PER_EM: f64 = 1_000.0;
/// How far letters reach above and below their baseline, in font sizes, in most fonts.
const ASCENT: f64 = 0.75;
const DESCENT: f64 = 0.22;
/// How far the cell of a letter that is written from top to bottom reaches above its baseline.
const VERTICAL_ASCENT: f64 = 0.88;
/// Pages whose fonts are kept: a document may bring others for each page.
const PAGES_A_CACHE: u32 = 200;
/// The most characters of a text that stands for the glyphs that are marked with it.
const MAX_REPLACEMENT: usize = 3;
/// Glyphs that say one text together are no further apart, in font sizes: others are in another line.
const BESIDE: f64 = 0.2;
/// Marked content within marked content that is looked at.
const MAX_MARKED: usize = 1_000;

/// What a page shows of a letter, a ligature or another sign. Lengths in points on the page as seen: turned as it says, its
/// upper left corner the origin, y growing downwards.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PageGlyph {
    /// What it stands for, in logical order; never empty, and possibly a space.
    pub(crate) text: String,
    /// The box around it: as wide as the writing moves on.
    pub(crate) place: PageBox,
    /// Where the line stands on which it is written, from the top.
    pub(crate) base: f32,
    /// Its font size.
    pub(crate) size: f32,
    /// By how many degrees its writing is turned clockwise: from 0 to 359, mostly a quarter.
    pub(crate) turned: i16,
    /// Whether it is written from top to bottom.
    pub(crate) vertical: bool,
}

/// What a page shows, as far as reading it goes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PageGlyphs {
    /// In the order of its content. Layers that are not shown at first are left out; text that is not painted is in, as it is
    /// what text recognition left.
    pub(crate) glyphs: Vec<PageGlyph>,
    /// Glyphs beside these for which nobody says what they stand for.
    pub(crate) unmapped: usize,
    /// The page's size as seen.
    pub(crate) size: PageSize,
    /// The share of the page that images cover, those over each other counted twice: 0 to 1.
    pub(crate) image_share: f32,
    /// Whether nothing is painted.
    pub(crate) is_blank: bool,
    /// Whether it draws more than is looked at.
    pub(crate) is_cut: bool,
}

/// Reads pages of a document one after another, with what they share kept between them.
pub(super) struct GlyphReader<'a> {
    settings: &'a InterpreterSettings,
    cache: InterpreterCache<'a>,
    fallback: UnicodeFallback<'a>,
    read: u32,
}

impl<'a> GlyphReader<'a> {
    pub(super) fn new(pdf: &'a Pdf, settings: &'a InterpreterSettings) -> Self {
        Self { settings, cache: InterpreterCache::new(), fallback: UnicodeFallback::new(pdf), read: 0 }
    }

    pub(super) fn read(&mut self, page: &Page<'a>) -> PageGlyphs {
        self.read += 1;
        if self.read.is_multiple_of(PAGES_A_CACHE) {
            self.cache = InterpreterCache::new();
        }
        let (width, height) = page.render_dimensions();
        let seen = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
        let start = page.initial_transform(true).to_kurbo();
        let mut context = Context::new(start, seen, &self.cache, page.xref(), self.settings.clone());
        let mut collector = GlyphCollector {
            glyphs: Vec::new(),
            unmapped: 0,
            seen,
            images: 0.0,
            is_blank: true,
            drawn: 0,
            last_run: None,
            fallback: &mut self.fallback,
            is_boundless: page.intersected_crop_box().to_kurbo().area() < 1.0,
            replacement: Vec::new(),
        };
        let mut interpret = || interpret_page(page, &mut context, &mut collector);
        let is_cut = match catch_unwind(AssertUnwindSafe(&mut interpret)) {
            Ok(()) => false,
            Err(payload) if payload.is::<PageIsEndless>() => true,
            Err(payload) => resume_unwind(payload),
        };
        let area = seen.area().max(1.0);
        PageGlyphs {
            glyphs: collector.glyphs,
            unmapped: collector.unmapped,
            size: PageSize { width: width.clamp(1.0, MAX_SIDE), height: height.clamp(1.0, MAX_SIDE) },
            image_share: single((collector.images / area).min(1.0)),
            is_blank: collector.is_blank,
            is_cut,
        }
    }
}

/// What is thrown when a page draws too much: the interpreter knows no other way to stop.
struct PageIsEndless;

/// The glyphs of one page.
pub(crate) fn collect<'a>(pdf: &'a Pdf, page: &Page<'a>, settings: &'a InterpreterSettings) -> PageGlyphs {
    GlyphReader::new(pdf, settings).read(page)
}

#[expect(clippy::cast_possible_truncation, reason = "places on a page need no double precision")]
fn single(value: f64) -> f32 {
    value as f32
}

fn page_box(place: Rect) -> PageBox {
    PageBox {
        left: single(place.x0),
        top: single(place.y0),
        right: single(place.x1),
        bottom: single(place.y1),
    }
}

/// A device that writes down what would be drawn.
struct GlyphCollector<'c, 'a> {
    glyphs: Vec<PageGlyph>,
    unmapped: usize,
    seen: Rect,
    images: f64,
    is_blank: bool,
    /// How much was drawn so far.
    drawn: usize,
    /// The first place and the number of the run before: filled and stroked text comes twice.
    last_run: Option<(Affine, usize)>,
    fallback: &'c mut UnicodeFallback<'a>,
    /// Whether the page has no bounds that make sense: then nothing stands beside it.
    is_boundless: bool,
    /// What is said instead of the glyphs, for each marked content that is open.
    replacement: Vec<ReplacementText>,
}

/// What marked content says instead of its glyphs (`ActualText`).
enum ReplacementText {
    /// Nothing: they say it themselves.
    None,
    /// Its first glyph is to say this.
    Waiting(String),
    /// Its first glyph did, which is the one at this place: the others say nothing.
    Said(usize),
}

impl GlyphCollector<'_, '_> {
    /// Counts what is drawn, and ends the page when it is too much.
    fn count(&mut self, drawn: usize) {
        self.drawn = self.drawn.saturating_add(drawn);
        if self.drawn > MAX_DRAWN || self.glyphs.len() + self.unmapped > MAX_GLYPHS {
            resume_unwind(Box::new(PageIsEndless));
        }
    }

    fn add(
        &mut self,
        glyph: &PositionedGlyph<'_>,
        transform: Affine,
        (vertical, stretch): (bool, Option<f64>),
        known: &mut KnownGlyphs,
    ) {
        let width = known.width_of(glyph);
        let Some(frame) = GlyphFrame::new(glyph, transform, width, vertical, stretch) else { return };
        let place = frame.place();
        // What stands beside the page was cut away.
        if !place.is_finite() || !(place.inflate(0.1, 0.1).overlaps(self.seen) || self.is_boundless) {
            return;
        }
        let text = match self.replacement.last_mut() {
            Some(ReplacementText::Waiting(text)) => {
                let text = std::mem::take(text);
                self.replacement.pop();
                self.replacement.push(ReplacementText::Said(self.glyphs.len()));
                Some(text)
            }
            Some(ReplacementText::Said(at)) => {
                let at = *at;
                self.widen(at, &frame, place);
                return;
            }
            Some(ReplacementText::None) | None => known.text_of(glyph, self.fallback),
        };
        let Some(text) = text else {
            self.unmapped += 1;
            return;
        };
        self.glyphs.push(PageGlyph {
            text,
            place: page_box(place),
            base: single(frame.origin.y),
            size: single(frame.size),
            turned: frame.turned(),
            vertical,
        });
    }

    /// Has the glyph that says a text for others stand where one of these does, too, when that is beside it. The first may be the mark
    /// over the letter that comes next.
    fn widen(&mut self, at: usize, frame: &GlyphFrame, place: Rect) {
        let Some(said) = self.glyphs.get_mut(at) else { return };
        let PageBox { left, top, right, bottom } = said.place;
        let own = Rect::new(left.into(), top.into(), right.into(), bottom.into());
        let reach = BESIDE * frame.size;
        if said.turned != frame.turned() || !own.inflate(reach, reach).overlaps(place) {
            return;
        }
        if place.area() > own.area() {
            (said.base, said.size) = (single(frame.origin.y), single(frame.size));
        }
        said.place = page_box(own.union(place));
    }
}

/// Where a glyph stands: its origin and the directions in which it is written.
struct GlyphFrame {
    origin: Point,
    /// The direction of the line.
    along: Vec2,
    /// To where the next glyph begins.
    advance: Vec2,
    /// From the baseline upwards, one font size long.
    up: Vec2,
    size: f64,
    vertical: bool,
}

impl GlyphFrame {
    /// None for what has no place or no size.
    fn new(
        glyph: &PositionedGlyph<'_>,
        transform: Affine,
        width: Option<f32>,
        vertical: bool,
        stretch: Option<f64>,
    ) -> Option<Self> {
        let origin = transform * Point::ORIGIN;
        let along = transform * Point::new(UNITS_PER_EM, 0.0) - origin;
        let mut up = transform * Point::new(0.0, UNITS_PER_EM) - origin;
        let mut size = up.hypot();
        let sane = origin.is_finite() && along.is_finite() && size.is_finite() && size > 0.01;
        if !sane || along.hypot() <= 0.0 {
            return None;
        }
        let units = width.filter(|units| units.is_finite()).map_or(UNITS_PER_EM * 0.5, f64::from);
        if matches!(&**glyph, Glyph::Type3(_)) && units.abs() > 2.0 * UNITS_PER_EM {
            // Its own matrix makes the font larger than its size says.
            let larger = units.abs() * 1.6 / UNITS_PER_EM;
            up *= larger;
            size *= larger;
        }
        // For each unit of the font, and in the direction of the line.
        let wide = stretch.map_or(1.0, |stretch| stretch * height(along, up) / along.hypot());
        let advance = if vertical { along } else { along * (units / UNITS_PER_EM * wide) };
        let along = if advance.hypot() > 0.0 { advance } else { along };
        (size < 20_000.0).then_some(Self { origin, along, advance, up, size, vertical })
    }

    fn place(&self) -> Rect {
        let (ascent, descent) =
            if self.vertical { (VERTICAL_ASCENT, 1.0 - VERTICAL_ASCENT) } else { (ASCENT, DESCENT) };
        let (top, bottom) = (self.up * ascent, self.up * -descent);
        let corners = [
            self.origin + top,
            self.origin + bottom,
            self.origin + self.advance + top,
            self.origin + self.advance + bottom,
        ];
        let first = Rect::from_points(corners[0], corners[1]);
        corners.iter().fold(first, |place, corner| place.union_pt(*corner))
    }

    /// Degrees clockwise by which the writing is turned.
    #[expect(clippy::cast_possible_truncation, reason = "a whole turn has 360 degrees")]
    fn turned(&self) -> i16 {
        // The way that the writing goes, rather than the way that its letters stand: a font may have them upside down, and turn
        // them again.
        let degrees = self.along.y.atan2(self.along.x).to_degrees();
        degrees.round().rem_euclid(360.0) as i16
    }
}

impl<'a> Device<'a> for GlyphCollector<'_, 'a> {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, mode: &DrawMode) {
        let glyphs = run.glyphs();
        let Some(first) = glyphs.first() else { return };
        self.count(glyphs.len());
        let begin = (props.transform * first.transform(), glyphs.len());
        let again = matches!(mode, DrawMode::Stroke(_)) && self.last_run == Some(begin);
        self.last_run = Some(begin);
        if again {
            return;
        }
        if !matches!(mode, DrawMode::Invisible) {
            self.is_blank = false;
        }
        let vertical = matches!(run.writing_mode(), WritingMode::Vertical);
        let mut known = KnownGlyphs::default();
        let stretch = if vertical { None } else { typical_stretch(glyphs, &mut known) };
        for glyph in glyphs {
            self.add(glyph, props.transform * glyph.transform(), (vertical, stretch), &mut known);
        }
    }

    fn draw_image(&mut self, image: Image<'a, '_>, props: ImageDrawProps<'a>) {
        self.count(1);
        self.is_blank = false;
        self.last_run = None;
        let image = Rect::new(0.0, 0.0, f64::from(image.width()), f64::from(image.height()));
        let covered = props.transform.transform_rect_bbox(image).intersect(self.seen).area();
        if covered.is_finite() {
            self.images += covered;
        }
    }

    fn draw_path(&mut self, path: &BezPath, _: DrawProps<'a>, mode: &DrawMode) {
        self.count(1);
        self.is_blank = self.is_blank && (matches!(mode, DrawMode::Invisible) || path.is_empty());
    }

    fn draw_rect(&mut self, rect: &Rect, props: DrawProps<'a>, mode: &DrawMode) {
        self.draw_path(&rect.to_path(0.1), props, mode);
    }

    fn begin_marked_content(&mut self, _: &[u8], properties: Option<&Dict<'_>>) {
        let text = properties.and_then(|properties| properties.get::<PdfString<'_>>(b"ActualText"));
        let text = text.map(|text| decoded_string(text.as_bytes()));
        // A hyphen that is none, or a ligature. Longer ones stand for whole lines, whose words are to keep their places.
        let replacement = text.filter(|text| (1..=MAX_REPLACEMENT).contains(&text.chars().count()));
        if self.replacement.len() < MAX_MARKED {
            self.replacement.push(replacement.map_or(ReplacementText::None, ReplacementText::Waiting));
        }
    }

    fn end_marked_content(&mut self) {
        self.replacement.pop();
    }

    fn push_clip_path(&mut self, _: &ClipPath) {
        self.count(1);
    }

    fn push_clip_rect(&mut self, _: &Rect) {
        self.count(1);
    }

    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {
        self.count(1);
    }

    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}

/// How wide the glyphs of a run are set, for each unit of their advance and of the height of their letters: 1 mostly.
///
/// A font that stands for one that is not embedded has each of its glyphs stretched to the width that it is to have, and the
/// glyph's transform with it, so that this does not tell. The steps of the run do, when there are enough of them or when they
/// agree.
fn typical_stretch(glyphs: &[PositionedGlyph<'_>], known: &mut KnownGlyphs) -> Option<f64> {
    const FEW: usize = 4;
    const ALIKE: f64 = 1.03;
    let steps = glyphs.windows(2).filter_map(|pair| {
        let [glyph, next] = pair else { return None };
        if !matches!(&**glyph, Glyph::Outline(_)) {
            return None;
        }
        let place = glyph.transform();
        let step = (next.transform().translation() - place.translation()).hypot();
        let [along_x, along_y, up_x, up_y, ..] = place.as_coeffs();
        let along = Vec2::new(along_x, along_y);
        let height = height(along, Vec2::new(up_x, up_y));
        let stretch = step / (f64::from(known.width_of(glyph)?) * height);
        (stretch.is_finite() && stretch > 0.0).then_some((stretch, along.hypot() / height))
    });
    let mut steps: Vec<(f64, f64)> = steps.collect();
    steps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (least, most) = (steps.first()?.0, steps.last()?.0);
    if steps.len() < 2 || (steps.len() < FEW && most > ALIKE * least) {
        return None;
    }
    let (typical, drawn) = *steps.get(steps.len() / 2)?;
    // Much more would be letters that are set apart, which are words of their own in tables.
    Some(typical.clamp(0.4, 1.25 * drawn.max(1.0)))
}

/// How high letters are that go upwards by one vector and forwards by another: what they lean does not count.
fn height(along: Vec2, up: Vec2) -> f64 {
    along.cross(up).abs() / along.hypot()
}

#[cfg(test)]
mod tests {
    use super::{
        super::{super::open, words},
        *,
    };

    /// What is read of a page in Helvetica with this content.
    fn read(content: &str) -> String {
        let file = format!(
            "%PDF-1.4
1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 >> endobj
3 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 200 100] /Contents 4 0 R
 /Resources << /Font << /F 5 0 R >> >> >> endobj
4 0 obj << /Length {} >> stream
{content}
endstream endobj
5 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> endobj
trailer << /Root 1 0 R /Size 6 >>
%%EOF
",
            content.len()
        );
        let settings = InterpreterSettings::default();
        let pdf = open(file.into_bytes()).unwrap();
        let page = pdf.pages().first().unwrap();
        words::read(collect(&pdf, page, &settings).glyphs)
    }

    #[test]
    fn a_letter_whose_mark_is_drawn_first_stands_in_its_word() {
        // As browsers print a letter with a vowel sign: two glyphs say it together, the raised sign before the letter.
        let letter =
            "/Span << /ActualText <FEFF00E9> >> BDC 1 0 0 1 52 66 Tm (') Tj 1 0 0 1 46.7 60 Tm (e) Tj EMC";
        let cafes = format!("BT /F 20 Tf 20 60 Td (caf) Tj {letter} 1 0 0 1 57.8 60 Tm (s) Tj ET");
        assert_eq!(read(&cafes), "cafés");
    }

    #[test]
    fn a_text_whose_glyphs_are_in_two_lines_stands_in_the_first() {
        let text = "/Span << /ActualText <FEFF006100620063> >> BDC 20 60 Td (a-) Tj 0 -24 Td (bc) Tj EMC";
        let content = format!("BT /F 20 Tf {text} 40 0 Td (below) Tj ET");
        assert_eq!(read(&content), "abc\nbelow");
    }
}
