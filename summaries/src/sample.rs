//! Decoded values. TensorFlow 1's messages and TensorFlow 2's tensors decode to the same [`Sample`]s.

use formats::{
    plugins::{HParamsPluginData, Layout, MeshPluginData, mesh_plugin_data::ContentType},
    proto::{DataType, SummaryMetadata, TensorProto, summary},
};
use prost::Message;

use crate::{
    event::{Data, ValueView},
    tensor,
};

/// A decoded value.
#[derive(Debug, Clone, PartialEq)]
pub enum Sample {
    /// Images of one step, still encoded.
    Images(Vec<EncodedImage>),
    /// Sounds of one step, still encoded.
    Audio(Vec<EncodedAudio>),
    /// Texts (Markdown) in up to as many dimensions as `shape` has.
    Text(TextTensor),
    /// Numbers.
    Tensor(NumberTensor),
    /// Precision and recall by threshold.
    PrCurve(PrCurve),
    /// Part of a mesh.
    Mesh(MeshPart),
    /// Hyperparameters: an experiment, or the beginning or end of a session.
    HParams(Box<HParamsPluginData>),
    /// The layout of scalars on charts.
    Layout(Layout),
    /// The strings of a tensor of another plugin, such as a serialised graph.
    Blobs(Vec<Vec<u8>>),
}

/// An image: PNG, JPEG, GIF or BMP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedImage {
    /// The width in pixels; 0 when the file does not say.
    pub width: u32,
    /// The height in pixels; 0 when the file does not say.
    pub height: u32,
    /// The encoded file; its first bytes identify the format.
    pub bytes: Vec<u8>,
}

/// A sound, usually WAV.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedAudio {
    /// The MIME type, such as `audio/wav`.
    pub content_type: String,
    /// Frames per second; 0 when only the encoded file says.
    pub sample_rate: f32,
    /// The text to show with it (Markdown); mostly empty.
    pub label: String,
    /// The encoded file.
    pub bytes: Vec<u8>,
}

/// Texts, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTensor {
    /// Sizes of the dimensions, outermost first; none of a single text.
    pub shape: Vec<usize>,
    /// The texts, as many as the product of the sizes.
    pub values: Vec<String>,
}

/// Numbers, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberTensor {
    /// The dtype in the file.
    pub dtype: DataType,
    /// Sizes of the dimensions, outermost first.
    pub shape: Vec<usize>,
    /// The numbers, as many as the product of the sizes.
    pub values: Vec<f64>,
}

/// A precision-recall curve: each vector has an entry per threshold; the thresholds are evenly spaced from 0 to 1.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PrCurve {
    /// Numbers of true positives.
    pub true_positives: Vec<f64>,
    /// Numbers of false positives.
    pub false_positives: Vec<f64>,
    /// Numbers of true negatives.
    pub true_negatives: Vec<f64>,
    /// Numbers of false negatives.
    pub false_negatives: Vec<f64>,
    /// Precision, 0 to 1.
    pub precision: Vec<f64>,
    /// Recall, 0 to 1.
    pub recall: Vec<f64>,
}

impl PrCurve {
    /// Computes the curve from pairs of label and prediction (0 to 1), at `n_thresholds` thresholds, at least 2. As in
    /// TensorBoard, a prediction is positive at the thresholds up to it.
    pub fn from_predictions(pairs: impl IntoIterator<Item = (bool, f32)>, n_thresholds: usize) -> Self {
        let n = n_thresholds.max(2);
        let (mut positives, mut negatives) = (vec![0.0; n], vec![0.0; n]);
        for (label, prediction) in pairs {
            let threshold_idx = (prediction.clamp(0.0, 1.0) * (n - 1) as f32).floor() as usize;
            let counts = if label { &mut positives } else { &mut negatives };
            counts[threshold_idx] += 1.0;
        }
        let suffix_sums = |counts: Vec<f64>| {
            let mut sums = counts;
            for i in (0..n - 1).rev() {
                sums[i] += sums[i + 1];
            }
            sums
        };
        let (tp, fp) = (suffix_sums(positives), suffix_sums(negatives));
        let complement = |counts: &[f64]| -> Vec<f64> { counts.iter().map(|c| counts[0] - c).collect() };
        let (fn_, tn) = (complement(&tp), complement(&fp));
        // As in TensorBoard, 0 divided by 0 is 0.
        let share = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a / (a + b).max(1e-7)).collect();
        Self {
            precision: share(&tp, &fp),
            recall: share(&tp, &fn_),
            true_positives: tp,
            false_positives: fp,
            true_negatives: tn,
            false_negatives: fn_,
        }
    }
}

