//! Decodes a sample for display. No egui here.

use std::io::Cursor;

use formats::plugins::{HParamsPluginData, chart::Content, h_params_plugin_data::Data};
use summaries::{HParam, MeshPart, NumberTensor, PrCurve, Sample, TextTensor};
use zune_jpeg::zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions};

use super::wav::Wav;
use ui::format;

/// Pixels of a picture per side, and in all, at most; larger pictures are reported.
const MAX_SIDE: usize = 16_384;
const MAX_PIXELS: usize = 64 << 20;
/// Numbers of a tensor that are listed, at most.
const MAX_NUMBERS: usize = 200;

/// The decoded contents of a card.
#[derive(Clone, Debug, PartialEq)]
pub enum MediaValue {
    /// Pictures next to each other.
    Pictures(Vec<Picture>),
    /// Plain text.
    Text(String),
    /// Markdown texts in cells, row by row.
    Markdown {
        /// Cells per row.
        n_columns: usize,
        /// The cells' texts.
        cells: Vec<String>,
    },
    /// Sounds, one below the other.
    Sounds(Vec<Sound>),
    /// Precision over recall.
    PrCurve(PrCurve),
    /// Vertices, faces or colours.
    Mesh(MeshPart),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Sound {
    /// The description next to the sound.
    pub label: String,
    /// The encoded file.
    pub bytes: Vec<u8>,
    /// The decoded file, or the reason why it cannot be shown.
    pub wav: Result<Wav, String>,
}

/// A decoded picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Width and height.
    pub size: [usize; 2],
    /// Red, green, blue and alpha of each pixel, row by row.
    pub rgba: Vec<u8>,
}

/// Decodes a sample. A sample that cannot be shown or is empty becomes a text that says so.
pub fn media_value(sample: Sample) -> MediaValue {
    match as_it_is(sample) {
        MediaValue::Pictures(pictures) if pictures.is_empty() => MediaValue::Text("no image at this step".into()),
        MediaValue::Sounds(sounds) if sounds.is_empty() => MediaValue::Text("no sound at this step".into()),
        MediaValue::Text(text) if text.is_empty() => MediaValue::Text("nothing at this step".into()),
        MediaValue::Markdown { cells, .. } if cells.iter().all(|cell| cell.trim().is_empty()) => {
            MediaValue::Text("an empty text".into())
        }
        value => value,
    }
}

fn as_it_is(sample: Sample) -> MediaValue {
    match sample {
        Sample::Images(images) => {
            let pictures: Result<Vec<_>, _> = images.iter().map(|image| decoded(&image.bytes)).collect();
            pictures.map_or_else(MediaValue::Text, MediaValue::Pictures)
        }
        Sample::Audio(sounds) => {
            let sound = |sound: summaries::EncodedAudio| {
                let wav = Wav::read(&sound.bytes).map_err(|why| format!("{}: {why}", sound.content_type));
                Sound { label: sound.label, bytes: sound.bytes, wav }
            };
            MediaValue::Sounds(sounds.into_iter().map(sound).collect())
        }
        Sample::Text(text) => markdown(text),
        Sample::Tensor(tensor) => MediaValue::Text(numbers(&tensor)),
        Sample::Mesh(part) => MediaValue::Mesh(part),
        Sample::PrCurve(curve) => MediaValue::PrCurve(curve),
        Sample::HParams(data) => MediaValue::Text(hparams(*data)),
        Sample::Layout(layout) => {
            let charts = layout.category.iter().flat_map(|category| {
                let line =
                    |chart: &formats::plugins::Chart| format!("{} / {}: {}", category.title, chart.title, tags(chart));
                category.chart.iter().map(line).collect::<Vec<_>>()
            });
            MediaValue::Text(charts.collect::<Vec<_>>().join("\n"))
        }
        Sample::Blobs(blobs) => {
            let sizes = blobs.iter().map(|blob| format!("{} bytes", format::count(blob.len() as u64)));
            MediaValue::Text(sizes.collect::<Vec<_>>().join("\n"))
        }
    }
}

