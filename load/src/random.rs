//! Chance that can be repeated.

/// Numbers that look like chance and follow from a seed: `SplitMix64`. It is written out here because the same seed has to
/// mean the same documents with every version of every crate.
#[derive(Clone, Debug)]
pub(crate) struct SeededRandom(u64);

impl SeededRandom {
    /// The numbers that follow from `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Numbers of their own for one of many things under the same seed.
    pub(crate) fn of(seed: u64, thing: u64) -> Self {
        let mut random = Self(seed ^ thing.wrapping_mul(0xd6e8_feb8_6659_fd93));
        // Neighbours differ in a few bits only, until they are mixed once.
        Self(random.next())
    }

    /// Any number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 when `end` is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let scaled = (u128::from(self.next()) * end as u128) >> 64;
        usize::try_from(scaled).unwrap_or(0)
    }

    /// One of `things`, which must not be empty.
    pub(crate) fn pick<'a, T: ?Sized>(&mut self, things: &[&'a T]) -> &'a T {
        things[self.below(things.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let numbers = |seed| {
            let mut random = SeededRandom::new(seed);
            [random.next(), random.next()]
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        assert_ne!(SeededRandom::of(7, 1).next(), SeededRandom::of(7, 2).next());
    }

    #[test]
    fn numbers_stay_below_their_end_and_reach_all_of_it() {
        let mut random = SeededRandom::new(1);
        let mut seen = [false; 10];
        for _ in 0..1_000 {
            seen[random.below(10)] = true;
        }
        assert_eq!(seen, [true; 10]);
        assert_eq!(random.below(0), 0);
    }
}
