//! Kernels of pictures: PNG in and out, JPEG in. Images are `[height, width, channels]`.

use std::io::Cursor;

use super::support::{Built, Computed, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::DType;
use engine_core::graph::Node;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static IMAGES: &[KernelDef] = &[
    cpu_any("DecodePng", |n| decode(n, *n.dtype("dtype")?)),
    cpu_any("DecodeJpeg", decode_jpeg),
    cpu_any("DecodeImage", |n| decode(n, *n.dtype("dtype")?)),
    cpu_any("EncodePng", encode),
];

/// Pixels of the largest image.
const MAX_PIXELS: usize = 1 << 29;
/// What a decoder may take, so that a small file cannot fill the memory.
const MAX_BYTES: usize = 4 << 30;

/// An image whose samples are wide enough for either depth.
struct Image {
    height: usize,
    width: usize,
    channels: usize,
    samples: Samples,
}

enum Samples {
    Bytes(Vec<u8>),
    Words(Vec<u16>),
}

fn bad(what: &str, e: &dyn std::fmt::Display) -> KernelError {
    KernelError::invalid(format!("this is no sound {what}: {e}"))
}

fn channels(node: &Node) -> Result<usize, KernelError> {
    let n = *node.int("channels")?;
    match usize::try_from(n) {
        Ok(n) if matches!(n, 0 | 1 | 3 | 4) => Ok(n),
        _ => Err(KernelError::invalid(format!("channels {n} must be 0, 1, 3 or 4"))),
    }
}

fn contents<'a>(c: &'a KernelContext<'_>) -> Result<&'a [u8], KernelError> {
    match c.input(0)?.strings()? {
        [one] => Ok(one),
        more => Err(KernelError::invalid(format!("contents must be one string, got {}", more.len()))),
    }
}

fn decode(node: &Node, dtype: DType) -> Built {
    let channels = channels(node)?;
    kernel(move |c| {
        let bytes = contents(c)?;
        let image = match bytes {
            [0x89, b'P', b'N', b'G', ..] => png(bytes, channels, dtype != DType::U8)?,
            [0xff, 0xd8, ..] => jpeg(bytes, channels)?,
            _ => return Err(KernelError::invalid("the contents are neither PNG nor JPEG")),
        };
        let out = image.tensor(dtype)?;
        c.set(0, out);
        Ok(())
    })
}

fn decode_jpeg(node: &Node) -> Built {
    if *node.int("ratio")? != 1 {
        return Err(KernelError::invalid("a JPEG is decoded at ratio 1 only"));
    }
    decode(node, DType::U8)
}

fn png(bytes: &[u8], wanted: usize, is_wide: bool) -> Result<Image, KernelError> {
    let error = |e: png::DecodingError| bad("PNG", &e);
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), png::Limits { bytes: MAX_BYTES });
    let keep = if is_wide { png::Transformations::IDENTITY } else { png::Transformations::STRIP_16 };
    decoder.set_transformations(png::Transformations::EXPAND | keep);
    let mut reader = decoder.read_info().map_err(error)?;
    let (width, height) = (reader.info().width as usize, reader.info().height as usize);
    check_size(width, height)?;
    let size = reader.output_buffer_size().ok_or_else(|| KernelError::invalid("the image is too large"))?;
    let mut out = vec![0; size];
    let info = reader.next_frame(&mut out).map_err(error)?;
    out.truncate(info.buffer_size());
    let samples = match info.bit_depth {
        png::BitDepth::Sixteen => {
            let (words, _) = out.as_chunks::<2>();
            Samples::Words(words.iter().map(|w| u16::from_be_bytes(*w)).collect())
        }
        _ => Samples::Bytes(out),
    };
    let image = Image { height, width, channels: info.color_type.samples(), samples };
    Ok(if wanted == 0 { image } else { image.with_channels(wanted) })
}

fn jpeg(bytes: &[u8], wanted: usize) -> Result<Image, KernelError> {
    use zune_jpeg::JpegDecoder;
    use zune_jpeg::zune_core::bytestream::ZCursor;
    use zune_jpeg::zune_core::colorspace::ColorSpace;
    use zune_jpeg::zune_core::options::DecoderOptions;
    if wanted == 4 {
        return Err(KernelError::invalid("a JPEG has no 4 channels"));
    }
    let error = |e: zune_jpeg::errors::DecodeErrors| bad("JPEG", &e);
    let options = DecoderOptions::default().set_max_width(1 << 16).set_max_height(1 << 16).set_strict_mode(false);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(error)?;
    let info = decoder.info().ok_or_else(|| bad("JPEG", &"it has no header"))?;
    let (width, height) = (usize::from(info.width), usize::from(info.height));
    check_size(width, height)?;
    let is_grey = if wanted == 0 { info.components == 1 } else { wanted == 1 };
    let space = if is_grey { ColorSpace::Luma } else { ColorSpace::RGB };
    decoder.set_options(options.jpeg_set_out_colorspace(space));
    let samples = decoder.decode().map_err(error)?;
    Ok(Image { height, width, channels: if is_grey { 1 } else { 3 }, samples: Samples::Bytes(samples) })
}

