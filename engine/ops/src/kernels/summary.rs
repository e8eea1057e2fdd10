//! Kernels of summary ops: each gives a string with a serialised `Summary` whose values name the node they come from.

use formats::histogram::HistogramBuilder;
use formats::proto::{HistogramProto, Summary, summary};
use prost::Message;

use super::support::{Computed, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::DType;
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static SUMMARY: &[KernelDef] = &[
    cpu_any("ScalarSummary", |_| kernel(scalar)),
    cpu_any("HistogramSummary", |_| kernel(histogram)),
    cpu_any("MergeSummary", |_| kernel(merge)),
];

/// The elements of input `i` as f64.
fn numbers(c: &KernelContext<'_>, i: usize) -> Result<Vec<f64>, KernelError> {
    Ok(c.input(i)?.to_f64()?)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn set(c: &mut KernelContext<'_>, value: Vec<summary::Value>) -> Computed {
    c.set(0, Tensor::string(Summary { value }.encode_to_vec()));
    Ok(())
}

fn scalar(c: &mut KernelContext<'_>) -> Computed {
    let (tags, values) = (c.input(0)?.strings()?, numbers(c, 1)?);
    if tags.len() != values.len() {
        return Err(KernelError::invalid(format!("{} tags for {} values", tags.len(), values.len())));
    }
    let value = |(tag, value): (&Vec<u8>, &f64)| summary::Value {
        tag: text(tag),
        node_name: c.node.name.to_string(),
        value: Some(summary::value::Value::SimpleValue(*value as f32)),
        ..Default::default()
    };
    let all = tags.iter().zip(&values).map(value).collect();
    set(c, all)
}

fn histogram(c: &mut KernelContext<'_>) -> Computed {
    let [tag] = c.input(0)?.strings()? else {
        return Err(KernelError::invalid("the tag must be one string"));
    };
    let tag = text(tag);
    let value = summary::Value {
        value: Some(summary::value::Value::Histo(histogram_of(c.input(1)?, &tag)?)),
        tag,
        node_name: c.node.name.to_string(),
        ..Default::default()
    };
    set(c, vec![value])
}

/// The distribution of a tensor's elements.
///
/// # Errors
/// Some are NaN or infinite.
pub(super) fn histogram_of(values: &Tensor, tag: &str) -> Result<HistogramProto, KernelError> {
    let mut histogram = HistogramBuilder::new();
    match values.dtype() {
        DType::F32 => histogram.extend(values.slice::<f32>()?.iter().copied()),
        _ => histogram.extend(values.to_f64()?),
    }
    if histogram.n_nonfinite() > 0 {
        let (n, of) = (histogram.n_nonfinite(), values.len());
        return Err(KernelError::invalid(format!("{tag}: {n} of {of} values are NaN or infinite")));
    }
    Ok(histogram.to_proto())
}

fn merge(c: &mut KernelContext<'_>) -> Computed {
    let mut all: Vec<summary::Value> = Vec::new();
    for i in 0..c.inputs.len() {
        for bytes in c.input(i)?.strings()? {
            let one = Summary::decode(bytes.as_slice())
                .map_err(|e| KernelError::invalid(format!("input {i} is not a Summary: {e}")))?;
            for value in one.value {
                if all.iter().any(|v| v.tag == value.tag) {
                    return Err(KernelError::invalid(format!("tag {} occurs twice", value.tag)));
                }
                all.push(value);
            }
        }
    }
    set(c, all)
}
