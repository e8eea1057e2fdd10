//! The elements of a tensor array, and the rules of writing and reading them.

use std::sync::Arc;

use parking_lot::Mutex;

use super::pieces::sum;
use crate::kernels::KernelError;
use engine_core::buffer::Allocator;
use engine_core::dtype::DType;
use engine_core::memory::{self, Charge};
use engine_core::shape::{PartialShape, Shape};
use engine_core::tensor::Tensor;

/// How an array behaves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    pub dtype: DType,
    /// Writing beyond the end makes it longer.
    pub is_dynamic: bool,
    /// An element can be read once.
    pub clear_after_read: bool,
    /// The first element's shape is that of all.
    pub identical_shapes: bool,
    /// An element that is written again becomes the sum.
    pub adds_up: bool,
    /// It holds the gradients of another array.
    pub is_gradient: bool,
}

/// An array of tensors.
pub(super) struct Array {
    pub name: Arc<str>,
    pub options: Options,
    inner: Mutex<Inner>,
}

struct Inner {
    element_shape: PartialShape,
    elements: Vec<Element>,
    charge: Charge,
    is_closed: bool,
    /// Elements were added up, so that there are no gradients of this array.
    was_added_up: bool,
}

#[derive(Clone, Default)]
struct Element {
    /// `None` where it was not written or was cleared, and where it is zeros of `shape`.
    value: Option<Tensor>,
    shape: Option<Shape>,
    is_written: bool,
    is_read: bool,
    is_cleared: bool,
}

impl Inner {
    fn resize(&mut self, n: usize, element: Element) -> Result<(), KernelError> {
        let n_new = n.saturating_sub(self.elements.len());
        memory::grow(&mut self.elements, &mut self.charge, n_new)?;
        self.elements.resize(n, element);
        Ok(())
    }
}

/// Arrays are not longer than this, however dynamic.
const MAX_ELEMENTS: usize = 1 << 28;

fn invalid<T>(text: String) -> Result<T, KernelError> {
    Err(KernelError::invalid(text))
}

impl Array {
    pub fn new(
        name: Arc<str>,
        options: Options,
        element_shape: PartialShape,
        size: usize,
    ) -> Result<Array, KernelError> {
        if size > MAX_ELEMENTS {
            return invalid(format!("a TensorArray of {size} elements is too large"));
        }
        let mut inner = Inner {
            element_shape,
            elements: Vec::new(),
            charge: Charge::default(),
            is_closed: false,
            was_added_up: false,
        };
        inner.resize(size, Element::default())?;
        Ok(Array { name, options, inner: Mutex::new(inner) })
    }

    /// An array for this one's gradients: as long, each element zeros of the shape that is written here, with `prepend`
    /// before its dimensions.
    pub fn gradient(&self, name: Arc<str>, prepend: &[usize]) -> Result<Array, KernelError> {
        let inner = self.inner.lock();
        self.check_open(&inner)?;
        if inner.was_added_up {
            return invalid(format!(
                "Unable to create a gradients TensorArray for {}. Perhaps you used the multiple_writes_aggregate flag \
                 on a previous write? Gradient calculation is impossible when multiple writes are performed to the \
                 same index.",
                self.name
            ));
        }
        let longer = |dims: &[usize]| Shape::new(&prepend.iter().chain(dims).copied().collect::<Vec<_>>());
        let element = |element: &Element| Element {
            shape: element.shape.as_ref().map(|shape| longer(shape.dims())),
            is_written: element.is_written,
            ..Element::default()
        };
        let element_shape = match inner.element_shape.dims() {
            None => PartialShape::unknown(),
            Some(dims) => {
                let all: Vec<Option<usize>> =
                    prepend.iter().map(|dim| Some(*dim)).chain(dims.iter().copied()).collect();
                PartialShape::new(&all)
            }
        };
        let options =
            Options { is_dynamic: false, clear_after_read: true, adds_up: true, is_gradient: true, ..self.options };
        let (elements, charge) = (inner.elements.iter().map(element).collect(), inner.charge.clone());
        let inner = Inner { element_shape, elements, charge, is_closed: false, was_added_up: false };
        Ok(Array { name, options, inner: Mutex::new(inner) })
    }

    fn check_open(&self, inner: &Inner) -> Result<(), KernelError> {
        match inner.is_closed {
            true => invalid(format!("TensorArray {} has already been closed.", self.name)),
            false => Ok(()),
        }
    }

    pub fn len(&self) -> Result<usize, KernelError> {
        let inner = self.inner.lock();
        self.check_open(&inner)?;
        Ok(inner.elements.len())
    }

    pub fn close(&self) {
        let mut inner = self.inner.lock();
        inner.is_closed = true;
        (inner.elements, inner.charge) = Default::default();
    }

    /// Merges `shape` into the elements' shape, for later reads and writes too, and returns what is known then.
    pub fn merge_shape(&self, shape: &PartialShape) -> Result<PartialShape, KernelError> {
        let mut inner = self.inner.lock();
        let Some(merged) = inner.element_shape.merge(shape) else {
            return invalid(format!(
                "TensorArray was passed element_shape {shape} which does not match the Gather element_shape {}",
                inner.element_shape
            ));
        };
        inner.element_shape = merged.clone();
        Ok(merged)
    }

