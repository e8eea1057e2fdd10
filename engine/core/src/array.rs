//! Tensors from and to `ndarray`'s arrays: what a client feeds and what it does with fetches.
//!
//! A tensor takes over an array's memory where the elements lie row-major and without gaps, and copies them into that
//! order elsewhere; a view of a tensor never copies.
//!
//! ```
//! use engine::{DType, Graph, Session, SessionOptions, Tensor};
//! use ndarray::{Array, array};
//!
//! let g = Graph::new();
//! g.add_node("Placeholder").name("x").attr("dtype", DType::F32).build()?;
//! let x = g.output("x")?;
//! g.add_node("Mul").name("squares").input(x).input(x).build()?;
//! let session = Session::new(&g, SessionOptions::default())?;
//! let y = session.run(&[("x", array![[1.0f32, 2.0], [3.0, 4.0]].into())], &["squares"], &[])?;
//! assert_eq!(y[0].view::<f32>()?, array![[1.0, 4.0], [9.0, 16.0]].into_dyn());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use ndarray::{Array, ArrayD, ArrayView, ArrayViewD, ArrayViewMutD, Dimension, IxDyn};

use crate::dtype::Element;
use crate::shape::Shape;
use crate::tensor::{Tensor, TensorError};

impl<T: Element, D: Dimension> From<Array<T, D>> for Tensor {
    /// Takes the array's memory over where its elements lie row-major and are all there is in it.
    fn from(array: Array<T, D>) -> Tensor {
        let n = array.len();
        if !array.is_standard_layout() {
            return Tensor::from(array.view());
        }
        let shape = Shape::new(array.shape());
        let (values, offset) = array.into_raw_vec_and_offset();
        match offset.unwrap_or(0) {
            0 if values.len() == n => of(shape, values),
            first => of(shape, values[first..first + n].to_vec()),
        }
    }
}

impl<T: Element, D: Dimension> From<ArrayView<'_, T, D>> for Tensor {
    /// Copies the elements, whatever their order in memory.
    fn from(view: ArrayView<'_, T, D>) -> Tensor {
        let values = match view.as_slice() {
            Some(values) => values.to_vec(),
            None => view.iter().copied().collect(),
        };
        of(Shape::new(view.shape()), values)
    }
}

fn of<T: Element>(shape: Shape, values: Vec<T>) -> Tensor {
    Tensor::from_vec(shape, values).expect("an array has as many elements as its shape says")
}

impl Tensor {
    /// The elements as an array, not copied.
    ///
    /// # Errors
    /// They are of another type.
    pub fn view<T: Element>(&self) -> Result<ArrayViewD<'_, T>, TensorError> {
        let values = self.slice::<T>()?;
        Ok(ArrayViewD::from_shape(IxDyn(self.dims()), values).expect("a tensor has as many elements as its shape says"))
    }

    /// The elements as an array for writing, not copied; `None` where somebody shares them.
    ///
    /// # Errors
    /// They are of another type.
    pub fn view_mut<T: Element>(&mut self) -> Result<Option<ArrayViewMutD<'_, T>>, TensorError> {
        let dims = IxDyn(self.dims());
        let Some(values) = self.slice_mut::<T>()? else { return Ok(None) };
        Ok(Some(ArrayViewMutD::from_shape(dims, values).expect("a tensor has as many elements as its shape says")))
    }
}

impl<T: Element> TryFrom<&Tensor> for ArrayD<T> {
    type Error = TensorError;

    /// Copies the elements; an error if they are of another type.
    fn try_from(tensor: &Tensor) -> Result<ArrayD<T>, TensorError> {
        tensor.view().map(|view| view.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{arr0, array, s};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn contiguous_memory_is_taken_over() {
        let array = array![[1i64, 2], [3, 4]];
        let at = array.as_ptr();
        let tensor = Tensor::from(array);
        assert_eq!(tensor.slice::<i64>().unwrap().as_ptr(), at);
        assert_eq!(tensor.view::<i64>().unwrap().as_ptr(), at);
    }

    #[test]
    fn slices_of_arrays_and_scalars() {
        let a = array![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let column = Tensor::from(a.slice(s![.., 1]));
        assert_eq!((column.dims(), column.slice::<f32>().unwrap()), (&[2][..], &[2.0, 5.0][..]));
        // Owned, standard, but only a part of its memory.
        let row = Tensor::from(a.slice_move(s![1, ..]));
        assert_eq!(row.slice::<f32>().unwrap(), &[4.0, 5.0, 6.0]);
        let scalar = Tensor::from(arr0(true));
        assert_eq!((scalar.dims(), scalar.view::<bool>().unwrap()), (&[][..], arr0(true).view().into_dyn()));
        let empty = Tensor::from(Array::<u8, _>::from_shape_vec((0, 3), vec![]).unwrap());
        assert_eq!(empty.view::<u8>().unwrap().shape(), [0, 3]);
    }

    #[test]
    fn other_types_and_shared_elements() {
        let mut t = Tensor::from(array![1i32, 2]);
        assert_eq!(t.view::<f32>().unwrap_err().to_string(), "expected a tensor of float, got int32");
        assert!(ArrayD::<i64>::try_from(&t).is_err());
        let shared = t.clone();
        assert!(t.view_mut::<i32>().unwrap().is_none());
        drop(shared);
        t.view_mut::<i32>().unwrap().unwrap()[1] = 7;
        assert_eq!(t, Tensor::vector(&[1i32, 7]));
    }

    proptest! {
        /// ndarray is the oracle: any order of axes, reversed or strided, there and back.
        #[test]
        fn there_and_back(
            dims in prop::collection::vec(1usize..4, 1..4), rotate in 0usize..3, reversed: bool, step in 1isize..3,
        ) {
            let n = dims.iter().product::<usize>();
            let base = ArrayD::from_shape_vec(dims.clone(), (0..n as i64).collect()).unwrap();
            let order: Vec<usize> = (0..dims.len()).map(|i| (i + rotate) % dims.len()).collect();
            let mut array = base.permuted_axes(order);
            array.slice_axis_inplace(ndarray::Axis(0), ndarray::Slice::new(0, None, if reversed { -step } else { step }));
            let tensor = Tensor::from(array.clone());
            prop_assert_eq!(Tensor::from(array.view()), tensor.clone());
            prop_assert_eq!(ArrayD::<i64>::try_from(&tensor).unwrap(), array);
        }
    }
}
