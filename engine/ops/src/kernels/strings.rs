//! Kernels of strings of bytes.

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::support::{Built, Computed, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::convert::convert;
use engine_core::dtype::DType;
use engine_core::graph::Node;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static STRINGS: &[KernelDef] = &[
    cpu_any("StringJoin", join),
    cpu_any("StringSplit", split),
    cpu_any("StringSplitV2", split_v2),
    cpu_any("StringToNumber", to_number),
    cpu_any("AsString", as_string),
    cpu_any("StringLength", length),
    cpu_any("Substr", substr),
    cpu_any("StringStrip", |_| kernel(|c| each(c, |s| Ok(s.trim_ascii().to_vec())))),
    cpu_any("StringLower", |n| cased(n, <[u8]>::to_ascii_lowercase, str::to_lowercase)),
    cpu_any("StringUpper", |n| cased(n, <[u8]>::to_ascii_uppercase, str::to_uppercase)),
    cpu_any("ReduceJoin", reduce_join),
    cpu_any("EncodeBase64", |n| {
        let engine = base64_engine(*n.flag("pad")?);
        kernel(move |c| each(c, |s| Ok(engine.encode(s).into_bytes())))
    }),
    cpu_any("DecodeBase64", |_| {
        let engine = base64_engine(false);
        kernel(move |c| each(c, |s| engine.decode(s).map_err(|e| KernelError::invalid(format!("not in base64: {e}")))))
    }),
];

/// Of bytes, and, with encoding `utf-8`, of characters.
fn cased(node: &Node, bytes: fn(&[u8]) -> Vec<u8>, text: fn(&str) -> String) -> Built {
    let is_utf8 = node.text("encoding")?.eq_ignore_ascii_case("utf-8");
    kernel(move |c| {
        each(c, |s| {
            if !is_utf8 {
                return Ok(bytes(s));
            }
            let s = std::str::from_utf8(s).map_err(|e| KernelError::invalid(format!("not in UTF-8: {e}")))?;
            Ok(text(s).into_bytes())
        })
    })
}

/// The alphabet for addresses; padding is not asked for.
fn base64_engine(pad: bool) -> GeneralPurpose {
    let config = GeneralPurposeConfig::new().with_encode_padding(pad);
    let config = config.with_decode_padding_mode(DecodePaddingMode::Indifferent);
    GeneralPurpose::new(&URL_SAFE, config)
}

/// Each string of input 0, changed.
pub(super) fn each(c: &mut KernelContext<'_>, f: impl Fn(&[u8]) -> Result<Vec<u8>, KernelError>) -> Computed {
    let input = c.input(0)?;
    let out = input.strings()?.iter().map(|s| f(s)).collect::<Result<Vec<_>, _>>()?;
    let out = Tensor::from_strings(input.shape().clone(), out)?;
    c.set(0, out);
    Ok(())
}

/// The one string of input `i`.
pub(super) fn one<'a>(c: &'a KernelContext<'_>, i: usize) -> Result<&'a [u8], KernelError> {
    match c.input(i)?.strings()? {
        [one] => Ok(one),
        more => Err(KernelError::invalid(format!("input {i} must be one string, got {}", more.len()))),
    }
}

/// Scalars are joined to every element of the others.
fn join(node: &Node) -> Built {
    let separator = node.bytes("separator")?.clone();
    kernel(move |c| {
        let n = c.inputs.len();
        let mut shape: Option<Shape> = None;
        for i in 0..n {
            let own = c.input(i)?.shape();
            match &shape {
                Some(shape) if own.rank() > 0 && own != shape => {
                    return Err(KernelError::invalid(format!("input {i} has shape {own}, others {shape}")));
                }
                None if own.rank() > 0 => shape = Some(own.clone()),
                _ => {}
            }
        }
        let shape = shape.unwrap_or_else(Shape::scalar);
        let parts = (0..n).map(|i| Ok(c.input(i)?.strings()?)).collect::<Result<Vec<_>, KernelError>>()?;
        let joined = |k: usize| {
            let of_k: Vec<&[u8]> = parts.iter().map(|p| p[if p.len() == 1 { 0 } else { k }].as_slice()).collect();
            of_k.join(separator.as_slice())
        };
        let out = (0..shape.n_elements()).map(joined).collect();
        c.set(0, Tensor::from_strings(shape, out)?);
        Ok(())
    })
}

/// Rows of parts as a sparse tensor.
fn set_rows(c: &mut KernelContext<'_>, rows: &[Vec<Vec<u8>>]) -> Computed {
    let mut at = Vec::new();
    let mut all = Vec::new();
    for (r, row) in rows.iter().enumerate() {
        for (k, part) in row.iter().enumerate() {
            at.extend([r as i64, k as i64]);
            all.push(part.clone());
        }
    }
    let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
    let n = all.len();
    c.set(0, Tensor::from_vec([n, 2], at)?);
    c.set(1, Tensor::from_strings([n], all)?);
    c.set(2, Tensor::vector(&[rows.len() as i64, longest as i64]));
    Ok(())
}

/// At each of the delimiter's bytes; without one into single bytes.
fn split(node: &Node) -> Built {
    let skip_empty = *node.flag("skip_empty")?;
    kernel(move |c| {
        let delimiters = one(c, 1)?;
        let row = |s: &Vec<u8>| -> Vec<Vec<u8>> {
            if delimiters.is_empty() {
                return s.iter().map(|b| vec![*b]).collect();
            }
            let parts = s.split(|b| delimiters.contains(b)).map(<[u8]>::to_vec);
            parts.filter(|p| !(skip_empty && p.is_empty())).collect()
        };
        let rows: Vec<_> = c.input(0)?.strings()?.iter().map(row).collect();
        set_rows(c, &rows)
    })
}

/// At the separator; without one at runs of white space, empty parts left out. At most `maxsplit` times: what follows the
/// last of these is a part even if it is empty.
fn split_v2(node: &Node) -> Built {
    let at_most = usize::try_from(*node.int("maxsplit")?).unwrap_or(usize::MAX);
    kernel(move |c| {
        let separator = one(c, 1)?;
        let row = |s: &Vec<u8>| match separator.is_empty() && at_most > 0 {
            true => split_white(s, at_most),
            false => split_at(s, separator, at_most),
        };
        let rows: Vec<_> = c.input(0)?.strings()?.iter().map(row).collect();
        set_rows(c, &rows)
    })
}

fn split_white(s: &[u8], at_most: usize) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = s.trim_ascii_start();
    while out.len() < at_most {
        if rest.is_empty() {
            return out;
        }
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        out.push(rest[..end].to_vec());
        rest = rest[end..].trim_ascii_start();
    }
    out.push(rest.to_vec());
    out
}