    /// All elements have this shape.
    pub fn set_shape(&self, shape: &Shape) -> Result<(), KernelError> {
        let mut inner = self.inner.lock();
        self.check_open(&inner)?;
        match inner.element_shape.merge(&PartialShape::from(shape)) {
            Some(merged) => {
                // Others may still be written with other shapes unless all are the same.
                if self.options.identical_shapes {
                    inner.element_shape = merged;
                }
                Ok(())
            }
            None => {
                let expected = &inner.element_shape;
                invalid(format!("Incompatible shapes: the TensorArray's elements are {expected}, got {shape}"))
            }
        }
    }

    /// Writes element `index`, or adds to it.
    pub fn write(&self, index: i64, value: Tensor, allocator: &Allocator) -> Result<(), KernelError> {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        self.check_open(inner)?;
        let at = self.room_for(inner, index)?;
        if value.dtype() != self.options.dtype {
            let (got, held) = (value.dtype(), self.options.dtype);
            return invalid(format!(
                "Could not write to TensorArray index {index} because the value dtype is {got} but TensorArray dtype \
                 is {held}."
            ));
        }
        if !inner.element_shape.admits(value.shape()) {
            let (got, expected) = (value.shape(), &inner.element_shape);
            return invalid(format!(
                "Could not write to TensorArray index {index} because the value shape is {got} which is incompatible \
                 with the TensorArray's inferred element shape: {expected} (consider setting infer_shape=False)."
            ));
        }
        if self.options.identical_shapes && inner.element_shape.known().is_none() {
            inner.element_shape = PartialShape::from(value.shape());
        }
        let element = &mut inner.elements[at];
        if element.is_read {
            return invalid(format!("Could not write to TensorArray index {index} because it has already been read."));
        }
        if !element.is_written {
            element.shape = Some(value.shape().clone());
            element.value = Some(value);
            element.is_written = true;
            return Ok(());
        }
        if !self.options.adds_up {
            return invalid(format!(
                "Could not write to TensorArray index {index} because it has already been written to."
            ));
        }
        if element.shape.as_ref() != Some(value.shape()) {
            let is = element.shape.as_ref().map(ToString::to_string).unwrap_or_default();
            return invalid(format!(
                "Could not aggregate to TensorArray index {index} because the existing shape is {is} but the new input \
                 shape is {}.",
                value.shape()
            ));
        }
        element.value = Some(match element.value.take() {
            None => value,
            Some(before) => {
                inner.was_added_up = true;
                sum(before, value, allocator)?
            }
        });
        Ok(())
    }

    /// The place of element `index`, made where the array is dynamic.
    fn room_for(&self, inner: &mut Inner, index: i64) -> Result<usize, KernelError> {
        let size = inner.elements.len();
        match usize::try_from(index) {
            Ok(at) if at < size => Ok(at),
            Ok(at) if self.options.is_dynamic && at < MAX_ELEMENTS => {
                inner.resize(at + 1, Element::default())?;
                Ok(at)
            }
            _ => {
                let why = if self.options.is_dynamic { "" } else { " array is not resizeable and" };
                invalid(format!("Tried to write to index {index} but{why} size is: {size}"))
            }
        }
    }

    /// Element `index`. An array of gradients has zeros where nothing was written.
    pub fn read(&self, index: i64, allocator: &Allocator) -> Result<Tensor, KernelError> {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        self.check_open(inner)?;
        let size = inner.elements.len();
        let out_of_range = || invalid(format!("Tried to read from index {index} but array size is: {size}"));
        let Ok(at) = usize::try_from(index) else { return out_of_range() };
        if at >= size {
            if !self.options.is_gradient || at >= MAX_ELEMENTS {
                return out_of_range();
            }
            let shape = self.default_shape(inner, at)?;
            let element = Element { shape: Some(shape), is_written: true, ..Element::default() };
            inner.resize(at + 1, element)?;
        } else if !inner.elements[at].is_written {
            let own = inner.elements[at].shape.clone().filter(|_| self.options.is_gradient);
            let shape = own.map_or_else(|| self.default_shape(inner, at), Ok)?;
            inner.elements[at].shape = Some(shape);
            inner.elements[at].is_written = true;
        }
        let element = &mut inner.elements[at];
        if element.is_cleared {
            return invalid(format!(
                "Could not read index {index} twice because it was cleared after a previous read (perhaps try setting \
                 clear_after_read = false?)."
            ));
        }
        let shape = element.shape.clone().unwrap_or_default();
        let value = match element.value.take() {
            Some(value) => value,
            None => Tensor::zeros(self.options.dtype, shape, allocator)?,
        };
        element.is_read = true;
        if self.options.clear_after_read {
            element.is_cleared = true;
        } else {
            element.value = Some(value.clone());
        }
        Ok(value)
    }

    /// The shape of an element that was not written.
    fn default_shape(&self, inner: &Inner, at: usize) -> Result<Shape, KernelError> {
        match inner.element_shape.known() {
            Some(shape) => Ok(shape),
            None => invalid(format!(
                "Could not read from TensorArray index {at}. Furthermore, the element shape is not fully defined: {}. \
                 It is possible you are working with a resizeable TensorArray and stop_gradients is not allowing the \
                 gradients to be written. If you set the full element_shape property on the forward TensorArray, the \
                 proper all-zeros tensor will be returned instead of incurring this error.",
                inner.element_shape
            )),
        }
    }
}
