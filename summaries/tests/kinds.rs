//! Every kind of summary that is written is read back as it was.

// Clippy's exceptions for tests do not reach the helpers of an integration test.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, path::Path};

use formats::plugins::{
    Category, Chart, Layout, MultilineChartContent, chart, h_param_value::Kind, h_params_plugin_data::Data,
    mesh_plugin_data::ContentType,
};
use summaries::{
    Bucket, HParam, Logdir, Mesh, Pixels, PrCurve, Run, Sample, Series, SummaryWriter, TextTensor, ValueError,
    WriterOptions, read_projector_config,
};

fn written(write: impl FnOnce(&SummaryWriter)) -> (tempfile::TempDir, Logdir) {
    let dir = tempfile::tempdir().unwrap();
    let writer = SummaryWriter::create(dir.path(), WriterOptions::default()).unwrap();
    write(&writer);
    writer.close().unwrap();
    let mut logdir = Logdir::open(&[dir.path().to_owned()]).unwrap();
    logdir.read_all();
    assert_eq!(logdir.runs().by_name["."].n_damaged, 0);
    (dir, logdir)
}

#[track_caller]
fn sample(run: &Run, tag: &str, kind: &str) -> Sample {
    let Series::Media(series) = &run.series[tag] else { panic!("{tag} is {}", run.series[tag].kind()) };
    assert_eq!((series.kind(), series.len()), (kind, 1));
    series.read(0).unwrap()
}

#[test]
fn images() {
    let rgb: Vec<u8> = (0..4 * 3 * 3).collect();
    let (_dir, logdir) = written(|writer| {
        writer.add_image("rgb", Pixels { width: 4, height: 3, data: &rgb }, 5).unwrap();
        let error = writer.add_image("bad", Pixels { width: 4, height: 3, data: &rgb[1..] }, 5).unwrap_err();
        assert!(matches!(error, ValueError::Size { n: 35, .. }), "{error}");
        assert!(writer.add_image("none", Pixels { width: 0, height: 3, data: &[] }, 5).is_err());
    });
    let runs = logdir.runs();
    let Sample::Images(images) = sample(&runs.by_name["."], "rgb", "images") else { panic!() };
    assert_eq!((images.len(), images[0].width, images[0].height), (1, 4, 3));
    let mut reader = png::Decoder::new(std::io::Cursor::new(&images[0].bytes)).read_info().unwrap();
    let mut pixels = vec![0; rgb.len()];
    reader.next_frame(&mut pixels).unwrap();
    assert_eq!(pixels, rgb);
}

#[test]
fn sounds() {
    let samples = [0.0, 0.5, -0.5, 1.0, -1.0, 2.0];
    let (_dir, logdir) = written(|writer| {
        writer.add_audio("tone", &samples, 2, 8000, 1).unwrap();
        assert!(writer.add_audio("bad", &samples, 4, 8000, 1).is_err());
    });
    let runs = logdir.runs();
    let Sample::Audio(sounds) = sample(&runs.by_name["."], "tone", "audio") else { panic!() };
    let wav = &sounds[0].bytes;
    assert_eq!((&wav[..4], &wav[8..16], wav.len()), (&b"RIFF"[..], &b"WAVEfmt "[..], 44 + 12));
    let values: Vec<i16> = wav[44..].chunks(2).map(|b| i16::from_le_bytes([b[0], b[1]])).collect();
    assert_eq!(values, [0, 16384, -16384, 32767, -32767, 32767]);
}

#[test]
fn texts_tensors_and_histograms() {
    let buckets = [Bucket { left: -1.5, right: 0.1, count: 3.0 }, Bucket { left: 0.1, right: 2.5, count: 4.0 }];
    let (_dir, logdir) = written(|writer| {
        writer.add_text("note", "*hi* ünïcode", 1);
        writer.add_text_table("table", 2, &["a", "b", "c", "d"], 1).unwrap();
        assert!(writer.add_text_table("bad", 3, &["a", "b"], 1).is_err());
        writer.add_tensor("t", &[2, 2], &[1.0, f32::NAN, -0.0, 4.0], 1).unwrap();
        assert!(writer.add_tensor("bad", &[2, 2], &[1.0], 1).is_err());
        writer.add_histogram_buckets("h", &buckets, 1);
    });
    let runs = logdir.runs();
    let run = &runs.by_name["."];
    let text = |shape: &[usize], values: &[&str]| {
        Sample::Text(TextTensor { shape: shape.into(), values: values.iter().map(ToString::to_string).collect() })
    };
    assert_eq!(sample(run, "note", "text"), text(&[], &["*hi* ünïcode"]));
    assert_eq!(sample(run, "table", "text"), text(&[2, 2], &["a", "b", "c", "d"]));
    let Sample::Tensor(tensor) = sample(run, "t", "tensor") else { panic!() };
    let bits: Vec<u64> = tensor.values.iter().map(|v| v.to_bits()).collect();
    assert_eq!((tensor.shape, bits), (vec![2, 2], [1.0, f64::NAN, -0.0, 4.0].map(f64::to_bits).to_vec()));
    let Series::Histogram(h) = &run.series["h"] else { panic!() };
    assert_eq!(h.histogram(0).unwrap().buckets, buckets);
}

