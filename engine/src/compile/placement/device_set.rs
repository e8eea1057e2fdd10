//! Sets of devices, by their numbers in a session.

use smallvec::SmallVec;

/// As many devices as a session may have: what placement looks at grows with the square.
pub const MAX_DEVICES: usize = 1024;

/// A set of devices: one word holds 64, as many as most sessions have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceSet(SmallVec<[u64; 1]>);

impl DeviceSet {
    /// The first `n` devices.
    pub fn all(n: usize) -> DeviceSet {
        (0..n as u32).collect()
    }

    /// One device.
    pub fn one(device: u32) -> DeviceSet {
        std::iter::once(device).collect()
    }

    /// Whether the device is in it.
    #[inline]
    pub fn has(&self, device: u32) -> bool {
        self.0.get(device as usize / 64).is_some_and(|word| word >> (device % 64) & 1 == 1)
    }

    /// Puts the device in.
    pub fn insert(&mut self, device: u32) {
        let word = device as usize / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (device % 64);
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let bits = |(i, word): (usize, &u64)| {
            let word = *word;
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| i as u32 * 64 + bit)
        };
        self.0.iter().enumerate().flat_map(bits)
    }

    /// The first one; of none, 0.
    pub fn first(&self) -> u32 {
        let word = self.0.iter().position(|word| *word != 0);
        word.map_or(0, |i| i as u32 * 64 + self.0[i].trailing_zeros())
    }

    /// The one, where it is the only one.
    pub fn only(&self) -> Option<u32> {
        let n: u32 = self.0.iter().map(|word| word.count_ones()).sum();
        (n == 1).then(|| self.first())
    }
}

impl FromIterator<u32> for DeviceSet {
    fn from_iter<I: IntoIterator<Item = u32>>(devices: I) -> DeviceSet {
        let mut set = DeviceSet::default();
        devices.into_iter().for_each(|device| set.insert(device));
        set
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_set(devices in proptest::collection::btree_set(0u32..300, 0..40)) {
            let set: DeviceSet = devices.iter().copied().collect();
            prop_assert_eq!(set.iter().collect::<BTreeSet<u32>>(), devices.clone());
            prop_assert!((0..400).all(|d| set.has(d) == devices.contains(&d)));
            prop_assert_eq!(set.is_empty(), devices.is_empty());
            prop_assert_eq!(set.first(), devices.first().copied().unwrap_or(0));
            let only = devices.first().copied().filter(|_| devices.len() == 1);
            prop_assert_eq!(set.only(), only);
        }
    }
}
