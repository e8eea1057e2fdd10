//! Kernels that decode bytes: raw numbers, compressed data, comma-separated values, serialised tensors.

use std::io::Read;

use formats::proto::TensorProto;
use prost::Message;

use super::readers::compression;
use super::support::{Built, Computed, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::checkpoint::encode;
use engine_core::dtype::DType;
use engine_core::graph::{Attr, Node};
use engine_core::memory;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;
use engine_core::tensor_proto;

#[linkme::distributed_slice(KERNEL_TABLES)]
static DECODE: &[KernelDef] = &[
    cpu_any("DecodeRaw", |n| decode_raw(n, false)),
    cpu_any("DecodePaddedRaw", |n| decode_raw(n, true)),
    cpu_any("DecodeCompressed", decompress),
    cpu_any("DecodeCSV", csv),
    cpu_any("ParseTensor", parse_tensor),
    cpu_any("SerializeTensor", |_| kernel(serialize_tensor)),
];

/// What one string may decompress to.
const MAX_DECOMPRESSED: u64 = 2 << 30;

fn decode_raw(node: &Node, is_padded: bool) -> Built {
    let (dtype, is_little) = (*node.dtype("out_type")?, *node.flag("little_endian")?);
    kernel(move |c| {
        let input = c.input(0)?;
        let strings = input.strings()?;
        let len = match (is_padded, strings.first()) {
            (true, _) => usize::try_from(c.item::<i32>(1)?).unwrap_or(0),
            (false, first) => first.map_or(0, Vec::len),
        };
        if is_padded && (len == 0 || !len.is_multiple_of(dtype.size())) {
            let text =
                format!("fixed_length {len} must be a positive multiple of the {} bytes of {dtype}", dtype.size());
            return Err(KernelError::invalid(text));
        }
        if !is_padded {
            if let Some(other) = strings.iter().find(|s| s.len() != len) {
                return Err(KernelError::invalid(format!("strings of {len} and of {} bytes", other.len())));
            }
            if !len.is_multiple_of(dtype.size()) {
                return Err(KernelError::invalid(format!("{len} bytes are no whole number of {dtype}")));
            }
        }
        let n_bytes = strings.len().checked_mul(len).filter(|n| *n as u64 <= MAX_DECOMPRESSED * 64);
        let mut bytes = memory::vec(n_bytes.ok_or_else(|| KernelError::invalid("the output is too large"))?)?;
        for s in strings {
            let taken = &s[..s.len().min(len)];
            bytes.extend_from_slice(taken);
            bytes.resize(bytes.len() + len - taken.len(), 0);
        }
        if !is_little {
            // Of complex numbers each part on its own.
            let size = if matches!(dtype, DType::C64 | DType::C128) { dtype.size() / 2 } else { dtype.size() };
            bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        }
        let mut dims = input.dims().to_vec();
        dims.push(if strings.is_empty() { 0 } else { len / dtype.size() });
        let out = encode::numbers(dtype, Shape::new(&dims), &bytes)?;
        c.set(0, out);
        Ok(())
    })
}

fn decompress(node: &Node) -> Built {
    let compression = compression(node, "compression_type")?;
    kernel(move |c| {
        let input = c.input(0)?;
        let mut out = Vec::with_capacity(input.len());
        for s in input.strings()? {
            let mut text = Vec::new();
            let read = compression.decoded(s.as_slice()).take(MAX_DECOMPRESSED + 1).read_to_end(&mut text);
            read.map_err(|e| KernelError::invalid(format!("it does not decompress: {e}")))?;
            if text.len() as u64 > MAX_DECOMPRESSED {
                return Err(KernelError::invalid("it decompresses to more than 2 GiB"));
            }
            out.push(text);
        }
        let out = Tensor::from_strings(input.shape().clone(), out)?;
        c.set(0, out);
        Ok(())
    })
}

fn parse_tensor(node: &Node) -> Built {
    let dtype = *node.dtype("out_type")?;
    kernel(move |c| {
        let [bytes] = c.input(0)?.strings()? else { return Err(KernelError::invalid("serialized must be one string")) };
        let bad = |e: &dyn std::fmt::Display| KernelError::invalid(format!("this is no serialised tensor: {e}"));
        let proto = TensorProto::decode(bytes.as_slice()).map_err(|e| bad(&e))?;
        let t = tensor_proto::from_proto(&proto).map_err(|e| bad(&e))?;
        if t.dtype() != dtype {
            return Err(KernelError::invalid(format!("expected a serialised tensor of {dtype}, got {}", t.dtype())));
        }
        c.set(0, t);
        Ok(())
    })
}

fn serialize_tensor(c: &mut KernelContext<'_>) -> Computed {
    let t = c.input(0)?;
    if matches!(t.dtype(), DType::Resource | DType::Variant) {
        return Err(KernelError::invalid(format!("a tensor of {} cannot be serialised", t.dtype())));
    }
    let bytes = tensor_proto::to_proto(t).encode_to_vec();
    c.set(0, Tensor::string(bytes));
    Ok(())
}

/// How lines are cut into fields.
struct Csv {
    delimiter: u8,
    has_quotes: bool,
    /// A field that reads so is missing.
    missing: Vec<u8>,
    /// The columns that are wanted, rising; none: all.
    columns: Vec<usize>,
}

fn csv(node: &Node) -> Built {
    let Some(Attr::ListType(types)) = node.attrs.get("OUT_TYPE").cloned() else {
        return Err(KernelError::invalid("OUT_TYPE must be a list of types"));
    };
    let known = [DType::F32, DType::F64, DType::I32, DType::I64, DType::String];
    if let Some(t) = types.iter().find(|t| !known.contains(t)) {
        return Err(KernelError::invalid(format!("a column cannot be {t}")));
    }
    let &[delimiter] = node.bytes("field_delim")?.as_slice() else {
        return Err(KernelError::invalid("field_delim must be one character"));
    };
    let columns: Result<Vec<usize>, _> = node.ints("select_cols")?.iter().map(|i| usize::try_from(*i)).collect();
    let columns = columns.ok().filter(|c| c.is_sorted_by(|a, b| a < b) && (c.is_empty() || c.len() == types.len()));
    let columns = columns
        .ok_or_else(|| KernelError::invalid("select_cols must rise strictly, with one column for each default"))?;
    let csv = Csv {
        delimiter,
        has_quotes: *node.flag("use_quote_delim")?,
        missing: node.bytes("na_value")?.clone(),
        columns,
    };
    kernel(move |c| {
        let records = c.input(0)?;
        let mut values: Vec<Vec<Vec<u8>>> = vec![Vec::new(); types.len()];
        for (i, record) in records.strings()?.iter().enumerate() {
            let fields = csv.fields(record).map_err(|e| KernelError::invalid(format!("record {i}: {e}")))?;
            let wanted = if csv.columns.is_empty() { types.len() } else { csv.columns.len() };
            let got = fields.len();
            if got != wanted {
                let text = format!("record {i} has {got} of {wanted} fields");
                return Err(KernelError::invalid(text));
            }
            fields.into_iter().zip(&mut values).for_each(|(field, column)| column.push(field));
        }
        let shape = records.shape().clone();
        for (i, (column, dtype)) in values.into_iter().zip(&types).enumerate() {
            let out = column_tensor(c, i, &column, &csv.missing, *dtype, &shape)?;
            c.set(i, out);
        }
        Ok(())
    })
}

impl Csv {
    /// The wanted fields of a record (RFC 4180).
    fn fields(&self, record: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
        let mut out = Vec::new();
        let (mut at, mut column) = (0, 0);
        loop {
            let is_quoted = self.has_quotes && record.get(at) == Some(&b'"');
            let (field, end) = if is_quoted { self.quoted(record, at + 1)? } else { self.plain(record, at)? };
            if self.columns.is_empty() || self.columns.binary_search(&column).is_ok() {
                out.push(field);
            }
            column += 1;
            if end >= record.len() {
                return Ok(out);
            }
            // Behind the delimiter; an empty last field has nothing more.
            at = end + 1;
        }
    }

    fn plain(&self, record: &[u8], begin: usize) -> Result<(Vec<u8>, usize), &'static str> {
        let rest = &record[begin.min(record.len())..];
        let end = rest.iter().position(|b| *b == self.delimiter).unwrap_or(rest.len());
        let field = &rest[..end];
        if self.has_quotes && field.iter().any(|b| matches!(b, b'"' | b'\n' | b'\r')) {
            return Err("a field without quotes has a quote or a line end in it");
        }
        Ok((field.to_vec(), begin + end))
    }

    /// A field in quotes, the first of which was read; two quotes stand for one.
    fn quoted(&self, record: &[u8], begin: usize) -> Result<(Vec<u8>, usize), &'static str> {
        let mut field = Vec::new();
        let mut at = begin;
        loop {
            match (record.get(at), record.get(at + 1)) {
                (Some(b'"'), Some(b'"')) => {
                    field.push(b'"');
                    at += 2;
                }
                (Some(b'"'), None) => return Ok((field, at + 1)),
                (Some(b'"'), Some(b)) if *b == self.delimiter => return Ok((field, at + 1)),
                (Some(b'"'), Some(_)) => return Err("a quote within a field must be doubled"),
                (Some(b), _) => {
                    field.push(*b);
                    at += 1;
                }
                (None, _) => return Err("a field's last quote is missing"),
            }
        }
    }
}