fn check_size(width: usize, height: usize) -> Computed {
    match width.checked_mul(height) {
        Some(n) if n > 0 && n <= MAX_PIXELS => Ok(()),
        _ => Err(KernelError::invalid(format!("an image of {width}x{height} pixels is not decoded"))),
    }
}

impl Image {
    fn with_channels(self, wanted: usize) -> Image {
        fn convert<T: Copy + Into<u32> + TryFrom<u32>>(samples: &[T], from: usize, to: usize, full: T) -> Vec<T> {
            let mut out = Vec::with_capacity(samples.len() / from * to);
            for pixel in samples.chunks_exact(from) {
                let (rgb, alpha) = match *pixel {
                    [grey] => ([grey; 3], full),
                    [grey, a] => ([grey; 3], a),
                    [r, g, b] => ([r, g, b], full),
                    _ => ([pixel[0], pixel[1], pixel[2]], pixel[3]),
                };
                match to {
                    // TensorFlow's weights, 0.299 of red and 0.587 of green, in libpng's 1/32768; the rest is blue.
                    1 if from > 2 => {
                        let [r, g, b] = rgb.map(Into::<u32>::into);
                        let grey = (r * 9798 + g * 19234 + b * 3736) >> 15;
                        out.push(T::try_from(grey).unwrap_or(full));
                    }
                    1 => out.push(rgb[0]),
                    3 => out.extend(rgb),
                    _ => {
                        out.extend(rgb);
                        out.push(alpha);
                    }
                }
            }
            out
        }
        if wanted == self.channels {
            return self;
        }
        let samples = match &self.samples {
            Samples::Bytes(s) => Samples::Bytes(convert(s, self.channels, wanted, u8::MAX)),
            Samples::Words(s) => Samples::Words(convert(s, self.channels, wanted, u16::MAX)),
        };
        Image { channels: wanted, samples, ..self }
    }

    fn tensor(self, dtype: DType) -> Result<Tensor, KernelError> {
        let shape = Shape::new(&[self.height, self.width, self.channels]);
        // A byte times 257 is the word at the same brightness.
        Ok(match (self.samples, dtype) {
            (Samples::Bytes(s), DType::U8) => Tensor::from_vec(shape, s)?,
            (Samples::Words(s), DType::U8) => Tensor::from_vec(shape, s.iter().map(|w| (w >> 8) as u8).collect())?,
            (Samples::Bytes(s), DType::U16) => {
                Tensor::from_vec(shape, s.iter().map(|b| u16::from(*b) * 257).collect())?
            }
            (Samples::Words(s), DType::U16) => Tensor::from_vec(shape, s)?,
            (Samples::Bytes(s), _) => Tensor::from_vec(shape, s.iter().map(|b| f32::from(*b) / 255.0).collect())?,
            (Samples::Words(s), _) => Tensor::from_vec(shape, s.iter().map(|w| f32::from(*w) / 65535.0).collect())?,
        })
    }
}

fn encode(node: &Node) -> Built {
    let level = *node.int("compression")?;
    if !(-1..=9).contains(&level) {
        return Err(KernelError::invalid(format!("compression {level} must be -1 to 9")));
    }
    kernel(move |c| {
        let image = c.input(0)?;
        let Some((&[height, width, channels], outer)) = image.dims().split_last_chunk::<3>().map(|(o, d)| (d, o))
        else {
            return Err(KernelError::invalid(format!("an image has three dimensions, got shape {}", image.shape())));
        };
        let color = match channels {
            1 => png::ColorType::Grayscale,
            2 => png::ColorType::GrayscaleAlpha,
            3 => png::ColorType::Rgb,
            4 => png::ColorType::Rgba,
            other => return Err(KernelError::invalid(format!("an image cannot have {other} channels"))),
        };
        let size = (u32::try_from(width), u32::try_from(height));
        let (Ok(w), Ok(h)) = size else { return Err(KernelError::invalid("the image is too large")) };
        if w == 0 || h == 0 {
            return Err(KernelError::invalid(format!("an image of {w}x{h} pixels cannot be encoded")));
        }
        let is_wide = image.dtype() == DType::U16;
        let bytes: Vec<u8> = match is_wide {
            true => image.slice::<u16>()?.iter().flat_map(|w| w.to_be_bytes()).collect(),
            false => image.slice::<u8>()?.to_vec(),
        };
        let each = height * width * channels * if is_wide { 2 } else { 1 };
        let mut out = Vec::new();
        for pixels in bytes.chunks_exact(each) {
            let mut file = Vec::new();
            let mut encoder = png::Encoder::new(&mut file, w, h);
            encoder.set_color(color);
            encoder.set_depth(if is_wide { png::BitDepth::Sixteen } else { png::BitDepth::Eight });
            if level >= 0 {
                encoder.set_deflate_compression(png::DeflateCompression::Level(level as u8));
            }
            let written = encoder.write_header().and_then(|mut w| {
                w.write_image_data(pixels)?;
                w.finish()
            });
            written.map_err(|e| KernelError::invalid(format!("the image cannot be encoded: {e}")))?;
            out.push(file);
        }
        let out = Tensor::from_strings(Shape::new(outer), out)?;
        c.set(0, out);
        Ok(())
    })
}
