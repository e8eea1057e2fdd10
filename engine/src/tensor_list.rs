//! Lists of tensors: the values of type variant that loops in TensorFlow 2's graphs gather their results in.

use crate::dtype::DType;
use crate::shape::PartialShape;
use crate::tensor::Tensor;

/// A list of tensors of one element type. Clones share the tensors.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorList {
    /// The tensors' element type.
    pub element_dtype: DType,
    /// What is known of the tensors' shape.
    pub element_shape: PartialShape,
    /// How many tensors there may be; `None`: as many as come.
    pub max_num_elements: Option<usize>,
    /// The tensors; `None` where none was set, which reads as zeros.
    pub tensors: Vec<Option<Tensor>>,
}

impl TensorList {
    /// A list without tensors.
    pub fn new(element_dtype: DType, element_shape: PartialShape) -> TensorList {
        TensorList { element_dtype, element_shape, max_num_elements: None, tensors: Vec::new() }
    }

    /// The list that has these tensors and is like this one else.
    pub fn with(&self, tensors: Vec<Option<Tensor>>) -> TensorList {
        TensorList { tensors, element_shape: self.element_shape.clone(), ..*self }
    }
}
