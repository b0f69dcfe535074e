use lectern_shared::model::language::Language;
use uuid::Uuid;

use super::{
    super::lexical::{TermId, weight},
    *,
};

const SPACE: Uuid = Uuid::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);

fn blob() -> Vec<u8> {
    let mut builder = SegmentBuilder::with_space(100, SPACE, 3).unwrap();
    builder
        .push(
            "The quick brown fox. The fox runs over the hills and was seen by them.",
            Some(&[1.0, 0.0, 0.0]),
        )
        .unwrap();
    builder.push("A lazy dog sleeps in the house.", Some(&[0.0, 1.0, 0.0])).unwrap();
    builder.push("The foxes and the dogs are friends.", Some(&[0.0, 0.0, 1.0])).unwrap();
    builder.finish()
}

#[test]
fn what_was_written_is_read() {
    let segment = Segment::from_bytes(blob()).unwrap();
    assert_eq!((segment.chunk_count(), segment.first_ordinal()), (3, 100));
    assert_eq!(segment.language(), Language::English);
    assert_eq!(segment.byte_len(), blob().len());
    let fox: Vec<(u16, f32)> = segment.postings(TermId::of("fox")).unwrap().iter().collect();
    assert_eq!(fox, [(0, weight(2, 15)), (2, weight(1, 7))]);
    assert_eq!(segment.document_frequency(TermId::of("fox")), 2);
    assert_eq!(segment.document_frequency(TermId::of("cat")), 0);
    assert!(segment.postings(TermId::of("cat")).is_none());
    let dense = segment.dense().unwrap();
    assert_eq!((dense.space(), dense.dimension()), (SPACE, 3));
    let rows: Vec<Vec<f32>> = dense.rows().map(|row| row.iter().collect()).collect();
    assert_eq!(rows, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
}

#[test]
fn the_dense_section_may_be_absent_and_is_aligned_if_present() {
    let mut builder = SegmentBuilder::new(0);
    builder.push("no vector here", None).unwrap();
    assert!(Segment::from_bytes(builder.finish()).unwrap().dense().is_none());
    let segment = blob();
    let vectors = 3 * 3 * 4;
    assert_eq!((segment.len() - vectors) % 64, 0);
}

#[test]
fn a_segment_of_no_passages_or_of_empty_ones_is_valid() {
    let empty = Segment::from_bytes(SegmentBuilder::new(7).finish()).unwrap();
    assert_eq!(empty.chunk_count(), 0);
    let mut builder = SegmentBuilder::new(0);
    builder.push("", None).unwrap();
    builder.push("…", None).unwrap();
    assert_eq!(Segment::from_bytes(builder.finish()).unwrap().chunk_count(), 2);
    let dense = SegmentBuilder::with_space(0, SPACE, 4).unwrap().finish();
    assert_eq!(Segment::from_bytes(dense).unwrap().dense().unwrap().rows().len(), 0);
}

#[test]
fn the_same_passages_give_the_same_bytes() {
    assert_eq!(blob(), blob());
}

#[test]
fn a_truncated_or_extended_segment_is_refused() {
    let whole = blob();
    for length in 0..whole.len() {
        assert!(Segment::from_bytes(whole[..length].to_vec()).is_err(), "{length}");
    }
    let mut longer = whole;
    longer.push(0);
    assert_eq!(Segment::from_bytes(longer).unwrap_err(), SegmentError::Length);
}

#[test]
fn any_changed_bit_is_noticed() {
    let whole = blob();
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << bit;
            assert!(Segment::from_bytes(damaged).is_err(), "byte {at}");
        }
    }
}

#[test]
fn nonsense_with_a_valid_checksum_is_refused_or_harmless() {
    let whole = blob();
    let mut refused = 0;
    for at in 12..whole.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut forged = whole.clone();
            forged[at] = value;
            header::seal(&mut forged);
            match Segment::from_bytes(forged) {
                Err(_) => refused += 1,
                Ok(segment) => {
                    for word in ["fox", "dog", "the"] {
                        for (ordinal, _) in
                            segment.postings(TermId::of(word)).into_iter().flat_map(TermPostings::iter)
                        {
                            assert!(u32::from(ordinal) < segment.chunk_count());
                        }
                    }
                    for row in segment.dense().into_iter().flat_map(DenseView::rows) {
                        assert_eq!(row.iter().count(), 3);
                    }
                }
            }
        }
    }
    assert!(refused > 100);
}

#[test]
fn bytes_of_another_kind_or_version_are_named_as_such() {
    assert_eq!(Segment::from_bytes(vec![0; 200]).unwrap_err(), SegmentError::Magic);
    assert_eq!(Segment::from_bytes(Vec::new()).unwrap_err(), SegmentError::Length);
    let mut newer = blob();
    newer[4] = 9;
    assert!(matches!(Segment::from_bytes(newer).unwrap_err(), SegmentError::Version { layout: 9, .. }));
}

#[test]
fn passages_that_do_not_fit_the_segment_are_refused_and_change_nothing() {
    let mut builder = SegmentBuilder::with_space(0, SPACE, 2).unwrap();
    assert_eq!(builder.push("text", None), Err(BuildError::MixedVectors));
    assert_eq!(builder.push("text", Some(&[1.0])), Err(BuildError::Dimension { expected: 2, actual: 1 }));
    assert_eq!(builder.push("text", Some(&[1.0, f32::NAN])), Err(BuildError::NotFinite));
    assert_eq!(SegmentBuilder::new(0).push("text", Some(&[1.0])), Err(BuildError::MixedVectors));
    let long = "x".repeat(5 * 1024 * 1024);
    assert!(matches!(SegmentBuilder::new(0).push(&long, None), Err(BuildError::TextTooLong(_))));
    assert!(SegmentBuilder::with_space(0, SPACE, 0).is_err());
    assert_eq!(builder.finish(), SegmentBuilder::with_space(0, SPACE, 2).unwrap().finish());
}

#[test]
fn a_segment_is_full_at_its_number_of_passages_or_bytes() {
    let mut builder = SegmentBuilder::new(0);
    while !builder.is_full() {
        builder.push("short text", None).unwrap();
    }
    assert_eq!(builder.chunk_count(), MAX_CHUNKS);
    assert_eq!(builder.push("one more", None), Err(BuildError::Full));
    let vector = vec![0.5; 4096];
    let mut builder = SegmentBuilder::with_space(0, SPACE, vector.len()).unwrap();
    while !builder.is_full() {
        builder.push("short text", Some(&vector)).unwrap();
    }
    let bytes = builder.finish().len();
    assert!((MAX_BYTES..MAX_BYTES + 20_000).contains(&bytes), "{bytes}");
    assert!(SegmentBuilder::new(u32::MAX).push("last", None).is_ok());
}