fn split_at(s: &[u8], separator: &[u8], at_most: usize) -> Vec<Vec<u8>> {
    let (mut out, mut rest) = (Vec::new(), s);
    while out.len() < at_most {
        let Some(at) = rest.windows(separator.len()).position(|w| w == separator) else { break };
        out.push(rest[..at].to_vec());
        rest = &rest[at + separator.len()..];
    }
    out.push(rest.to_vec());
    out
}

fn to_number(node: &Node) -> Built {
    let to = *node.dtype("out_type")?;
    kernel(move |c| {
        let input = c.input(0)?;
        let wrong = |s: &[u8]| KernelError::invalid(format!("{:?} is no {to}", String::from_utf8_lossy(s)));
        let text = |s: &Vec<u8>| std::str::from_utf8(s.trim_ascii()).map(str::to_owned).map_err(|_| wrong(s));
        fn parsed<T: std::str::FromStr>(s: &str) -> Option<T> {
            s.strip_prefix('+').unwrap_or(s).parse().ok()
        }
        let shape = input.shape().clone();
        macro_rules! all {
            ($t:ty) => {{
                let one = |s: &Vec<u8>| parsed::<$t>(&text(s)?).ok_or_else(|| wrong(s));
                Tensor::from_vec(shape, input.strings()?.iter().map(one).collect::<Result<Vec<$t>, KernelError>>()?)?
            }};
        }
        let out = match to {
            DType::F32 => all!(f32),
            DType::F64 => all!(f64),
            DType::I32 => all!(i32),
            DType::I64 => all!(i64),
            DType::U32 => all!(u32),
            DType::U64 => all!(u64),
            other => return Err(KernelError::invalid(format!("strings do not convert to {other}"))),
        };
        c.set(0, out);
        Ok(())
    })
}

/// How `AsString` writes numbers.
struct Format {
    precision: Option<usize>,
    scientific: bool,
    shortest: bool,
    width: usize,
    fill: u8,
}

impl Format {
    fn float(&self, v: f64) -> String {
        if !v.is_finite() {
            return if v.is_nan() { "nan".into() } else { format!("{}inf", if v < 0.0 { "-" } else { "" }) };
        }
        let digits = self.precision.unwrap_or(6);
        match (self.scientific, self.shortest) {
            (true, _) => scientific(v, digits),
            (_, true) => general(v, digits),
            _ => format!("{v:.digits$}"),
        }
    }

