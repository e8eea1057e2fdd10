//! Kernels of readers.

use std::sync::Arc;

use super::resource::{Key, object};
use super::support::{Built, Computed, cheap, cpu_any, kernel};
use super::{
    ASYNC_KERNEL_TABLES, AsyncKernel, AsyncKernelDef, Completion, KERNEL_TABLES, KernelContext, KernelDef, KernelError,
};
use engine_core::graph::Node;
use engine_core::queues::{Amount, Queue};
use engine_core::readers::{Compression, Format, Reader, Records};
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static READERS: &[KernelDef] = &[
    cpu_any("FixedLengthRecordReader", make),
    cpu_any("FixedLengthRecordReaderV2", make),
    cpu_any("IdentityReader", make),
    cpu_any("IdentityReaderV2", make),
    cpu_any("TFRecordReader", make),
    cpu_any("TFRecordReaderV2", make),
    cpu_any("TextLineReader", make),
    cpu_any("TextLineReaderV2", make),
    cpu_any("WholeFileReader", make),
    cpu_any("WholeFileReaderV2", make),
    cpu_any("ReaderNumRecordsProduced", |_| cheap(n_records)),
    cpu_any("ReaderNumRecordsProducedV2", |_| cheap(n_records)),
    cpu_any("ReaderNumWorkUnitsCompleted", |_| cheap(n_files)),
    cpu_any("ReaderNumWorkUnitsCompletedV2", |_| cheap(n_files)),
    cpu_any("ReaderReset", |_| cheap(reset)),
    cpu_any("ReaderResetV2", |_| cheap(reset)),
    cpu_any("ReaderSerializeState", |_| cheap(serialize)),
    cpu_any("ReaderSerializeStateV2", |_| cheap(serialize)),
    cpu_any("ReaderRestoreState", |_| kernel(restore)),
    cpu_any("ReaderRestoreStateV2", |_| kernel(restore)),
];

#[linkme::distributed_slice(ASYNC_KERNEL_TABLES)]
static READS: &[AsyncKernelDef] = &[
    read("ReaderRead", |_| Ok(Box::new(Read { is_batch: false }))),
    read("ReaderReadV2", |_| Ok(Box::new(Read { is_batch: false }))),
    read("ReaderReadUpTo", |_| Ok(Box::new(Read { is_batch: true }))),
    read("ReaderReadUpToV2", |_| Ok(Box::new(Read { is_batch: true }))),
];

const fn read(op: &'static str, build: fn(&Node) -> Result<Box<dyn AsyncKernel>, KernelError>) -> AsyncKernelDef {
    AsyncKernelDef { op, device: "CPU", dtypes: ("", &[]), build }
}

fn size(node: &Node, attr: &str) -> Result<u64, KernelError> {
    let n = *node.int(attr)?;
    u64::try_from(n).map_err(|_| KernelError::invalid(format!("{attr} {n} must not be negative")))
}

pub(super) fn compression(node: &Node, attr: &str) -> Result<Compression, KernelError> {
    let name = node.text(attr)?;
    Compression::from_name(&name)
        .ok_or_else(|| KernelError::invalid(format!("{attr} {name:?} is not one of \"\", \"ZLIB\", \"GZIP\"")))
}

fn format(node: &Node) -> Result<Format, KernelError> {
    Ok(match node.op.name.trim_end_matches("V2") {
        "TextLineReader" => Format::Lines { skip: size(node, "skip_header_lines")? },
        "TFRecordReader" => Format::TfRecord { compression: compression(node, "compression_type")? },
        "WholeFileReader" => Format::Whole,
        "IdentityReader" => Format::Name,
        _ => {
            let record = size(node, "record_bytes")?;
            if record == 0 || record > i32::MAX as u64 {
                return Err(KernelError::invalid(format!("record_bytes {record} must be 1 to {}", i32::MAX)));
            }
            let has_encoding = node.attrs.contains_key("encoding");
            Format::FixedLength {
                header: size(node, "header_bytes")?,
                record,
                footer: size(node, "footer_bytes")?,
                hop: size(node, "hop_bytes")?,
                compression: if has_encoding { compression(node, "encoding")? } else { Compression::None },
            }
        }
    })
}

fn make(node: &Node) -> Built {
    let (format, key) = (format(node)?, Key::of(node)?);
    cheap(move |c| {
        let handle = key.object(c, || Reader::new(key.name.clone(), format.clone()))?;
        c.set(0, handle);
        Ok(())
    })
}

fn reader(c: &KernelContext<'_>) -> Result<Arc<Reader>, KernelError> {
    object::<Reader>(c.input(0)?)
}

fn n_records(c: &mut KernelContext<'_>) -> Computed {
    let n = reader(c)?.n_records();
    c.set(0, Tensor::scalar(n));
    Ok(())
}

fn n_files(c: &mut KernelContext<'_>) -> Computed {
    let n = reader(c)?.n_files();
    c.set(0, Tensor::scalar(n));
    Ok(())
}

fn reset(c: &mut KernelContext<'_>) -> Computed {
    reader(c)?.reset();
    Ok(())
}

fn serialize(c: &mut KernelContext<'_>) -> Computed {
    let state = reader(c)?.serialize();
    c.set(0, Tensor::string(state));
    Ok(())
}

fn restore(c: &mut KernelContext<'_>) -> Computed {
    match c.input(1)?.strings()? {
        [state] => reader(c)?.deserialize(state),
        _ => Err(KernelError::invalid("the state must be one string")),
    }
}

struct Read {
    is_batch: bool,
}

impl Read {
    fn prepare(&self, c: &KernelContext<'_>) -> Result<(Arc<Reader>, Arc<Queue>, Amount), KernelError> {
        let (reader, queue) = (reader(c)?, object::<Queue>(c.input(1)?)?);
        let amount = match self.is_batch {
            false => Amount::Exactly(1),
            true => {
                let n = c.item::<i64>(2)?;
                let n = usize::try_from(n).ok().filter(|n| *n > 0);
                Amount::UpTo(n.ok_or_else(|| KernelError::invalid("num_records must be positive"))?)
            }
        };
        Ok((reader, queue, amount))
    }
}

impl AsyncKernel for Read {
    fn start(&self, ctx: &mut KernelContext<'_>, done: Completion) {
        let (reader, queue, amount) = match self.prepare(ctx) {
            Ok(prepared) => prepared,
            Err(error) => return done.finish(Err(error)),
        };
        let is_batch = self.is_batch;
        let outputs = move |records: Records| -> Result<_, KernelError> {
            let n = records.len();
            let (mut keys, mut values): (Vec<_>, Vec<_>) = records.into_iter().unzip();
            Ok(match is_batch {
                true => [Tensor::from_strings([n], keys)?, Tensor::from_strings([n], values)?],
                false => {
                    let (key, value) = (keys.pop().unwrap_or_default(), values.pop().unwrap_or_default());
                    [Tensor::string(key), Tensor::string(value)]
                }
            })
        };
        let read = Box::new(move |records: Result<Records, KernelError>| {
            done.finish(records.and_then(outputs).map(|o| o.into_iter().map(Some).collect()));
        });
        reader.read(amount, queue, ctx.cancellation(), read);
    }

    fn is_expensive(&self) -> bool {
        true
    }
}
