//! Philox 4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011),
//! with TensorFlow's seeding and its ways to make floats, so that equal seeds give TensorFlow's numbers.

use parking_lot::Mutex;

use crate::checkpoint::{CheckpointError, Checkpointed, Fields};
use crate::tensor::Tensor;

use crate::dtype::{bf16, f16};

/// A generator: 128 bits of counter, 64 of key. Each call gives four words and counts on.
#[derive(Clone, Copy, Debug)]
pub struct Philox {
    counter: [u32; 4],
    key: [u32; 2],
}

impl Philox {
    /// The generator of a pair of seeds: the first is the key, the second the counter's upper half.
    pub fn new(seed: u64, seed2: u64) -> Philox {
        Philox { counter: [0, 0, seed2 as u32, (seed2 >> 32) as u32], key: [seed as u32, (seed >> 32) as u32] }
    }

    /// Counter and key, to go on from elsewhere.
    pub fn state(&self) -> [u32; 6] {
        let ([a, b, c, d], [k, l]) = (self.counter, self.key);
        [a, b, c, d, k, l]
    }

    /// The generator of a [`Philox::state`].
    pub fn from_state([a, b, c, d, k, l]: [u32; 6]) -> Philox {
        Philox { counter: [a, b, c, d], key: [k, l] }
    }

    /// The generator with this key, at this counter.
    pub fn at(key: u64, counter: [u64; 2]) -> Philox {
        let [a, b] = counter.map(|half| [half as u32, (half >> 32) as u32]);
        Philox { counter: [a[0], a[1], b[0], b[1]], key: [key as u32, (key >> 32) as u32] }
    }

    /// Key and counter, as [`Philox::at`] takes them.
    pub fn key_and_counter(self) -> (u64, [u64; 2]) {
        let join = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let c = self.counter;
        (join(self.key[0], self.key[1]), [join(c[0], c[1]), join(c[2], c[3])])
    }

    /// The generator of a pair of seeds that are an op's input: scrambled by TensorFlow's own key, so that near seeds
    /// give unrelated numbers.
    pub fn scrambled(seed: u64, seed2: u64) -> Philox {
        let mut scrambler = Philox::at(0x0246_1e29_3ec8_f720, [seed, seed2]);
        let x = scrambler.next4();
        Philox { counter: [0, 0, x[2], x[3]], key: [x[0], x[1]] }
    }

    /// Moves on by `n` calls.
    pub fn skip(&mut self, n: u64) {
        let low = u64::from(self.counter[0]) | u64::from(self.counter[1]) << 32;
        let (low, carry) = low.overflowing_add(n);
        self.counter[0] = low as u32;
        self.counter[1] = (low >> 32) as u32;
        if carry {
            let high = u64::from(self.counter[2]) | u64::from(self.counter[3]) << 32;
            let high = high.wrapping_add(1);
            self.counter[2] = high as u32;
            self.counter[3] = (high >> 32) as u32;
        }
    }

    /// The next four words.
    pub fn next4(&mut self) -> [u32; 4] {
        const MUL: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
        const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
        let (mut c, mut k) = (self.counter, self.key);
        for _ in 0..10 {
            let p0 = u64::from(MUL[0]) * u64::from(c[0]);
            let p1 = u64::from(MUL[1]) * u64::from(c[2]);
            c = [(p1 >> 32) as u32 ^ c[1] ^ k[0], p1 as u32, (p0 >> 32) as u32 ^ c[3] ^ k[1], p0 as u32];
            k = [k[0].wrapping_add(WEYL[0]), k[1].wrapping_add(WEYL[1])];
        }
        self.skip(1);
        c
    }
}

/// A generator's words, one by one.
pub struct Words {
    generator: Philox,
    block: [u32; 4],
    n_used: usize,
}

impl Words {
    /// The words from where `generator` is.
    pub fn new(generator: Philox) -> Words {
        Words { generator, block: [0; 4], n_used: 4 }
    }

    /// The next one.
    pub fn next_u32(&mut self) -> u32 {
        if self.n_used == 4 {
            self.block = self.generator.next4();
            self.n_used = 0;
        }
        self.n_used += 1;
        self.block[self.n_used - 1]
    }
}

/// [0, 1), from 10 random bits.
pub fn uniform_f16(word: u32) -> f16 {
    f16::from_f32(f16::from_bits(15 << 10 | (word as u16 & 0x3ff)).to_f32() - 1.0)
}

/// [0, 1), from 7 random bits.
pub fn uniform_bf16(word: u32) -> bf16 {
    bf16::from_f32(bf16::from_bits(127 << 7 | (word as u16 & 0x7f)).to_f32() - 1.0)
}

/// A generator that goes on from execution to execution belongs into checkpoints.
impl Checkpointed for Mutex<Philox> {
    fn kind(&self) -> &'static str {
        "generator"
    }

    fn save(&self) -> Fields {
        Fields::from([("philox".to_owned(), Tensor::vector(&self.lock().state()))])
    }

    fn restore(&self, fields: &Fields) -> Result<(), CheckpointError> {
        let state = fields.get("philox").and_then(|t| t.slice::<u32>().ok()).and_then(|s| <[u32; 6]>::try_from(s).ok());
        let state = state.ok_or_else(|| CheckpointError::state("generator", "the saved state is not sound"))?;
        *self.lock() = Philox::from_state(state);
        Ok(())
    }
}

/// [0, 1): 23 random bits behind an exponent that makes [1, 2), less 1.
pub fn uniform_f32(word: u32) -> f32 {
    f32::from_bits(127 << 23 | (word & 0x7f_ffff)) - 1.0
}

/// [0, 1), from 52 random bits.
pub fn uniform_f64(low: u32, high: u32) -> f64 {
    let mantissa = u64::from(low & 0xf_ffff) << 32 | u64::from(high);
    f64::from_bits(1023 << 52 | mantissa) - 1.0
}

/// Two normal numbers (Box and Muller).
pub fn normal_f32(x0: u32, x1: u32) -> [f32; 2] {
    let u1 = uniform_f32(x0).max(1.0e-7);
    let angle = 2.0 * std::f32::consts::PI * uniform_f32(x1);
    let radius = (-2.0 * u1.ln()).sqrt();
    [angle.sin() * radius, angle.cos() * radius]
}

/// Two normal numbers (Box and Muller).
pub fn normal_f64(x: [u32; 4]) -> [f64; 2] {
    let u1 = uniform_f64(x[0], x[1]).max(1.0e-7);
    let angle = 2.0 * std::f64::consts::PI * uniform_f64(x[2], x[3]);
    let radius = (-2.0 * u1.ln()).sqrt();
    [angle.sin() * radius, angle.cos() * radius]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known-answer vectors of Random123, the authors' own implementation.
    #[test]
    fn known_answers() {
        let mut zero = Philox { counter: [0; 4], key: [0; 2] };
        assert_eq!(zero.next4(), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
        let mut ones = Philox { counter: [u32::MAX; 4], key: [u32::MAX; 2] };
        assert_eq!(ones.next4(), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
        let counter = [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344];
        let mut pi = Philox { counter, key: [0xa4093822, 0x299f31d0] };
        assert_eq!(pi.next4(), [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]);
        // The counter carries through all four words.
        assert_eq!(ones.counter, [0; 4]);
    }
}
