//! Kernels that match, hash, format and log text.

use std::sync::atomic::{AtomicI64, Ordering};

use regex::bytes::Regex;
use siphasher::sip::SipHasher24;

use super::strings::{each, one};
use super::support::{Built, Computed, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::DType;
use engine_core::graph::Node;
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static TEXT: &[KernelDef] = &[
    cpu_any("RegexReplace", |n| {
        let global = *n.flag("replace_global")?;
        kernel(move |c| {
            let (regex, rewrite) = (compiled(one(c, 1)?)?, rewrite_of(one(c, 2)?));
            replace(c, &regex, &rewrite, global)
        })
    }),
    cpu_any("StaticRegexReplace", |n| {
        let (regex, rewrite) = (compiled(n.bytes("pattern")?)?, rewrite_of(n.bytes("rewrite")?));
        let global = *n.flag("replace_global")?;
        kernel(move |c| replace(c, &regex, &rewrite, global))
    }),
    cpu_any("RegexFullMatch", |_| {
        kernel(|c| {
            let regex = whole(one(c, 1)?)?;
            full_match(c, &regex)
        })
    }),
    cpu_any("StaticRegexFullMatch", |n| {
        let regex = whole(n.bytes("pattern")?)?;
        kernel(move |c| full_match(c, &regex))
    }),
    cpu_any("StringToHashBucketFast", |n| buckets(n, farmhash::fingerprint64)),
    cpu_any("StringToHashBucketStrong", strong),
    cpu_any("StringFormat", format),
    cpu_any("Print", print),
    cpu_any("PrintV2", print_v2),
    cpu_any("Assert", assert),
];

fn compiled(pattern: &[u8]) -> Result<Regex, KernelError> {
    let pattern = String::from_utf8_lossy(pattern);
    Regex::new(&pattern).map_err(|e| KernelError::invalid(format!("{pattern:?} is no regular expression: {e}")))
}

fn whole(pattern: &[u8]) -> Result<Regex, KernelError> {
    compiled(&[b"^(?:", pattern, b")$"].concat())
}

/// RE2's rewrites refer to groups as `\1`, the regex crate's as `${1}`.
fn rewrite_of(rewrite: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(rewrite.len());
    let mut bytes = rewrite.iter().copied().peekable();
    while let Some(b) = bytes.next() {
        match (b, bytes.peek().copied()) {
            (b'\\', Some(digit @ b'0'..=b'9')) => {
                bytes.next();
                out.extend([b'$', b'{', digit, b'}']);
            }
            (b'\\', Some(b'\\')) => {
                bytes.next();
                out.push(b'\\');
            }
            (b'$', _) => out.extend(b"$$"),
            (other, _) => out.push(other),
        }
    }
    out
}

fn replace(c: &mut KernelContext<'_>, regex: &Regex, rewrite: &[u8], global: bool) -> Computed {
    each(c, |s| Ok(regex.replacen(s, usize::from(!global), rewrite).into_owned()))
}

fn full_match(c: &mut KernelContext<'_>, regex: &Regex) -> Computed {
    let input = c.input(0)?;
    let out: Vec<bool> = input.strings()?.iter().map(|s| regex.is_match(s)).collect();
    let out = Tensor::from_vec(input.shape().clone(), out)?;
    c.set(0, out);
    Ok(())
}

fn buckets(node: &Node, hash: impl Fn(&[u8]) -> u64 + Send + Sync + 'static) -> Built {
    let n = *node.int("num_buckets")?;
    let n =
        u64::try_from(n).ok().filter(|n| *n > 0).ok_or_else(|| KernelError::invalid(format!("num_buckets is {n}")))?;
    kernel(move |c| {
        let input = c.input(0)?;
        let out: Vec<i64> = input.strings()?.iter().map(|s| (hash(s) % n) as i64).collect();
        let out = Tensor::from_vec(input.shape().clone(), out)?;
        c.set(0, out);
        Ok(())
    })
}

/// SipHash with a key of two numbers.
fn strong(node: &Node) -> Built {
    let &[k0, k1] = node.ints("key")?.as_slice() else {
        return Err(KernelError::invalid("the key must have two numbers"));
    };
    let hasher = SipHasher24::new_with_keys(k0 as u64, k1 as u64);
    buckets(node, move |s| hasher.hash(s))
}

/// A tensor as text, the first and last elements of each dimension where there are more.
fn summary_of(t: &Tensor, at_most: i64) -> Result<String, KernelError> {
    let texts: Vec<String> = match t.dtype() {
        DType::String => t.strings()?.iter().map(|s| format!("{:?}", String::from_utf8_lossy(s))).collect(),
        DType::F32 => t.slice::<f32>()?.iter().map(f32::to_string).collect(),
        DType::Bool => t.slice::<bool>()?.iter().map(|b| u8::from(*b).to_string()).collect(),
        DType::U64 => t.slice::<u64>()?.iter().map(u64::to_string).collect(),
        d if d.is_float() => t.to_f64()?.iter().map(f64::to_string).collect(),
        DType::Resource | DType::Variant => return Ok(format!("{t:?}")),
        d if d.is_complex() => return Ok(format!("{t:?}")),
        _ => t.to_f64()?.iter().map(|v| format!("{v:.0}")).collect(),
    };
    let edge = usize::try_from(at_most).unwrap_or(usize::MAX);
    Ok(nested(t.dims(), &texts, edge))
}

fn nested(dims: &[usize], texts: &[String], edge: usize) -> String {
    let Some((n, rest)) = dims.split_first() else { return texts.first().cloned().unwrap_or_default() };
    let size: usize = rest.iter().product();
    let part = |i: usize| nested(rest, &texts[i * size..(i + 1) * size], edge);
    let separator = if rest.is_empty() { " " } else { "\n " };
    let is_short = *n <= edge.saturating_mul(2);
    let shown: Vec<String> = match is_short {
        true => (0..*n).map(part).collect(),
        false => (0..edge).map(part).chain(["...".to_owned()]).chain((n - edge..*n).map(part)).collect(),
    };
    format!("[{}]", shown.join(separator))
}

/// The template with each placeholder replaced by an input.
fn format(node: &Node) -> Built {
    let (template, placeholder) = (node.text("template")?, node.text("placeholder")?);
    let at_most = *node.int("summarize")?;
    let parts: Vec<String> = match placeholder.is_empty() {
        true => vec![template],
        false => template.split(&placeholder).map(str::to_owned).collect(),
    };
    if parts.len() != node.inputs.len() + 1 {
        let (n, inputs) = (parts.len() - 1, node.inputs.len());
        return Err(KernelError::invalid(format!("{n} placeholders for {inputs} inputs")));
    }
    kernel(move |c| {
        let mut out = parts[0].clone();
        for (i, part) in parts[1..].iter().enumerate() {
            out.push_str(&summary_of(c.input(i)?, at_most)?);
            out.push_str(part);
        }
        c.set(0, Tensor::string(out));
        Ok(())
    })
}

/// The first elements of a tensor, as the older ops write them.
fn first_of(t: &Tensor, at_most: i64) -> Result<String, KernelError> {
    let n = usize::try_from(at_most).unwrap_or(usize::MAX);
    let edge = summary_of(&t.reshaped(engine_core::shape::Shape::new(&[t.len()]))?, -1)?;
    let inner = edge.trim_start_matches('[').trim_end_matches(']');
    let shown: Vec<&str> = inner.split(' ').take(n).collect();
    let more = if t.len() > n { "..." } else { "" };
    Ok(format!("[{}{more}]", shown.join(" ")))
}

/// Logs the data, at most `first_n` times, and passes the input on.
fn print(node: &Node) -> Built {
    let (message, first_n, at_most) = (node.text("message")?, *node.int("first_n")?, *node.int("summarize")?);
    let count = AtomicI64::new(0);
    kernel(move |c| {
        if first_n < 0 || count.fetch_add(1, Ordering::Relaxed) < first_n {
            let mut text = message.clone();
            for i in 1..c.inputs.len() {
                text.push_str(&first_of(c.input(i)?, at_most)?);
            }
            tracing::info!(target: "engine::print", node = %c.node.name, "{text}");
        }
        let input = c.take(0)?;
        c.set(0, input);
        Ok(())
    })
}

/// Logs at the level that the stream's name asks for.
fn print_v2(node: &Node) -> Built {
    let stream = node.text("output_stream")?;
    kernel(move |c| {
        let text = String::from_utf8_lossy(one(c, 0)?).into_owned();
        let node = &c.node.name;
        match stream.as_str() {
            "log(warning)" => tracing::warn!(target: "engine::print", node = %node, "{text}"),
            "log(error)" => tracing::error!(target: "engine::print", node = %node, "{text}"),
            _ => tracing::info!(target: "engine::print", node = %node, "{text}"),
        }
        Ok(())
    })
}

fn assert(node: &Node) -> Built {
    let at_most = *node.int("summarize")?;
    kernel(move |c| {
        if c.item::<bool>(0)? {
            return Ok(());
        }
        let data = (1..c.inputs.len()).map(|i| first_of(c.input(i)?, at_most)).collect::<Result<Vec<_>, _>>()?;
        Err(KernelError::invalid(format!("assertion failed: {}", data.join(" "))))
    })
}