/// Vertices, faces or colours of a batch of meshes.
#[derive(Debug, Clone, PartialEq)]
pub struct MeshPart {
    /// The name of the mesh.
    pub mesh: String,
    /// The kind of the part.
    pub content: ContentType,
    /// Shape `[batch, n, 3]`: coordinates, indices of vertices, or red, green and blue.
    pub values: NumberTensor,
}

/// Decodes the value of a tag of `kind`; an error says why it cannot be decoded.
pub(crate) fn decode(kind: &str, metadata: &SummaryMetadata, value: &ValueView<'_>) -> Result<Sample, String> {
    let tensor = |bytes| TensorProto::decode(bytes).map_err(|e| e.to_string());
    match (kind, value.data) {
        ("hparams", _) => hparams(metadata, value),
        (_, Data::Image(bytes)) => image(bytes).map(|image| Sample::Images(vec![image])),
        (_, Data::Audio(bytes)) => audio(bytes).map(|audio| Sample::Audio(vec![audio])),
        ("images", Data::Tensor(bytes)) => images(&tensor(bytes)?),
        ("audio", Data::Tensor(bytes)) => sounds(&tensor(bytes)?),
        ("text", Data::Tensor(bytes)) => text(&tensor(bytes)?),
        ("pr_curves", Data::Tensor(bytes)) => pr_curve(&tensor(bytes)?),
        ("mesh", Data::Tensor(bytes)) => mesh(metadata, &tensor(bytes)?),
        ("custom_scalars", Data::Tensor(bytes)) => layout(&tensor(bytes)?),
        (_, Data::Tensor(bytes)) => any_tensor(tensor(bytes)?),
        (_, Data::Simple(value)) => Ok(Sample::Tensor(NumberTensor {
            dtype: DataType::DtFloat,
            shape: Vec::new(),
            values: vec![f64::from(value)],
        })),
        (_, Data::Histogram(_) | Data::None) => Err("it has no value".into()),
    }
}

fn image(bytes: &[u8]) -> Result<EncodedImage, String> {
    let image = summary::Image::decode(bytes).map_err(|e| e.to_string())?;
    let size = |n: i32| u32::try_from(n).unwrap_or(0);
    Ok(EncodedImage { width: size(image.width), height: size(image.height), bytes: image.encoded_image_string })
}

fn audio(bytes: &[u8]) -> Result<EncodedAudio, String> {
    let audio = summary::Audio::decode(bytes).map_err(|e| e.to_string())?;
    Ok(EncodedAudio {
        content_type: audio.content_type,
        sample_rate: audio.sample_rate,
        label: String::new(),
        bytes: audio.encoded_audio_string,
    })
}

/// TensorFlow 2's images: `[width, height, image...]` as strings.
fn images(tensor: &TensorProto) -> Result<Sample, String> {
    let [width, height, images @ ..] = &tensor.string_val[..] else {
        return Err("a tensor of images has at least two strings".into());
    };
    let size = |text: &[u8]| std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let (width, height) = (size(width), size(height));
    Ok(Sample::Images(images.iter().map(|bytes| EncodedImage { width, height, bytes: bytes.clone() }).collect()))
}

