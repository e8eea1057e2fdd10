//! The values of summaries in TensorFlow 2's form: a tensor, and metadata that name the plugin which shows it
//! (tensorboard/plugins/*/{metadata.py,summary_v2.py}).

use std::collections::BTreeMap;

use formats::{
    plugins::{
        AudioPluginData, Experiment, HParamInfo, HParamsPluginData, MetricInfo, MetricName, SessionStartInfo,
        h_params_plugin_data::Data,
    },
    proto::{
        DataClass, DataType, Event, Summary, SummaryMetadata, TensorProto, TensorShapeProto, event::What, summary,
        summary_metadata::PluginData, tensor_shape_proto::Dim,
    },
};
use prost::Message;

use super::hparam::HParam;
use crate::histogram::Bucket;

/// `AudioPluginData.Encoding.WAV` of TensorBoard's plugins/audio/plugin_data.proto.
const WAV_ENCODING: i32 = 11;

/// A value and what says how it is shown.
pub(crate) type ValueParts = (SummaryMetadata, TensorProto);

/// An event with one value. `wall` is in Unix seconds.
pub(crate) fn event(tag: &str, (metadata, tensor): ValueParts, step: i64, wall: f64) -> Event {
    let value = summary::Value {
        tag: tag.to_owned(),
        metadata: (metadata != SummaryMetadata::default()).then_some(metadata),
        value: Some(summary::value::Value::Tensor(tensor)),
        ..summary::Value::default()
    };
    let what = Some(What::Summary(Summary { value: vec![value] }));
    Event { wall_time: wall, step, what, source_metadata: None }
}

/// A number of full precision.
pub(crate) fn scalar(value: f64) -> ValueParts {
    (metadata("scalars", Vec::new(), DataClass::Scalar), doubles(&[], &[value]))
}

pub(crate) fn histogram(buckets: &[Bucket]) -> ValueParts {
    let rows: Vec<f64> = buckets.iter().flat_map(|b| [b.left, b.right, b.count]).collect();
    (metadata("histograms", Vec::new(), DataClass::Tensor), doubles(&[buckets.len(), 3], &rows))
}

/// An image that is a file already; `size` is its width and height in pixels.
pub(crate) fn image(size: (u32, u32), file: Vec<u8>) -> ValueParts {
    let values = vec![size.0.to_string().into_bytes(), size.1.to_string().into_bytes(), file];
    (metadata("images", Vec::new(), DataClass::BlobSequence), strings(&[3], values))
}

/// A sound: a WAV file.
pub(crate) fn audio(wav: Vec<u8>) -> ValueParts {
    let content = AudioPluginData { encoding: WAV_ENCODING, converted_to_tensor: true, ..AudioPluginData::default() };
    // Without a data class TensorBoard strips the label, the second column, from the sounds; with one it does not.
    (metadata("audio", content.encode_to_vec(), DataClass::Unknown), strings(&[1, 2], vec![wav, Vec::new()]))
}

pub(crate) fn text(text: Vec<u8>) -> ValueParts {
    (metadata("text", Vec::new(), DataClass::Tensor), strings(&[], vec![text]))
}

/// A table of texts, row by row; `cells` fill the rows.
pub(crate) fn table(n_columns: usize, cells: Vec<Vec<u8>>) -> ValueParts {
    let shape = [cells.len().checked_div(n_columns).unwrap_or(0), n_columns];
    (metadata("text", Vec::new(), DataClass::Tensor), strings(&shape, cells))
}

/// The two values that begin a session: the hyperparameters of a run of `group`, and the tags of `metrics` that measure its
/// quality. `now` is in Unix seconds.
pub(crate) fn session_start(
    hparams: &BTreeMap<String, HParam>,
    metrics: &[&str],
    group: String,
    now: f64,
) -> [(&'static str, Data); 2] {
    let infos = hparams.iter().map(|(name, value)| HParamInfo {
        name: name.clone(),
        r#type: value.proto_type().into(),
        ..HParamInfo::default()
    });
    let metric = |tag: &&str| {
        let name = Some(MetricName { group: String::new(), tag: (*tag).to_owned() });
        MetricInfo { name, ..MetricInfo::default() }
    };
    let experiment = Experiment {
        hparam_infos: infos.collect(),
        metric_infos: metrics.iter().map(metric).collect(),
        time_created_secs: now,
        ..Experiment::default()
    };
    let start = SessionStartInfo {
        hparams: hparams.iter().map(|(name, value)| (name.clone(), value.proto())).collect(),
        group_name: group,
        start_time_secs: now,
        ..SessionStartInfo::default()
    };
    [
        ("_hparams_/experiment", Data::Experiment(experiment)),
        ("_hparams_/session_start_info", Data::SessionStartInfo(start)),
    ]
}

/// A part of a session. The metadata have the content; the value 0 is never read.
pub(crate) fn session(data: Data) -> ValueParts {
    let content = HParamsPluginData { version: 0, data: Some(data) }.encode_to_vec();
    (metadata("hparams", content, DataClass::Unknown), floats(&[], &[0.0]))
}

pub(crate) fn metadata(plugin: &str, content: Vec<u8>, data_class: DataClass) -> SummaryMetadata {
    SummaryMetadata {
        plugin_data: Some(PluginData { plugin_name: plugin.to_owned(), content }),
        data_class: data_class.into(),
        ..SummaryMetadata::default()
    }
}

fn tensor(dtype: DataType, shape: &[usize]) -> TensorProto {
    let dim = shape.iter().map(|size| Dim { size: *size as i64, name: String::new() }).collect();
    let tensor_shape = Some(TensorShapeProto { dim, unknown_rank: false });
    TensorProto { dtype: dtype.into(), tensor_shape, ..TensorProto::default() }
}

pub(crate) fn floats(shape: &[usize], values: &[f32]) -> TensorProto {
    TensorProto { tensor_content: bytemuck::cast_slice(values).to_vec(), ..tensor(DataType::DtFloat, shape) }
}

pub(crate) fn doubles(shape: &[usize], values: &[f64]) -> TensorProto {
    TensorProto { tensor_content: bytemuck::cast_slice(values).to_vec(), ..tensor(DataType::DtDouble, shape) }
}

pub(crate) fn ints(shape: &[usize], values: &[i32]) -> TensorProto {
    TensorProto { tensor_content: bytemuck::cast_slice(values).to_vec(), ..tensor(DataType::DtInt32, shape) }
}

pub(crate) fn bytes(shape: &[usize], values: &[u8]) -> TensorProto {
    TensorProto { tensor_content: values.to_vec(), ..tensor(DataType::DtUint8, shape) }
}

pub(crate) fn strings(shape: &[usize], values: Vec<Vec<u8>>) -> TensorProto {
    TensorProto { string_val: values, ..tensor(DataType::DtString, shape) }
}
