//! Enlarged images: digits of 8x8 pixels as the nets for larger images want them.

use engine_core::tensor::{Tensor, TensorError};

/// Square images of one channel, f32 `[n, from * from]`, enlarged bilinearly to f32 `[n, to, to, 1]`. Pixels are areas: the
/// images' borders, not their outermost pixels' centres, come to lie on each other.
///
/// # Errors
/// `images` is no such tensor, or there is no memory.
pub fn enlarged(images: &Tensor, from: usize, to: usize) -> Result<Tensor, TensorError> {
    let pixels = images.slice::<f32>()?;
    let n = pixels.len() / (from * from).max(1);
    let taps: Vec<(usize, usize, f32)> = (0..to).map(|i| tap(i, from, to)).collect();
    let mut out = Vec::with_capacity(n * to * to);
    for image in pixels.chunks_exact((from * from).max(1)) {
        for &(top, bottom, down) in &taps {
            for &(left, right, across) in &taps {
                let row = |y: usize| image[y * from + left] * (1.0 - across) + image[y * from + right] * across;
                out.push(row(top) * (1.0 - down) + row(bottom) * down);
            }
        }
    }
    Tensor::from_vec([n, to, to, 1], out)
}

/// The two pixels that a new pixel lies between, and how near it is to the second.
fn tap(i: usize, from: usize, to: usize) -> (usize, usize, f32) {
    let at = ((i as f32 + 0.5) * from as f32 / to as f32 - 0.5).clamp(0.0, from as f32 - 1.0);
    let first = at as usize;
    (first, (first + 1).min(from - 1), at - first as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `tf.image.resize` of [[0, 1], [2, 3]] to 4x4.
    #[test]
    fn as_tensorflow_resizes() {
        let small = Tensor::from_vec([1, 4], vec![0f32, 1.0, 2.0, 3.0]).unwrap();
        let large = enlarged(&small, 2, 4).unwrap();
        let expected = [0.0, 0.25, 0.75, 1.0, 0.5, 0.75, 1.25, 1.5, 1.5, 1.75, 2.25, 2.5, 2.0, 2.25, 2.75, 3.0f32];
        assert_eq!(large.slice::<f32>().unwrap(), expected);
    }
}
