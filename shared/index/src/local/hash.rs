//! Hashing of ids, of which a search may name tens of thousands.

use std::hash::{BuildHasherDefault, Hasher};

/// A map by ids that this service made: nobody else can choose them, so that they collide.
pub(super) type IdMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Mixes the two halves of an id, of which the second is mostly random.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        let (halves, rest) = bytes.as_chunks::<8>();
        for half in halves {
            self.0 = (self.0.rotate_left(32) ^ u64::from_le_bytes(*half)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        for byte in rest {
            self.0 = (self.0.rotate_left(8) ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    /// The length of an id, which all have.
    fn write_usize(&mut self, _: usize) {}
}