/// A column as a tensor; missing fields are the default, input `1 + i`.
fn column_tensor(
    c: &KernelContext<'_>,
    i: usize,
    column: &[Vec<u8>],
    missing: &[u8],
    dtype: DType,
    shape: &Shape,
) -> Result<Tensor, KernelError> {
    let default = c.input(1 + i)?;
    if default.len() > 1 {
        return Err(KernelError::invalid(format!("the default of field {i} must be one value or none")));
    }
    let is_missing = |field: &[u8]| field.is_empty() || field == missing;
    if default.is_empty() && column.iter().any(|f| is_missing(f)) {
        return Err(KernelError::invalid(format!("field {i} is required but missing in a record")));
    }
    if dtype == DType::String {
        let default = default.strings()?.first().cloned().unwrap_or_default();
        let value = |f: &Vec<u8>| if is_missing(f) { default.clone() } else { f.clone() };
        return Ok(Tensor::from_strings(shape.clone(), column.iter().map(value).collect())?);
    }
    macro_rules! of {
        ($t:ty) => {{
            let default = default.slice::<$t>()?.first().copied();
            let value = |f: &Vec<u8>| match default {
                Some(default) if is_missing(f) => Ok(default),
                _ => {
                    let text = std::str::from_utf8(f).unwrap_or_default().trim();
                    let bad =
                        || KernelError::invalid(format!("field {i}: {:?} is not {dtype}", String::from_utf8_lossy(f)));
                    text.parse::<$t>().map_err(|_| bad())
                }
            };
            Tensor::from_vec(shape.clone(), column.iter().map(value).collect::<Result<Vec<_>, _>>()?)?
        }};
    }
    Ok(match dtype {
        DType::F32 => of!(f32),
        DType::F64 => of!(f64),
        DType::I32 => of!(i32),
        _ => of!(i64),
    })
}
