//! Summaries of images, sounds and tensors: each gives a string with a serialised `Summary`.

use formats::proto::{Summary, SummaryMetadata, summary};
use prost::Message;

use super::sound::wav;
use super::support::{Built, Computed, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::DType;
use engine_core::graph::Node;
use engine_core::tensor::Tensor;
use engine_core::tensor_proto;

#[linkme::distributed_slice(KERNEL_TABLES)]
static MEDIA: &[KernelDef] = &[
    cpu_any("ImageSummary", image),
    cpu_any("AudioSummary", |n| {
        let rate = *n.float("sample_rate")?;
        audio(n, move |_| Ok(rate))
    }),
    cpu_any("AudioSummaryV2", |n| audio(n, |c| c.item::<f32>(2))),
    cpu_any("TensorSummary", tensor),
    cpu_any("TensorSummaryV2", |_| kernel(tensor_v2)),
];

fn set(c: &mut KernelContext<'_>, value: Vec<summary::Value>) -> Computed {
    c.set(0, Tensor::string(Summary { value }.encode_to_vec()));
    Ok(())
}

/// The one string of input `i`.
fn text(c: &KernelContext<'_>, i: usize) -> Result<String, KernelError> {
    match c.input(i)?.strings()? {
        [one] => Ok(String::from_utf8_lossy(one).into_owned()),
        more => Err(KernelError::invalid(format!("input {i} must be one string, got {}", more.len()))),
    }
}

/// `TAG/KIND`, or `TAG/KIND/N` where there may be several.
fn tag_of(tag: &str, kind: &str, at_most: usize, i: usize) -> String {
    if at_most > 1 { format!("{tag}/{kind}/{i}") } else { format!("{tag}/{kind}") }
}

/// At least one, from an attribute.
fn at_most(node: &Node, attr: &str) -> Result<usize, KernelError> {
    let n = *node.int(attr)?;
    usize::try_from(n).ok().filter(|n| *n > 0).ok_or_else(|| KernelError::invalid(format!("{attr} is {n}")))
}

fn image(node: &Node) -> Built {
    let max_images = at_most(node, "max_images")?;
    // Red, where the node does not say otherwise.
    let bad_color = match node.tensor("bad_color") {
        Ok(color) => color.slice::<u8>().map_err(KernelError::from)?.to_vec(),
        Err(_) => vec![255, 0, 0, 255],
    };
    kernel(move |c| {
        let (tag, tensor) = (text(c, 0)?, c.input(1)?);
        let &[batch, height, width, depth] = tensor.dims() else {
            return Err(KernelError::invalid(format!("images must have rank 4, got shape {}", tensor.shape())));
        };
        if !matches!(depth, 1 | 3 | 4) || bad_color.len() < depth {
            return Err(KernelError::invalid(format!("images of {depth} channels (1, 3 or 4 are possible)")));
        }
        let (Ok(w), Ok(h)) = (i32::try_from(width), i32::try_from(height)) else {
            return Err(KernelError::invalid("the image is too large"));
        };
        let size = height * width * depth;
        let mut values = Vec::new();
        for i in 0..batch.min(max_images) {
            let pixels = match tensor.dtype() {
                DType::U8 => tensor.slice::<u8>()?[i * size..(i + 1) * size].to_vec(),
                _ => {
                    let all = engine_core::convert::convert(tensor, DType::F32, c.allocator)?;
                    normalised(&all.slice::<f32>()?[i * size..(i + 1) * size], depth, &bad_color)
                }
            };
            let encoded_image_string = png(w as u32, h as u32, depth, &pixels)?;
            let image = summary::Image { height: h, width: w, colorspace: depth as i32, encoded_image_string };
            values.push(summary::Value {
                tag: tag_of(&tag, "image", max_images, i),
                node_name: c.node.name.to_string(),
                value: Some(summary::value::Value::Image(image)),
                ..Default::default()
            });
        }
        set(c, values)
    })
}

/// Floats as bytes: 0 to the largest as 0 to 255, or, with negative ones, the largest size as 127 about 128. Pixels
/// with a value that is not finite get `bad_color`.
fn normalised(values: &[f32], depth: usize, bad_color: &[u8]) -> Vec<u8> {
    const NOTHING: f32 = 1e-6;
    let is_finite = |pixel: &[f32]| pixel.iter().all(|v| v.is_finite());
    let finite = values.chunks_exact(depth).filter(|p| is_finite(p)).flatten();
    let (min, max) = finite.fold((f32::INFINITY, f32::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
    let per = |full: f32, of: f32| if of < NOTHING { 0.0 } else { full / of };
    let (scale, offset) =
        if min < 0.0 { (per(127.0, min.abs().max(max.abs())), 128.0) } else { (per(255.0, max), 0.0) };
    let mut out = Vec::with_capacity(values.len());
    for pixel in values.chunks_exact(depth) {
        match is_finite(pixel) {
            true => out.extend(pixel.iter().map(|v| (v * scale + offset) as u8)),
            false => out.extend_from_slice(&bad_color[..depth]),
        }
    }
    out
}

fn png(width: u32, height: u32, depth: usize, pixels: &[u8]) -> Result<Vec<u8>, KernelError> {
    let color = match depth {
        1 => png::ColorType::Grayscale,
        3 => png::ColorType::Rgb,
        _ => png::ColorType::Rgba,
    };
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(color);
    encoder.set_depth(png::BitDepth::Eight);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(pixels)?;
        writer.finish()
    });
    written.map_err(|e| KernelError::invalid(format!("the image cannot be encoded: {e}")))?;
    Ok(file)
}

fn audio(node: &Node, rate: impl Fn(&KernelContext<'_>) -> Result<f32, KernelError> + Send + Sync + 'static) -> Built {
    let max_outputs = at_most(node, "max_outputs")?;
    kernel(move |c| {
        let (tag, tensor, rate) = (text(c, 0)?, c.input(1)?, rate(c)?);
        let (batch, frames, channels) = match *tensor.dims() {
            [batch, frames] => (batch, frames, 1),
            [batch, frames, channels] => (batch, frames, channels),
            _ => {
                return Err(KernelError::invalid(format!(
                    "sounds must have rank 2 or 3, got shape {}",
                    tensor.shape()
                )));
            }
        };
        if !(1.0..=f32::from(u16::MAX) * 16.0).contains(&rate) {
            return Err(KernelError::invalid(format!("sample_rate is {rate}")));
        }
        let size = frames * channels;
        let samples = tensor.slice::<f32>()?;
        let mut values = Vec::new();
        for i in 0..batch.min(max_outputs) {
            let audio = summary::Audio {
                sample_rate: rate,
                num_channels: channels as i64,
                length_frames: frames as i64,
                encoded_audio_string: wav(rate.round_ties_even() as u32, channels, &samples[i * size..(i + 1) * size])?,
                content_type: "audio/wav".into(),
            };
            values.push(summary::Value {
                tag: tag_of(&tag, "audio", max_outputs, i),
                node_name: c.node.name.to_string(),
                value: Some(summary::value::Value::Audio(audio)),
                ..Default::default()
            });
        }
        set(c, values)
    })
}

/// The older op: what it is called comes from its node.
fn tensor(node: &Node) -> Built {
    let (display_name, summary_description) = (node.text("display_name")?, node.text("description")?);
    kernel(move |c| {
        let named = !(display_name.is_empty() && summary_description.is_empty());
        let metadata = SummaryMetadata {
            display_name: display_name.clone(),
            summary_description: summary_description.clone(),
            ..Default::default()
        };
        let value = summary::Value {
            node_name: c.node.name.to_string(),
            metadata: named.then_some(metadata),
            value: Some(summary::value::Value::Tensor(tensor_proto::to_proto(c.input(0)?))),
            ..Default::default()
        };
        set(c, vec![value])
    })
}

fn tensor_v2(c: &mut KernelContext<'_>) -> Computed {
    let [metadata] = c.input(2)?.strings()? else {
        return Err(KernelError::invalid("serialized_summary_metadata must be one string"));
    };
    let metadata = SummaryMetadata::decode(metadata.as_slice())
        .map_err(|e| KernelError::invalid(format!("serialized_summary_metadata is no SummaryMetadata: {e}")))?;
    let value = summary::Value {
        tag: text(c, 0)?,
        node_name: c.node.name.to_string(),
        metadata: Some(metadata),
        value: Some(summary::value::Value::Tensor(tensor_proto::to_proto(c.input(1)?))),
    };
    set(c, vec![value])
}
