//! Lists of tensors: the values of type variant that loops in TensorFlow 2's graphs gather their results in.

use crate::buffer::AllocError;
use crate::dtype::DType;
use crate::memory::{self, Charge};
use crate::shape::PartialShape;
use crate::tensor::Tensor;
pub use crate::tensor::TensorList;

impl PartialEq for TensorList {
    fn eq(&self, other: &TensorList) -> bool {
        self.element_dtype == other.element_dtype
            && self.element_shape == other.element_shape
            && self.max_num_elements == other.max_num_elements
            && self.tensors == other.tensors
    }
}

impl TensorList {
    /// A list without tensors.
    pub fn new(element_dtype: DType, element_shape: PartialShape) -> TensorList {
        let (tensors, charge) = (Vec::new(), Charge::default());
        TensorList { element_dtype, element_shape, max_num_elements: None, tensors, charge }
    }

    /// The list that has these tensors and is like this one else.
    pub fn with(&self, tensors: Vec<Option<Tensor>>) -> TensorList {
        let charge = Charge::unchecked(size_of_val(tensors.as_slice()));
        TensorList { tensors, element_shape: self.element_shape.clone(), charge, ..*self }
    }

    /// Makes room for `n` tensors more.
    ///
    /// # Errors
    /// The process has no memory for them.
    pub fn grow(&mut self, n: usize) -> Result<(), AllocError> {
        memory::grow(&mut self.tensors, &mut self.charge, n)
    }

    /// Makes it `n` tensors long; those that are new are not set.
    ///
    /// # Errors
    /// As with [`TensorList::grow`].
    pub fn resize(&mut self, n: usize) -> Result<(), AllocError> {
        self.grow(n.saturating_sub(self.tensors.len()))?;
        self.tensors.resize(n, None);
        Ok(())
    }
}