fn tags(chart: &formats::plugins::Chart) -> String {
    match &chart.content {
        Some(Content::Multiline(lines)) => lines.tag.join(", "),
        Some(Content::Margin(margins)) => margins
            .series
            .iter()
            .map(|s| format!("{} ({} to {})", s.value, s.lower, s.upper))
            .collect::<Vec<_>>()
            .join(", "),
        None => String::new(),
    }
}

/// A single text, a column of them, or a table. Of more dimensions the first table, as in TensorBoard.
fn markdown(text: TextTensor) -> MediaValue {
    let n_columns = match text.shape[..] {
        [] | [_] => 1,
        [.., n] => n,
    };
    let n_rows = match text.shape[..] {
        [.., n, _] => n,
        _ => text.values.len(),
    };
    let mut cells = text.values;
    cells.truncate(n_rows.saturating_mul(n_columns));
    MediaValue::Markdown { n_columns: n_columns.max(1), cells }
}

fn numbers(tensor: &NumberTensor) -> String {
    let listed: Vec<String> = tensor.values.iter().take(MAX_NUMBERS).map(ToString::to_string).collect();
    let rest = tensor.values.len() - listed.len();
    let more = if rest > 0 { format!(" and {} more", format::count(rest as u64)) } else { String::new() };
    format!("{:?} {}\n{}{more}", tensor.shape, tensor.dtype.as_str_name(), listed.join(" "))
}

fn hparams(data: HParamsPluginData) -> String {
    let lines: Vec<String> = match data.data {
        Some(Data::SessionStartInfo(start)) => {
            let known = start.hparams.into_iter().filter_map(|(name, value)| Some((name, HParam::from(value.kind?))));
            known.map(|(name, value)| format!("{name} = {value}")).collect()
        }
        Some(Data::SessionEndInfo(end)) => vec![end.status().as_str_name().to_owned()],
        Some(Data::Experiment(experiment)) => {
            let params = experiment.hparam_infos.iter().map(|info| format!("hyperparameter {}", info.name));
            let names = experiment.metric_infos.iter().filter_map(|info| info.name.as_ref());
            params.chain(names.map(|name| format!("metric {}", name.tag))).collect()
        }
        None => Vec::new(),
    };
    lines.join("\n")
}

/// Decodes a PNG or JPEG; an error is a text for the user.
pub fn decoded(bytes: &[u8]) -> Result<Picture, String> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => png(bytes),
        [0xff, 0xd8, ..] => jpeg(bytes),
        bytes => Err(format!("{} bytes that are no PNG or JPEG", format::count(bytes.len() as u64))),
    }
}

/// Checks the size that a file claims against the limits.
fn check(size: [usize; 2]) -> Result<(), String> {
    let [width, height] = size;
    let fits = width <= MAX_SIDE && height <= MAX_SIDE && width * height <= MAX_PIXELS;
    if fits { Ok(()) } else { Err(format!("a picture of {width} x {height} pixels is too large")) }
}

fn png(bytes: &[u8]) -> Result<Picture, String> {
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::normalize_to_color8() | png::Transformations::ALPHA);
    let mut reader = decoder.read_info().map_err(|e| e.to_string())?;
    let size = [reader.info().width as usize, reader.info().height as usize];
    check(size)?;
    let n = reader.output_buffer_size().ok_or("a picture that is too large")?;
    let mut pixels = vec![0; n];
    let frame = reader.next_frame(&mut pixels).map_err(|e| e.to_string())?;
    pixels.truncate(frame.buffer_size());
    let rgba = match frame.color_type {
        png::ColorType::GrayscaleAlpha => pixels.chunks_exact(2).flat_map(|p| [p[0], p[0], p[0], p[1]]).collect(),
        png::ColorType::Rgba => pixels,
        other => return Err(format!("a PNG whose colours were not expanded: {other:?}")),
    };
    Ok(Picture { size, rgba })
}