    fn padded(&self, text: &str) -> Vec<u8> {
        let missing = self.width.saturating_sub(text.len());
        match self.fill {
            b'-' => format!("{text}{}", " ".repeat(missing)).into_bytes(),
            b'0' => {
                let (sign, rest) = text.split_at(usize::from(text.starts_with('-')));
                format!("{sign}{}{rest}", "0".repeat(missing)).into_bytes()
            }
            b'+' if !text.starts_with('-') => format!("{}+{text}", " ".repeat(missing.saturating_sub(1))).into_bytes(),
            b' ' if !text.starts_with('-') && missing == 0 => format!(" {text}").into_bytes(),
            _ => format!("{}{text}", " ".repeat(missing)).into_bytes(),
        }
    }
}

/// As C's `%e`: at least two digits of exponent.
fn scientific(v: f64, digits: usize) -> String {
    let text = format!("{v:.digits$e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let (sign, size) = exponent.strip_prefix('-').map_or(("+", exponent), |size| ("-", size));
            format!("{mantissa}e{sign}{size:0>2}")
        }
        None => text,
    }
}

/// As C's `%g`.
fn general(v: f64, digits: usize) -> String {
    let digits = digits.max(1);
    if v == 0.0 {
        return "0".into();
    }
    let rounded = format!("{v:.*e}", digits - 1);
    let exponent: i32 = rounded.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let trimmed = |text: String| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    if exponent < -4 || exponent >= digits as i32 {
        let text = scientific(v, digits - 1);
        return match text.split_once('e') {
            Some((mantissa, rest)) => format!("{}e{rest}", trimmed(mantissa.to_owned())),
            None => text,
        };
    }
    trimmed(format!("{v:.*}", (digits as i32 - 1 - exponent).max(0) as usize))
}

fn as_string(node: &Node) -> Built {
    let precision = usize::try_from(*node.int("precision")?).ok();
    let format = Format {
        precision,
        scientific: *node.flag("scientific")?,
        shortest: *node.flag("shortest")?,
        width: usize::try_from(*node.int("width")?).unwrap_or(0).min(1 << 10),
        fill: node.bytes("fill")?.first().copied().unwrap_or(0),
    };
    if format.scientific && format.shortest || precision.is_some_and(|p| p > 100) {
        return Err(KernelError::invalid("scientific and shortest exclude each other; precision is at most 100"));
    }
    kernel(move |c| {
        let input = c.input(0)?;
        let texts: Vec<String> = match input.dtype() {
            DType::String => {
                let input = c.take(0)?;
                c.set(0, input);
                return Ok(());
            }
            DType::Bool => input.slice::<bool>()?.iter().map(ToString::to_string).collect(),
            DType::U64 => input.slice::<u64>()?.iter().map(u64::to_string).collect(),
            d if d.is_float() => input.to_f64()?.iter().map(|v| format.float(*v)).collect(),
            d if d.is_complex() => {
                let wide = convert(input, DType::C128, c.allocator)?;
                let pair =
                    |z: &engine_core::dtype::Complex64| format!("({},{})", format.float(z.re), format.float(z.im));
                wide.slice()?.iter().map(pair).collect()
            }
            _ => {
                let wide = convert(input, DType::I64, c.allocator)?;
                wide.slice::<i64>()?.iter().map(i64::to_string).collect()
            }
        };
        let out = texts.into_iter().map(|text: String| format.padded(&text)).collect();
        let out = Tensor::from_strings(input.shape().clone(), out)?;
        c.set(0, out);
        Ok(())
    })
}

/// Whether lengths and positions count characters.
fn counts_characters(node: &Node) -> Result<bool, KernelError> {
    Ok(node.text("unit")? == "UTF8_CHAR")
}

/// Where each character begins, and the end.
fn boundaries(s: &[u8]) -> Vec<usize> {
    let starts = (0..s.len()).filter(|i| s[*i] & 0xc0 != 0x80);
    starts.chain([s.len()]).collect()
}

fn length(node: &Node) -> Built {
    let characters = counts_characters(node)?;
    kernel(move |c| {
        let input = c.input(0)?;
        let count = |s: &Vec<u8>| if characters { boundaries(s).len() - 1 } else { s.len() };
        let out: Vec<i32> = input.strings()?.iter().map(|s| count(s) as i32).collect();
        let out = Tensor::from_vec(input.shape().clone(), out)?;
        c.set(0, out);
        Ok(())
    })
}

fn substr(node: &Node) -> Built {
    let characters = counts_characters(node)?;
    kernel(move |c| {
        let input = c.input(0)?;
        let (at, len) = (c.ints(1)?, c.ints(2)?);
        let along = super::broadcast::broadcast_shape(input.shape(), c.input(1)?.shape())?;
        if c.input(1)?.shape() != c.input(2)?.shape() {
            return Err(KernelError::invalid("pos and len must have one shape"));
        }
        let pairs = super::linalg::Pair::of(input.dims(), c.input(1)?.dims())?;
        let strings = input.strings()?;
        let mut out = Vec::with_capacity(pairs.at.len());
        for [s, i] in &pairs.at {
            let s = &strings[*s];
            let cuts = if characters { boundaries(s) } else { (0..=s.len()).collect() };
            let (from, to) = part_of(cuts.len() - 1, at[*i], len[*i], characters)?;
            out.push(s[cuts[from]..cuts[to]].to_vec());
        }
        c.set(0, Tensor::from_strings(along, out)?);
        Ok(())
    })
}