/// TensorFlow 2's sounds: a string for each, or pairs of sound and label.
fn sounds(tensor: &TensorProto) -> Result<Sample, String> {
    let shape = tensor::shape(tensor).ok_or("its shape is unknown")?;
    let n_columns = if shape.len() == 2 { shape[1] } else { 1 };
    if !(1..=2).contains(&n_columns) {
        return Err(format!("a tensor of sounds has 1 or 2 columns, not {n_columns}"));
    }
    let sound = |row: &[Vec<u8>]| EncodedAudio {
        content_type: "audio/wav".into(),
        sample_rate: 0.0,
        label: row.get(1).map_or_else(String::new, |label| String::from_utf8_lossy(label).into_owned()),
        bytes: row[0].clone(),
    };
    Ok(Sample::Audio(tensor.string_val.chunks(n_columns).map(sound).collect()))
}

fn text(tensor: &TensorProto) -> Result<Sample, String> {
    let shape = tensor::shape(tensor).ok_or("its shape is unknown")?;
    let values: Vec<String> = tensor.string_val.iter().map(|v| String::from_utf8_lossy(v).into_owned()).collect();
    if shape.iter().product::<usize>() != values.len() {
        return Err(format!("{} texts do not fill the shape {shape:?}", values.len()));
    }
    Ok(Sample::Text(TextTensor { shape, values }))
}

fn numbers(tensor: &TensorProto) -> Result<NumberTensor, String> {
    let values = tensor::numbers(tensor).ok_or("its parts do not fit together")?;
    Ok(NumberTensor { dtype: tensor.dtype(), shape: tensor::shape(tensor).unwrap_or_default(), values })
}

/// Six rows: TP, FP, TN, FN, precision, recall.
fn pr_curve(tensor: &TensorProto) -> Result<Sample, String> {
    let tensor = numbers(tensor)?;
    let [6, n] = tensor.shape[..] else {
        return Err(format!("a precision-recall curve has 6 rows, not the shape {:?}", tensor.shape));
    };
    let row = |i: usize| tensor.values[i * n..(i + 1) * n].to_vec();
    Ok(Sample::PrCurve(PrCurve {
        true_positives: row(0),
        false_positives: row(1),
        true_negatives: row(2),
        false_negatives: row(3),
        precision: row(4),
        recall: row(5),
    }))
}

fn mesh(metadata: &SummaryMetadata, tensor: &TensorProto) -> Result<Sample, String> {
    let data = MeshPluginData::decode(plugin_content(metadata)).map_err(|e| e.to_string())?;
    Ok(Sample::Mesh(MeshPart { content: data.content_type(), mesh: data.name, values: numbers(tensor)? }))
}

fn layout(tensor: &TensorProto) -> Result<Sample, String> {
    let bytes = tensor.string_val.first().ok_or("a layout is one string")?;
    Layout::decode(&bytes[..]).map(Sample::Layout).map_err(|e| e.to_string())
}

/// Hyperparameters are in the metadata of the value itself.
fn hparams(metadata: &SummaryMetadata, value: &ValueView<'_>) -> Result<Sample, String> {
    let value_metadata = value.metadata.and_then(|bytes| SummaryMetadata::decode(bytes).ok());
    let content = plugin_content(value_metadata.as_ref().unwrap_or(metadata));
    HParamsPluginData::decode(content).map(|data| Sample::HParams(Box::new(data))).map_err(|e| e.to_string())
}

fn any_tensor(tensor: TensorProto) -> Result<Sample, String> {
    if tensor.dtype() == DataType::DtString {
        return Ok(Sample::Blobs(tensor.string_val));
    }
    numbers(&tensor).map(Sample::Tensor)
}

fn plugin_content(metadata: &SummaryMetadata) -> &[u8] {
    metadata.plugin_data.as_ref().map_or(&[], |data| &data.content)
}
