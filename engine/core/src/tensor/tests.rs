//! Sharing, reuse and wrong uses of tensors.

use super::*;
use crate::buffer::Allocator;
use crate::dtype::DType;
use crate::shape::Shape;

#[test]
fn elements_are_shared_until_asked_for_alone() {
    let mut a = Tensor::from_vec([2, 2], vec![1.0f32, 2.0, 3.0, 4.0]).unwrap();
    let b = a.clone();
    assert!(a.shares_memory_with(&b));
    assert!(a.slice_mut::<f32>().unwrap().is_none());
    drop(b);
    a.slice_mut::<f32>().unwrap().unwrap()[3] = 5.0;
    assert_eq!(format!("{a:?}"), "float[2,2] {1.0, 2.0, 3.0, 5.0}");
}

#[test]
fn wrong_uses_are_errors() {
    let t = Tensor::scalar(1i32);
    assert_eq!(t.slice::<f32>().unwrap_err().to_string(), "expected a tensor of float, got int32");
    let err = Tensor::from_vec([3], vec![1u8]).unwrap_err();
    assert_eq!(err.to_string(), "shape [3] has 3 elements, got 1");
    let err = Tensor::zeros(DType::F32, [usize::MAX, 2].into(), Allocator::host()).unwrap_err();
    assert!(err.to_string().ends_with("is too large"));
    assert!(Tensor::zeros(DType::F32, [1 << 60].into(), Allocator::host()).is_err());
}

#[test]
fn reshaping_a_scalar_gives_it_a_buffer() {
    let t = Tensor::scalar(7i64).into_shape([1, 1].into()).unwrap();
    assert_eq!((t.dims(), t.slice::<i64>().unwrap()), (&[1, 1][..], &[7][..]));
    assert_eq!(t.into_shape(Shape::scalar()).unwrap().item::<i64>().unwrap(), 7);
}

#[test]
fn words_are_elements_of_any_type_as_wide() {
    let mut t = Tensor::vector(&[1.0f32, -0.0]);
    assert_eq!(t.words::<u32>().unwrap(), [0x3f80_0000, 0x8000_0000]);
    t.words_mut::<u32>().unwrap().unwrap()[0] = 0x4000_0000;
    assert_eq!(t.slice::<f32>().unwrap(), [2.0, 0.0]);
    assert!(t.words::<u64>().is_err() && t.words::<u8>().is_err());
    assert!(Tensor::vector(&[1u8]).words::<bool>().is_err() && Tensor::scalar(true).words::<u8>().is_err());
    let complex = Tensor::scalar(crate::dtype::Complex64::new(1.0, 2.0));
    assert_eq!(complex.n_bytes(), 16);
    assert_eq!(complex.into_shape([1].into()).unwrap().words::<crate::dtype::Complex64>().unwrap()[0].im, 2.0);
}

#[test]
fn bools_are_bools_in_reused_memory() {
    let a = Allocator::new("/device:CPU:0", 1 << 20);
    let mut t = Tensor::with_room(DType::U8, [64].into(), &a).unwrap();
    t.slice_mut::<u8>().unwrap().unwrap().fill(7);
    drop(t);
    let t = Tensor::with_room(DType::Bool, [64].into(), &a).unwrap();
    assert_eq!(t.slice::<bool>().unwrap(), &[false; 64]);
}
