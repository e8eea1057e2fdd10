//! The sizes of a convolution, and those of the products that it is.

use engine::kernels::KernelError;
use engine::window::{Axis, Windows};

use super::matmul::Product;
use super::windows::Sizes;

/// The sizes of a convolution.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts {
    pub sizes: Sizes,
    /// Channels of the image that a filter sees.
    pub each: usize,
    /// Channels of the result.
    pub to: usize,
}

impl Parts {
    /// Of images `[batch, rows, columns, channels]` and filters `[rows, columns, each, to]`.
    pub fn new(windows: &Windows, image: &[usize], filter: &[usize]) -> Result<Parts, KernelError> {
        let (&[batch, height, width, channels], &[win_y, win_x, each, to]) = (image, filter) else {
            return Err(KernelError::invalid(format!(
                "the input {image:?} and the filter {filter:?} must have rank 4"
            )));
        };
        let groups = channels.checked_div(each).unwrap_or(0);
        if each == 0 || groups * each != channels || channels > 0 && to % groups != 0 {
            let text = format!("channels of the input {image:?} do not fit the filter {filter:?}");
            return Err(KernelError::invalid(text));
        }
        let sizes = Sizes { batch, channels, y: windows.axis(0, height, win_y)?, x: windows.axis(1, width, win_x)? };
        Ok(Parts { sizes, each, to })
    }

    pub fn n_groups(&self) -> usize {
        self.sizes.channels / self.each
    }

    /// Elements of a window that a filter sees.
    pub fn window(&self) -> usize {
        self.sizes.y.window * self.sizes.x.window * self.each
    }

    /// Whether a window is one pixel and there is one for each: the image is its own columns.
    pub fn is_plain(&self) -> bool {
        let single = |a: Axis| a.window == 1 && a.stride == 1 && a.before == 0 && a.output == a.input;
        single(self.sizes.y) && single(self.sizes.x)
    }

    /// Elements from one row of the columns to the next, and from one group to the next, for `n` images.
    pub fn columns(&self, n: usize) -> (usize, usize) {
        match self.is_plain() {
            true => (self.sizes.channels, self.each),
            false => (self.window(), n * self.sizes.out_pixels() * self.window()),
        }
    }

    /// The products of all groups.
    pub fn products(&self, product: Product, rows: [usize; 3], strides: [usize; 3]) -> Product {
        Product { rows, strides, n_batches: self.n_groups(), ..product }
    }
}
