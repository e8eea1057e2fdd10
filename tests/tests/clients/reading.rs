//! What our readers give of a logdir, in the form in which `clients_expect.py` writes what TensorBoard gives.

use std::{collections::BTreeMap, path::Path};

use formats::{
    plugins::{
        Chart, Experiment, HParamInfo, Layout, MeshPluginData, chart::Content, h_param_info::Domain,
        h_param_value::Kind, h_params_plugin_data::Data, mesh_plugin_data::ContentType,
    },
    proto::{GraphDef, NodeDef},
};
use prost::Message as _;
use serde_json::{Value, json};
use summaries::{
    Bucket, Embedding, EmbeddingError, EncodedAudio, Histogram, HistogramSeries, Logdir, MediaSeries, Run, Runs,
    Sample, Series, read_projector_config,
};

/// The content of each tag.
pub type Tags = BTreeMap<String, Value>;
/// By kind and run.
pub type Kinds = BTreeMap<String, BTreeMap<String, Tags>>;

fn bits(x: f64) -> String {
    format!("{:016x}", x.to_bits())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A JSON number as its bits; anything else as it is.
pub fn bits_of(value: &Value) -> Value {
    value.as_f64().map_or_else(|| value.clone(), |number| bits(number).into())
}

/// Everything in `logdir`. `theirs` says how precise TensorBoard's histograms are, and which sessions it gives metrics of.
pub fn kinds(logdir: &Path, theirs: &Kinds) -> Kinds {
    let mut logdir = Logdir::open(&[logdir.to_owned()]).unwrap();
    logdir.read_all();
    let runs = logdir.runs();
    let mut all = Kinds::new();
    let mut add = |kind: &str, run: &str, tag: &str, what: Value| {
        // A layout is of the whole logdir.
        let run = if kind == "custom_scalars" { "" } else { run };
        let tags = all.entry(kind.into()).or_default().entry(run.into()).or_default();
        match (tags.entry(tag.into()).or_default(), what) {
            // The parts of a mesh are tags of their own.
            (Value::Array(parts), Value::Array(more)) if kind == "meshes" => parts.extend(more),
            (place, what) => *place = what,
        }
    };
    for (name, run) in &runs.by_name {
        assert_eq!(run.n_damaged, 0, "{name}: {:?}", run.damage);
        for (tag, series) in &run.series {
            match series {
                Series::Scalar(scalars) => {
                    let points = scalars.points().map(|p| json!([p.step, bits(p.wall), bits(p.value)]));
                    add("scalars", name, tag, points.collect());
                }
                Series::Histogram(series) => {
                    let precise = theirs.get("histograms").and_then(|runs| runs.get(name)?.get(tag));
                    let (rows, distributions) = histograms(series, precise.unwrap_or(&Value::Null));
                    add("histograms", name, tag, rows);
                    add("distributions", name, tag, distributions);
                }
                Series::Media(media) => media_values(tag, media, |kind, tag, what| add(kind, name, tag, what)),
            }
        }
        for record in &run.run_metadata {
            add("run_metadata", name, &record.tag, hex(&record.read().unwrap()).into());
        }
        if let Some(graph) = &run.graph {
            add("graph", name, "", nodes(&graph.decode().unwrap()));
        }
        for (embedding, what) in embeddings(run) {
            add("projector", name, &embedding, what);
        }
    }
    if let Some(sessions) = sessions(&runs) {
        all.insert("hparams".into(), [(String::new(), sessions)].into());
    }
    for part in all.get_mut("meshes").into_iter().flat_map(BTreeMap::values_mut).flat_map(BTreeMap::values_mut) {
        let key = |part: &Value| (part[0].as_i64(), part[2].as_str().map(str::to_owned));
        part.as_array_mut().unwrap().sort_by_key(key);
    }
    all
}

/// The rows of each step, and what is drawn of their distribution, in the precision that TensorBoard has them in.
fn histograms(series: &HistogramSeries, theirs: &Value) -> (Value, Value) {
    let (mut rows, mut distributions) = (Vec::new(), Vec::new());
    for row in 0..series.len() {
        let precision = &theirs[row][2];
        let in_precision = |x: f64| if precision == "float32" { f64::from(x as f32) } else { x };
        let bucket = |b: &Bucket| Bucket {
            left: in_precision(b.left),
            right: in_precision(b.right),
            count: in_precision(b.count),
        };
        let buckets: Vec<Bucket> = series.histogram(row).unwrap().buckets.iter().map(bucket).collect();
        let (step, wall) = (series.step[row], bits(series.wall[row]));
        let texts: Vec<String> = buckets.iter().map(|b| [b.left, b.right, b.count].map(bits).concat()).collect();
        rows.push(json!([step, wall, precision, texts]));
        // Nothing has no quantiles; TensorBoard gives its last edge, 0 without any.
        let end = buckets.last().map_or(0.0, |bucket| bucket.right);
        let histogram = Histogram::from_buckets(buckets);
        let value = |q| if histogram.num > 0.0 { histogram.quantile(q) } else { end };
        let quantile = |q: f64| json!([(q * 1e4).round() as u32, bits(value(q))]);
        distributions.push(json!([step, wall, Histogram::QUANTILES.map(quantile)]));
    }
    (rows.into(), distributions.into())
}

/// The values of one tag, passed to `add` by kind and tag.
fn media_values(tag: &str, media: &MediaSeries, mut add: impl FnMut(&str, &str, Value)) {
    let samples = || media.rows().iter().enumerate().map(|(row, at)| (at, media.read(row).unwrap()));
    let points = |what: &dyn Fn(Sample) -> Vec<Value>| -> Value {
        let point = |(step, wall, what): (i64, f64, Vec<Value>)| {
            [vec![json!(step), bits(wall).into()], what].concat().into_iter().collect::<Value>()
        };
        samples().map(|(at, sample)| point((at.step, at.wall, what(sample)))).collect()
    };
    let first_blob = || match samples().next() {
        Some((_, Sample::Blobs(blobs))) => Value::from(hex(&blobs[0])),
        other => panic!("{tag}: {other:?}"),
    };
    match media.kind() {
        kind @ ("images" | "audio" | "text" | "pr_curves") => add(kind, tag, points(&one_sample)),
        "tensor" => add("tensors", tag, points(&one_sample)),
        "custom_scalars" => samples().for_each(|(_, sample)| {
            let Sample::Layout(layout) = sample else { panic!("{tag}: {sample:?}") };
            categories(&layout).into_iter().for_each(|(title, what)| add("custom_scalars", &title, what));
        }),
        "mesh" => add_mesh(media, &points(&one_sample), add),
        "graph_keras_model" => add("keras_models", tag, first_blob()),
        "graph_run_metadata" => add("function_profiles", tag, first_blob()),
        "graph_run_metadata_graph" => add("function_graphs", tag, first_blob()),
        // Sessions are put together of several runs.
        "hparams" => {}
        other => panic!("{tag} is of kind {other}"),
    }
}

/// What a sample shows in addition to its step and wall time.
fn one_sample(sample: Sample) -> Vec<Value> {
    let numbers = |values: &[f64]| json!(values.iter().map(|x| bits(*x)).collect::<Vec<_>>());
    match sample {
        Sample::Images(images) => {
            vec![images.iter().map(|image| json!([image.width, image.height, hex(&image.bytes)])).collect()]
        }
        Sample::Audio(sounds) => vec![sounds.iter().map(sound).collect()],
        Sample::Text(text) => vec![json!(text.shape), json!(text.values)],
        Sample::Tensor(tensor) => vec![json!(tensor.shape), numbers(&tensor.values)],
        // TensorBoard leaves out the thresholds at the end that predict nothing.
        Sample::PrCurve(c) => {
            let n = (1..c.recall.len()).rev().find(|i| c.true_positives[*i] + c.false_positives[*i] > 0.0);
            let n = n.map_or(1, |last| last + 1);
            let rows =
                [&c.true_positives, &c.false_positives, &c.true_negatives, &c.false_negatives, &c.precision, &c.recall];
            let rows = rows.map(|row| numbers(&row[..n]));
            let threshold = |i: usize| i as f64 * (1.0 / (c.recall.len() - 1) as f64);
            rows.into_iter().chain([numbers(&(0..n).map(threshold).collect::<Vec<_>>())]).collect()
        }
        Sample::Mesh(part) => {
            let values = &part.values;
            let n = values.values.len() / values.shape[0].max(1);
            let bytes = |x: &f64| match part.content {
                ContentType::Vertex => (*x as f32).to_le_bytes().to_vec(),
                ContentType::Face => (*x as i32).to_le_bytes().to_vec(),
                _ => vec![*x as u8],
            };
            let data = values.values.chunks(n).map(|one| hex(&one.iter().flat_map(bytes).collect::<Vec<_>>()));
            vec![part.content.as_str_name().into(), json!(values.shape), data.collect()]
        }
        other => panic!("{other:?}"),
    }
}

/// Type, rate, channels, frames, and the file.
fn sound(sound: &EncodedAudio) -> Value {
    let number =
        |at: usize, n: usize| sound.bytes[at..at + n].iter().rev().fold(0_u32, |all, b| all << 8 | u32::from(*b));
    let (n_channels, rate, n_frame_bytes) = (number(22, 2), number(24, 4), number(32, 2));
    assert!(sound.sample_rate == 0.0 || sound.sample_rate == rate as f32, "{}", sound.sample_rate);
    let data = sound.bytes.windows(4).position(|w| w == b"data").unwrap();
    json!([sound.content_type, rate, n_channels, number(data + 4, 4) / n_frame_bytes, hex(&sound.bytes)])
}

/// A part under its mesh's name, with what the metadata say of all of the mesh.
fn add_mesh(media: &MediaSeries, points: &Value, mut add: impl FnMut(&str, &str, Value)) {
    let about = MeshPluginData::decode(&media.metadata.plugin_data.as_ref().unwrap().content[..]).unwrap();
    let config: Value = serde_json::from_str(&about.json_config).unwrap_or_default();
    // tensorboardX does not say which parts there are: all, as TensorBoard has it.
    let components = if about.components == 0 { 0b1110 } else { about.components };
    let part = |point: &Value| json!([point[0], point[1], point[2], components, config, point[3], point[4]]);
    add("meshes", &about.name, points.as_array().unwrap().iter().map(part).collect());
}

fn categories(layout: &Layout) -> Vec<(String, Value)> {
    let chart = |chart: &Chart| match &chart.content {
        Some(Content::Multiline(lines)) => json!([chart.title, lines.tag, []]),
        Some(Content::Margin(margin)) => {
            let series: Vec<_> = margin.series.iter().map(|s| [&s.value, &s.lower, &s.upper]).collect();
            json!([chart.title, [], series])
        }
        None => json!([chart.title, [], []]),
    };
    let of = |c: &formats::plugins::Category| json!([c.closed, c.chart.iter().map(chart).collect::<Vec<_>>()]);
    layout.category.iter().map(|c| (c.title.clone(), of(c))).collect()
}

fn nodes(graph: &GraphDef) -> Value {
    let node = |n: &NodeDef| {
        let attrs: BTreeMap<_, _> = n.attr.iter().map(|(name, value)| (name, hex(&value.encode_to_vec()))).collect();
        json!([n.name, n.op, n.input, n.device, attrs])
    };
    graph.node.iter().map(node).collect()
}

/// The projector's embeddings of a run.
fn embeddings(run: &Run) -> Vec<(String, Value)> {
    let Some(config) = read_projector_config(&run.path).unwrap() else { return Vec::new() };
    let of = |info: &formats::plugins::EmbeddingInfo| {
        let embedding = match Embedding::read(&run.path, info) {
            Ok(embedding) => embedding,
            Err(error @ EmbeddingError::InCheckpoint { .. }) => {
                return (info.tensor_name.clone(), json!(error.to_string()));
            }
            Err(error) => panic!("{error}"),
        };
        assert_eq!(embedding.notes, [""; 0]);
        let vectors = &embedding.vectors;
        let bytes: Vec<u8> = vectors.rows().flatten().flat_map(|x| x.to_le_bytes()).collect();
        let mut what = json!({"shape": [vectors.len(), vectors.n_dims()], "tensor": hex(&bytes)});
        if !embedding.metadata.is_empty() {
            let heading = Some(&embedding.columns).filter(|columns| columns.len() > 1);
            let lines = heading.into_iter().chain(&embedding.metadata).map(|cells| cells.join("\t") + "\n");
            what["metadata"] = lines.collect::<String>().into();
        }
        if let Some(sprites) = &embedding.sprites {
            (what["sprite"], what["sprite_size"]) = (hex(&sprites.file).into(), json!(sprites.size));
        }
        (info.tensor_name.clone(), what)
    };
    config.embeddings.iter().map(of).collect()
}

/// The sessions with their metrics, and what the experiment says of hyperparameters and metrics.
fn sessions(runs: &Runs) -> Option<Tags> {
    let (mut sessions, mut experiment) = (BTreeMap::new(), None);
    for (name, run) in &runs.by_name {
        let (mut session, mut status) = (None, "STATUS_UNKNOWN");
        for data in hparams(run) {
            match data {
                Data::Experiment(found) => experiment = Some(found),
                Data::SessionStartInfo(start) => session = Some(start),
                Data::SessionEndInfo(end) => status = end.status().as_str_name(),
            }
        }
        if let Some(start) = session {
            let group = if start.group_name.is_empty() { name } else { &start.group_name };
            let values: BTreeMap<_, _> = start.hparams.iter().map(|(name, v)| (name, kind(v.kind.as_ref()))).collect();
            let start = bits(start.start_time_secs);
            sessions.insert(name, json!({"group": group, "hparams": values, "status": status, "start": start}));
        }
    }
    if sessions.is_empty() {
        return None;
    }
    for (name, session) in &mut sessions {
        session["metrics"] = metrics(runs, name, experiment.as_ref());
    }
    let Some(experiment) = experiment else { return Some([("sessions".to_owned(), json!(sessions))].into()) };
    let about = |info: &HParamInfo| {
        let (discrete, interval) = domain(info);
        let shown = json!([info.display_name, info.description, info.r#type().as_str_name(), discrete, interval]);
        (info.name.clone(), shown)
    };
    let infos: BTreeMap<_, _> = experiment.hparam_infos.iter().map(about).collect();
    let named = |m: &formats::plugins::MetricInfo| {
        let name = m.name.clone().unwrap_or_default();
        [name.group, name.tag, m.display_name.clone(), m.description.clone()]
    };
    let mut metrics: Vec<_> = experiment.metric_infos.iter().map(named).collect();
    metrics.sort();
    let all = [("sessions", json!(sessions)), ("hparams", json!(infos)), ("metrics", json!(metrics))];
    Some(all.into_iter().map(|(name, what)| (name.to_owned(), what)).collect())
}

fn hparams(run: &Run) -> Vec<Data> {
    let of_series = |series: &Series| match series {
        Series::Media(media) if media.kind() == "hparams" => {
            let data = (0..media.len()).filter_map(|row| match media.read(row).unwrap() {
                Sample::HParams(found) => found.data,
                other => panic!("{other:?}"),
            });
            data.collect()
        }
        _ => Vec::new(),
    };
    run.series.values().flat_map(of_series).collect()
}

/// The last values of the scalars that the experiment names; without one, of all in the session's run.
fn metrics(runs: &Runs, session: &str, experiment: Option<&Experiment>) -> Value {
    let run_of = |group: &str| if group.is_empty() { session.to_owned() } else { format!("{session}/{group}") };
    let names: Vec<(String, String)> = match experiment {
        Some(experiment) => {
            let names = experiment.metric_infos.iter().filter_map(|info| info.name.as_ref());
            names.map(|name| (name.group.clone(), name.tag.clone())).collect()
        }
        None => runs.by_name[session].series.keys().map(|tag| (String::new(), tag.clone())).collect(),
    };
    let value = |(group, tag): (String, String)| match runs.by_name.get(&run_of(&group))?.series.get(&tag)? {
        Series::Scalar(scalars) => scalars.last().map(|p| json!([group, tag, p.step, bits(p.value)])),
        _ => None,
    };
    let mut values: Vec<Value> = names.into_iter().filter_map(value).collect();
    values.sort_by_key(Value::to_string);
    values.into()
}

/// A value of a hyperparameter.
fn kind(kind: Option<&Kind>) -> Value {
    match kind {
        Some(Kind::NumberValue(x)) => bits(*x).into(),
        Some(Kind::StringValue(text)) => text.clone().into(),
        Some(Kind::BoolValue(yes)) => (*yes).into(),
        None => Value::Null,
    }
}

/// Discrete values, and an interval's ends.
fn domain(info: &HParamInfo) -> (Vec<Value>, Option<[String; 2]>) {
    match &info.domain {
        Some(Domain::DomainDiscrete(list)) => (list.values.iter().map(|v| kind(v.kind.as_ref())).collect(), None),
        Some(Domain::DomainInterval(ends)) => (Vec::new(), Some([bits(ends.min_value), bits(ends.max_value)])),
        None => (Vec::new(), None),
    }
}