/// By hand, at thresholds 0, 0.5 and 1.
#[test]
fn precision_and_recall() {
    let (_dir, logdir) = written(|writer| {
        writer.add_pr_curve("pr", &[true, true, false, false], &[1.0, 0.4, 0.6, 0.1], 3, 2);
    });
    let runs = logdir.runs();
    let Sample::PrCurve(curve) = sample(&runs.by_name["."], "pr", "pr_curves") else { panic!() };
    let expected = PrCurve {
        true_positives: vec![2.0, 1.0, 1.0],
        false_positives: vec![2.0, 1.0, 0.0],
        true_negatives: vec![0.0, 1.0, 2.0],
        false_negatives: vec![0.0, 1.0, 1.0],
        precision: vec![0.5, 0.5, 1.0],
        recall: vec![1.0, 0.5, 0.5],
    };
    assert_eq!(curve, expected);
}

#[test]
fn hyperparameters_and_layouts() {
    let hparams = BTreeMap::from([
        ("rate".to_owned(), HParam::Number(0.1)),
        ("model".to_owned(), HParam::Text("mlp".into())),
        ("is_big".to_owned(), HParam::Bool(false)),
    ]);
    let multiline = MultilineChartContent { tag: vec!["loss.*".into()] };
    let chart = Chart { title: "losses".into(), content: Some(chart::Content::Multiline(multiline)) };
    let layout =
        Layout { version: 0, category: vec![Category { title: "c".into(), chart: vec![chart], closed: false }] };
    let (_dir, logdir) = written(|writer| {
        writer.add_hparams(&hparams, &["acc"]);
        writer.end_session(true);
        writer.add_layout(&layout);
    });
    let runs = logdir.runs();
    let run = &runs.by_name["."];
    assert_eq!(run.hparams(), hparams);
    let hparams = |tag: &str| match sample(run, tag, "hparams") {
        Sample::HParams(data) => data.data.unwrap(),
        other => panic!("{other:?}"),
    };
    let Data::SessionStartInfo(start) = hparams("_hparams_/session_start_info") else { panic!() };
    let kinds: Vec<_> = start.hparams.values().map(|value| value.kind.clone().unwrap()).collect();
    assert_eq!(kinds, [Kind::BoolValue(false), Kind::StringValue("mlp".into()), Kind::NumberValue(0.1)]);
    let Data::Experiment(experiment) = hparams("_hparams_/experiment") else { panic!() };
    assert_eq!(experiment.metric_infos[0].name.as_ref().unwrap().tag, "acc");
    assert!(matches!(hparams("_hparams_/session_end_info"), Data::SessionEndInfo(end) if end.status == 1));
    assert_eq!(sample(run, "custom_scalars__config__", "custom_scalars"), Sample::Layout(layout));
}

#[test]
fn meshes_profiles_and_embeddings() {
    let vertices = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.5]];
    let (dir, logdir) = written(|writer| {
        let mesh = Mesh { vertices: &vertices, faces: &[[0, 1, 2]], colors: &[[255, 0, 1]; 3] };
        writer.add_mesh("m", mesh, 3);
        writer.add_run_metadata("step 3", b"profile", 3);
        writer.add_embedding("words", 2, &[1.0, 2.0, 3.0, 4.5], &["a\tb", "c"]).unwrap();
        writer.add_embedding("more", 1, &[1.0], &[]).unwrap();
        assert!(writer.add_embedding("../away", 1, &[1.0], &[]).is_err());
        assert!(writer.add_embedding("bad", 2, &[1.0], &[]).is_err());
    });
    let runs = logdir.runs();
    let run = &runs.by_name["."];
    let part = |suffix: &str| match sample(run, &format!("m_{suffix}"), "mesh") {
        Sample::Mesh(part) => (part.mesh, part.content, part.values.shape, part.values.values),
        other => panic!("{other:?}"),
    };
    let flat = vertices.as_flattened().iter().map(|v| f64::from(*v)).collect();
    assert_eq!(part("VERTEX"), ("m".into(), ContentType::Vertex, vec![1, 3, 3], flat));
    assert_eq!(part("FACE"), ("m".into(), ContentType::Face, vec![1, 1, 3], vec![0.0, 1.0, 2.0]));
    assert_eq!(part("COLOR").3, [[255.0, 0.0, 1.0]; 3].concat());
    assert_eq!((&*run.run_metadata[0].tag, run.run_metadata[0].read().unwrap()), ("step 3", b"profile".to_vec()));
    let config = read_projector_config(dir.path()).unwrap().unwrap();
    let paths: Vec<_> = config.embeddings.iter().map(|e| (e.tensor_path.as_str(), e.metadata_path.as_str())).collect();
    assert_eq!(paths, [("words/tensors.tsv", "words/metadata.tsv"), ("more/tensors.tsv", "")]);
    let text = |file: &str| std::fs::read_to_string(dir.path().join(file)).unwrap();
    assert_eq!((text("words/tensors.tsv"), text("words/metadata.tsv")), ("1\t2\n3\t4.5\n".into(), "a b\nc\n".into()));
    assert_eq!(read_projector_config(Path::new("/nowhere")).unwrap(), None);
}

/// A value is where it was found, or the reader says that it is not.
#[test]
fn media_of_files_that_changed() {
    let (dir, logdir) = written(|writer| writer.add_text("note", "hello", 1));
    let runs = logdir.runs();
    let Series::Media(note) = &runs.by_name["."].series["note"] else { panic!() };
    let file = note.rows()[0].place.file.clone();
    let mut bytes = std::fs::read(&file).unwrap();
    let n = bytes.len();
    bytes[n - 6] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    assert!(note.read(0).unwrap_err().to_string().contains("has changed since"));
    drop(dir);
    assert!(note.read(0).unwrap_err().to_string().contains("No such file"));
}
