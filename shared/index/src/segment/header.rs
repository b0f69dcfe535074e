//! The first bytes of a segment.

use super::super::lexical::ANALYSIS_VERSION;

/// The length of the header in bytes.
pub(super) const LENGTH: usize = 80;

/// How segments begin.
const MAGIC: [u8; 4] = *b"LSEG";

/// The version of the layout. The stored version is this one and that of the analysis: terms made by another
/// analysis are as unreadable as another layout.
const LAYOUT_VERSION: u16 = 1;

/// The flag of a segment with a dense section.
const DENSE: u16 = 1;

/// Where the checksum is, which it does not cover.
const CHECKSUM: std::ops::Range<usize> = 12..16;

/// Why a header is unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderError {
    Magic,
    Version { layout: u16, analysis: u16 },
    Flags,
}

/// The fields of the header, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SegmentHeader {
    pub(super) first_ordinal: u32,
    pub(super) chunks: u32,
    pub(super) language: u32,
    pub(super) terms: u32,
    pub(super) postings: u32,
    pub(super) layout: SegmentLayout,
    /// 0 without a dense section.
    pub(super) dimension: u32,
    pub(super) space: [u8; 16],
}

/// Where the sections begin, and the length of the whole, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SegmentLayout {
    pub(super) starts: u32,
    pub(super) weights: u32,
    pub(super) ordinals: u32,
    /// The end of the blob if there is no dense section.
    pub(super) dense: u32,
    pub(super) end: u32,
}

impl SegmentLayout {
    /// The only layout of a segment with these counts; none if it would be over 4 GiB.
    pub(super) fn of(terms: u32, postings: u32, chunks: u32, dimension: u32) -> Option<Self> {
        let starts = u64::try_from(LENGTH).ok()? + u64::from(terms) * 8;
        let weights = starts + (u64::from(terms) + 1) * 4;
        let ordinals = weights + u64::from(postings) * 4;
        let sparse_end = ordinals + u64::from(postings) * 2;
        let dense = if dimension == 0 { sparse_end } else { sparse_end.next_multiple_of(64) };
        let end = u64::from(chunks).checked_mul(u64::from(dimension) * 4)?.checked_add(dense)?;
        let narrow = |offset: u64| u32::try_from(offset).ok();
        Some(Self {
            starts: narrow(starts)?,
            weights: narrow(weights)?,
            ordinals: narrow(ordinals)?,
            dense: narrow(dense)?,
            end: narrow(end)?,
        })
    }
}

impl SegmentHeader {
    const fn flags(&self) -> u16 {
        if self.dimension == 0 { 0 } else { DENSE }
    }

    /// The header with a checksum of 0; [`seal`] puts it in.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&MAGIC);
        for half in [LAYOUT_VERSION, ANALYSIS_VERSION, self.flags(), 0] {
            out.extend_from_slice(&half.to_le_bytes());
        }
        let SegmentLayout { starts, weights, ordinals, dense, end } = self.layout;
        let fields = [
            0,
            self.first_ordinal,
            self.chunks,
            self.language,
            self.terms,
            self.postings,
            starts,
            weights,
            ordinals,
            dense,
            end,
            self.dimension,
            0,
        ];
        for field in fields {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(&self.space);
    }

    /// Reads the header without judging its numbers.
    pub(super) fn read(bytes: &[u8; LENGTH]) -> Result<Self, HeaderError> {
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if bytes[..4] != MAGIC {
            return Err(HeaderError::Magic);
        }
        let (layout, analysis) = (half(4), half(6));
        if (layout, analysis) != (LAYOUT_VERSION, ANALYSIS_VERSION) {
            return Err(HeaderError::Version { layout, analysis });
        }
        let mut space = [0; 16];
        space.copy_from_slice(&bytes[64..]);
        let header = Self {
            first_ordinal: word(16),
            chunks: word(20),
            language: word(24),
            terms: word(28),
            postings: word(32),
            layout: SegmentLayout {
                starts: word(36),
                weights: word(40),
                ordinals: word(44),
                dense: word(48),
                end: word(52),
            },
            dimension: word(56),
            space,
        };
        // Bytes 60 to 63 are kept for later, and zero.
        if half(8) != header.flags() || half(10) != 0 || word(60) != 0 {
            return Err(HeaderError::Flags);
        }
        Ok(header)
    }
}

/// The checksum of a blob: CRC-32 of everything except the checksum.
pub(super) fn checksum(blob: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&blob[..CHECKSUM.start]);
    hasher.update(&blob[CHECKSUM.end..]);
    hasher.finalize()
}

/// The checksum that a blob carries.
pub(super) fn stored_checksum(header: &[u8; LENGTH]) -> u32 {
    u32::from_le_bytes([header[12], header[13], header[14], header[15]])
}

/// Writes the checksum into a finished blob.
pub(super) fn seal(blob: &mut [u8]) {
    let sum = checksum(blob);
    blob[CHECKSUM].copy_from_slice(&sum.to_le_bytes());
}