/// Where `len` of a string's `n` bytes or characters begin and end, from `at` on. As in TensorFlow, a negative length means the
/// rest of the bytes, no characters, and for characters from the end nothing at all.
fn part_of(n: usize, at: i64, len: i64, characters: bool) -> Result<(usize, usize), KernelError> {
    let n = n as i64;
    let outside = || KernelError::invalid(format!("pos {at} out of range for string of length {n}"));
    let from = if at < 0 { at.saturating_add(n) } else { at };
    if !(0..=n).contains(&from) || (characters && at < 0 && len < 0) {
        return Err(outside());
    }
    let to = match len {
        0.. => from.saturating_add(len).min(n),
        _ if characters => from,
        _ => n,
    };
    Ok((from as usize, to as usize))
}

/// Joined along axes in the order in which these are given, the first one innermost.
fn reduce_join(node: &Node) -> Built {
    let (keep, separator) = (*node.flag("keep_dims")?, node.bytes("separator")?.clone());
    kernel(move |c| {
        let (input, axes) = (c.input(0)?, c.ints(1)?);
        let rank = input.shape().rank();
        let mask = engine_core::geometry::axis_mask(&axes, rank)?;
        let axes = axes.iter().map(|a| engine_core::geometry::axis(*a, rank)).collect::<Result<Vec<_>, _>>()?;
        let (dims, strides) = (input.dims(), input.shape().strides());
        let kept: Vec<usize> = (0..rank).filter(|d| !mask[*d]).collect();
        let order: Vec<usize> = kept.iter().chain(axes.iter().rev()).copied().collect();
        let walked: Vec<usize> = order.iter().map(|d| dims[*d]).collect();
        let along: Vec<isize> = order.iter().map(|d| strides[*d] as isize).collect();
        let n_joined = axes.iter().map(|d| dims[*d]).product::<usize>();
        let n_out = kept.iter().map(|d| dims[*d]).product::<usize>();
        let mut parts: Vec<Vec<&[u8]>> = vec![Vec::with_capacity(n_joined); n_out];
        let strings = input.strings()?;
        super::layout::walk(&walked, &along, 0, |i, at| parts[i / n_joined.max(1)].push(&strings[at as usize]));
        let shape: Vec<usize> =
            (0..rank).filter_map(|d| if mask[d] { keep.then_some(1) } else { Some(dims[d]) }).collect();
        let out = parts.iter().map(|p| p.join(separator.as_slice())).collect();
        let out = Tensor::from_strings(Shape::new(&shape), out)?;
        c.set(0, out);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `tf.strings.substr` of TensorFlow 2.21 makes of `abcd` for each position from -6 to 6 with each of these lengths; `!`
    /// is an error.
    #[test]
    fn parts_of_strings_are_tensorflows() {
        let tables = [
            (
                false,
                "!,!,!,!,!,!,!,!,!,!,!,!,!,!,abcd,abcd,abcd,,a,ab,abcd,bcd,bcd,bcd,,b,bc,bcd,cd,cd,cd,,c,cd,cd,d,d,d,,d,d,d,abcd,abcd,abcd,,a,ab,abcd,bcd,bcd,bcd,,b,bc,bcd,cd,cd,cd,,c,cd,cd,d,d,d,,d,d,d,,,,,,,,!,!,!,!,!,!,!,!,!,!,!,!,!,!",
            ),
            (
                true,
                "!,!,!,!,!,!,!,!,!,!,!,!,!,!,!,!,!,,a,ab,abcd,!,!,!,,b,bc,bcd,!,!,!,,c,cd,cd,!,!,!,,d,d,d,,,,,a,ab,abcd,,,,,b,bc,bcd,,,,,c,cd,cd,,,,,d,d,d,,,,,,,,!,!,!,!,!,!,!,!,!,!,!,!,!,!",
            ),
        ];
        for (characters, table) in tables {
            let mut expected = table.split(',');
            for at in -6..=6 {
                for len in [-9, -3, -1, 0, 1, 2, 9] {
                    let part = part_of(4, at, len, characters).map(|(from, to)| &"abcd"[from..to]);
                    assert_eq!(part.unwrap_or("!"), expected.next().unwrap(), "{at} {len} {characters}");
                }
            }
        }
    }
}
