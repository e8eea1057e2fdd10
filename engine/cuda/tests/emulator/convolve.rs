//! What a library computes from the description of a convolution, taken at its word: it knows nothing else of the node.

use cuda::backend::{Address, MatrixType};
use cuda::convolution::{Convolution, Pass};
use engine::dtype::{bf16, f16};

/// Elements as the description says.
struct Values {
    at: Address,
    of: MatrixType,
    n: usize,
}

impl Values {
    fn get(&self, i: usize) -> f32 {
        assert!(i < self.n);
        // SAFETY: `convolve`'s caller says that there are so many.
        unsafe {
            match self.of {
                MatrixType::F16 => (*(self.at as *const f16).add(i)).to_f32(),
                MatrixType::Bf16 => (*(self.at as *const bf16).add(i)).to_f32(),
                _ => *(self.at as *const f32).add(i),
            }
        }
    }

    fn set(&self, i: usize, value: f32) {
        assert!(i < self.n);
        // SAFETY: as above.
        unsafe {
            match self.of {
                MatrixType::F16 => *(self.at as *mut f16).add(i) = f16::from_f32(value),
                MatrixType::Bf16 => *(self.at as *mut bf16).add(i) = bf16::from_f32(value),
                _ => *(self.at as *mut f32).add(i) = value,
            }
        }
    }
}

/// Where an element of `[_, channels, rows, columns]` lies.
fn place(c: &Convolution, [n, k, y, x]: [usize; 4], [_, channels, rows, columns]: [usize; 4]) -> usize {
    if c.channels_last {
        ((n * rows + y) * columns + x) * channels + k
    } else {
        ((n * channels + k) * rows + y) * columns + x
    }
}

/// Computes the pass.
///
/// # Safety
/// The addresses are of memory for as many elements as the description says.
pub unsafe fn convolve(c: &Convolution, pass: Pass, at: [Address; 3]) {
    let lengths = c.lengths().unwrap();
    let [rows, columns] = c.result().unwrap();
    let (each, part) = (c.channels / c.groups, c.to / c.groups);
    assert_eq!((each * c.groups, part * c.groups), (c.channels, c.to));
    let sizes = [
        [c.batch, c.channels, c.image[0], c.image[1]],
        [c.to, each, c.window[0], c.window[1]],
        [c.batch, c.to, rows, columns],
    ];
    let values = [0, 1, 2].map(|i| Values { at: at[i], of: c.of, n: lengths[i] });
    let target = match pass {
        Pass::ToImage => 0,
        Pass::ToFilter => 1,
        Pass::Forward => 2,
    };
    let mut sums = vec![0f32; lengths[target]];
    for i in 0..lengths[2] * each * c.window[0] * c.window[1] {
        let mut rest = i;
        let mut next = |n: usize| {
            let position = rest % n;
            rest /= n;
            position
        };
        let [wx, wy, of, ox, oy, to, n] = [c.window[1], c.window[0], each, columns, rows, c.to, c.batch].map(&mut next);
        let within = |o: usize, w: usize, i: usize| {
            let at = (o * c.stride[i] + w * c.dilation[i]).checked_sub(c.padding[i])?;
            (at < c.image[i]).then_some(at)
        };
        let (Some(y), Some(x)) = (within(oy, wy, 0), within(ox, wx, 1)) else { continue };
        let places = [
            place(c, [n, to / part * each + of, y, x], sizes[0]),
            place(c, [to, of, wy, wx], sizes[1]),
            place(c, [n, to, oy, ox], sizes[2]),
        ];
        let [a, b] = match target {
            0 => [1, 2],
            1 => [0, 2],
            _ => [0, 1],
        };
        sums[places[target]] += values[a].get(places[a]) * values[b].get(places[b]);
    }
    for (i, sum) in sums.into_iter().enumerate() {
        values[target].set(i, sum);
    }
}