fn jpeg(bytes: &[u8]) -> Result<Picture, String> {
    let options = DecoderOptions::default()
        .set_max_width(MAX_SIDE)
        .set_max_height(MAX_SIDE)
        .jpeg_set_out_colorspace(ColorSpace::RGBA);
    let mut decoder = zune_jpeg::JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(|e| e.to_string())?;
    let (width, height) = decoder.dimensions().ok_or("a JPEG without a size")?;
    check([width, height])?;
    let rgba = decoder.decode().map_err(|e| e.to_string())?;
    Ok(Picture { size: [width, height], rgba })
}

#[cfg(test)]
mod tests {
    use super::*;
    use summaries::EncodedImage;

    fn encoded(color: png::ColorType, pixels: &[u8]) -> EncodedImage {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, 2, 1);
        encoder.set_color(color);
        encoder.write_header().unwrap().write_image_data(pixels).unwrap();
        EncodedImage { width: 2, height: 1, bytes }
    }

    #[test]
    fn pictures_of_every_kind_of_pixel() {
        let cases: [(png::ColorType, &[u8], [u8; 8]); 4] = [
            (png::ColorType::Grayscale, &[1, 2], [1, 1, 1, 255, 2, 2, 2, 255]),
            (png::ColorType::GrayscaleAlpha, &[1, 9, 2, 8], [1, 1, 1, 9, 2, 2, 2, 8]),
            (png::ColorType::Rgb, &[1, 2, 3, 4, 5, 6], [1, 2, 3, 255, 4, 5, 6, 255]),
            (png::ColorType::Rgba, &[1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 5, 6, 7, 8]),
        ];
        for (color, pixels, rgba) in cases {
            let picture = Picture { size: [2, 1], rgba: rgba.to_vec() };
            assert_eq!(media_value(Sample::Images(vec![encoded(color, pixels)])), MediaValue::Pictures(vec![picture]));
        }
    }

    #[test]
    fn a_value_of_nothing_says_so() {
        let none = [
            Sample::Images(Vec::new()),
            Sample::Audio(Vec::new()),
            Sample::Blobs(Vec::new()),
            Sample::Layout(formats::plugins::Layout::default()),
            Sample::Text(TextTensor { shape: Vec::new(), values: vec![" ".into()] }),
        ];
        for sample in none {
            assert!(matches!(media_value(sample), MediaValue::Text(text) if !text.is_empty()));
        }
    }

    #[test]
    fn what_is_no_picture_says_so() {
        let mut huge = encoded(png::ColorType::Grayscale, &[1, 2]);
        huge.bytes[16..24].copy_from_slice(&[0x7f; 8]);
        let torn = EncodedImage { bytes: vec![0xff, 0xd8, 0xff], ..huge.clone() };
        let other = EncodedImage { bytes: b"GIF89a".to_vec(), ..huge.clone() };
        for image in [huge, torn, other] {
            assert!(matches!(media_value(Sample::Images(vec![image])), MediaValue::Text(text) if !text.is_empty()));
        }
    }

    #[test]
    fn texts_and_numbers() {
        let text = TextTensor { shape: vec![2, 2], values: ["a", "b", "c", "d"].map(str::to_owned).to_vec() };
        let cells: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        assert_eq!(media_value(Sample::Text(text)), MediaValue::Markdown { n_columns: 2, cells: cells.clone() });
        let cube = TextTensor { shape: vec![2, 1, 2], values: cells.clone() };
        assert_eq!(media_value(Sample::Text(cube)), MediaValue::Markdown { n_columns: 2, cells: cells[..2].to_vec() });
        let empty = TextTensor { shape: vec![0, 0], values: Vec::new() };
        assert_eq!(media_value(Sample::Text(empty)), MediaValue::Text("an empty text".into()));
        let tensor =
            NumberTensor { dtype: formats::proto::DataType::DtFloat, shape: vec![300], values: vec![0.5; 300] };
        let MediaValue::Text(text) = media_value(Sample::Tensor(tensor)) else { panic!() };
        assert!(text.starts_with("[300] DT_FLOAT\n0.5 0.5") && text.ends_with("and 100 more"), "{text}");
    }
}
