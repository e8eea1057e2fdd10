//! Tensors compared, shown, and made of numbers.

use std::fmt;
use std::sync::Arc;

use super::value::{Data, Tensor};
use crate::convert::with_number;
use crate::dtype::{DType, Element};

/// Equal dtype, shape and elements (bit by bit; resources: the same object; on a device: the same memory).
impl PartialEq for Tensor {
    fn eq(&self, other: &Tensor) -> bool {
        self.dtype == other.dtype
            && self.shape == other.shape
            && match (&self.data, &other.data) {
                (Data::Strings(a), Data::Strings(b)) => a.values == b.values,
                (Data::Resource(a), Data::Resource(b)) => Arc::ptr_eq(&a.object, &b.object),
                (Data::List(a), Data::List(b)) => a == b,
                (Data::Device(a), Data::Device(b)) => Arc::ptr_eq(a, b),
                (Data::Device(_), _) | (_, Data::Device(_)) => false,
                _ => self.bytes() == other.bytes(),
            }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 16;
        fn list<T: fmt::Debug>(f: &mut fmt::Formatter<'_>, values: &[T]) -> fmt::Result {
            for (i, v) in values.iter().take(SHOWN).enumerate() {
                write!(f, "{}{v:?}", if i == 0 { "" } else { ", " })?;
            }
            f.write_str(if values.len() > SHOWN { ", ..." } else { "" })
        }
        write!(f, "{}{} ", self.dtype, self.shape)?;
        if let Data::Device(memory) = &self.data {
            return write!(f, "{{in the memory of {}}}", memory.device());
        }
        f.write_str("{")?;
        fn numbers<T: Element>(f: &mut fmt::Formatter<'_>, t: &Tensor) -> fmt::Result {
            list(f, t.slice::<T>().unwrap_or_default())
        }
        with_number!(self.dtype, numbers(f, self), other => match other {
            DType::String => {
                let strings = self.strings().unwrap_or_default().iter();
                list(f, &strings.take(SHOWN + 1).map(|s| String::from_utf8_lossy(s)).collect::<Vec<_>>())
            }
            _ => match self.handle() {
                Ok(h) => write!(f, "{}/{}", h.container, h.name),
                Err(_) => f.write_str("?"),
            },
        })?;
        f.write_str("}")
    }
}

impl From<f32> for Tensor {
    fn from(v: f32) -> Tensor {
        Tensor::scalar(v)
    }
}

impl From<i64> for Tensor {
    fn from(v: i64) -> Tensor {
        Tensor::scalar(v)
    }
}
