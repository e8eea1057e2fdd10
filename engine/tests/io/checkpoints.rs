//! Checkpoints: TensorFlow's own files (`data/checkpoints`, made by `tests/scripts/tf_checkpoint_fixtures.py`), other
//! programs' reading of ours, damage, and runs that are killed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use engine::checkpoint::{Checkpoint, Slice, SliceSpec, merge, write_bundle, write_shard};
use engine::{DType, Shape, Tensor};
use serde_json::Value;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/checkpoints")
}

fn hex(v: &Value) -> Vec<u8> {
    let text = v.as_str().unwrap();
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

/// The type, shape and bytes (or strings) that TensorFlow saved.
fn check_against(name: &str, got: &Tensor, want: &Value) {
    assert_eq!(got.dtype().name(), want[0].as_str().unwrap(), "{name}");
    let dims: Vec<usize> = want[1].as_array().unwrap().iter().map(|d| d.as_u64().unwrap() as usize).collect();
    assert_eq!(got.dims(), dims, "{name}");
    if got.dtype() == DType::String {
        let strings: Vec<Vec<u8>> = want[2].as_array().unwrap().iter().map(hex).collect();
        return assert_eq!(got.strings().unwrap(), strings, "{name}");
    }
    assert_eq!(got.bytes(), hex(&want[2]), "{name}");
}

#[test]
fn tensorflows_checkpoints_are_read() {
    let expected: Value = serde_json::from_slice(&fs::read(fixtures().join("expected.json")).unwrap()).unwrap();
    let mut n = 0;
    for (prefix, tensors) in expected["checkpoints"].as_object().unwrap() {
        let checkpoint = Checkpoint::open(fixtures().join(prefix)).unwrap();
        let names: Vec<&str> = checkpoint.tensors().keys().map(String::as_str).collect();
        let mut wanted: Vec<&str> = tensors.as_object().unwrap().keys().map(String::as_str).collect();
        wanted.sort_unstable();
        assert_eq!(names, wanted, "{prefix}");
        checkpoint.verify().unwrap();
        for (name, want) in tensors.as_object().unwrap() {
            check_against(name, &checkpoint.read(name).unwrap(), want);
            n += 1;
        }
    }
    assert!(n > 60, "{n}");
}

#[test]
fn any_part_of_a_variable_in_parts_is_read() {
    let checkpoint = Checkpoint::open(fixtures().join("parts")).unwrap();
    let info = checkpoint.info("w").unwrap();
    assert_eq!((info.shape.dims(), info.parts.len()), (&[10, 4][..], 3));
    let whole = checkpoint.read("w").unwrap();
    let whole = whole.slice::<f32>().unwrap();
    for text in ["2,4:1,2", "-:3,1", "0,3:-", "3,7:0,2", "9,1:-"] {
        let slice = Slice::parse(text, &info.shape).unwrap();
        let part = checkpoint.read_slice("w", &slice).unwrap();
        let (rows, columns) = (slice.len[0], slice.len[1]);
        assert_eq!(part.dims(), [rows, columns]);
        for r in 0..rows {
            let at = (slice.start[0] + r) * 4 + slice.start[1];
            assert_eq!(part.slice::<f32>().unwrap()[r * columns..(r + 1) * columns], whole[at..at + columns], "{text}");
        }
    }
}

fn sample() -> Vec<(String, Option<SliceSpec>, Tensor)> {
    let tensors = [
        ("w", Tensor::from_vec([2, 3], vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap()),
        ("step", Tensor::scalar(1200i64)),
        ("flags", Tensor::vector(&[true, false])),
        ("names", Tensor::from_strings([2], vec![b"a".to_vec(), vec![0, 255]]).unwrap()),
        ("empty", Tensor::from_vec([0, 3], Vec::<f64>::new()).unwrap()),
        ("bytes", Tensor::vector(&[1u8, 2, 3])),
    ];
    tensors.into_iter().map(|(name, t)| (name.to_owned(), None, t)).collect()
}

#[test]
fn our_files_are_read_by_the_formats_own_library() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("model-1");
    write_shard(&prefix, &sample(), &BTreeMap::from([("step".into(), "1".into())])).unwrap();
    let bytes = fs::read(folder.path().join("model-1.safetensors")).unwrap();
    let theirs = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(theirs.len(), 6);
    let w = theirs.tensor("w").unwrap();
    assert_eq!((w.dtype(), w.shape()), (safetensors::Dtype::F32, &[2, 3][..]));
    assert_eq!(w.data(), sample()[0].2.bytes());
    let ours = Checkpoint::open(&prefix).unwrap();
    for (name, _, t) in sample() {
        assert_eq!(ours.read(&name).unwrap(), t);
    }
    assert_eq!(ours.metadata("step"), Some("1"));
}

#[test]
fn the_formats_own_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let data: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let view = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![1, 2], &data).unwrap();
    let path = folder.path().join("other.safetensors");
    safetensors::serialize_to_file([("x", view)], None, &path).unwrap();
    for prefix in [path, folder.path().join("other")] {
        let x = Checkpoint::open(prefix).unwrap().read("x").unwrap();
        assert_eq!(x, Tensor::from_vec([1, 2], vec![1.5f32, -2.0]).unwrap());
    }
}

#[test]
fn shards_become_a_checkpoint_with_their_index() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let rows = |from: usize, n: usize| {
        let shape = Shape::new(&[5, 2]);
        let slice = Slice::parse(&format!("{from},{n}:-"), &shape).unwrap();
        let values: Vec<i32> = (2 * from..2 * (from + n)).map(|v| v as i32).collect();
        ("table".to_owned(), Some(SliceSpec { shape, slice }), Tensor::from_vec([n, 2], values).unwrap())
    };
    write_shard(at("tmp/part-0"), &[rows(0, 2), sample().remove(0)], &BTreeMap::new()).unwrap();
    write_shard(at("tmp/part-1"), &[rows(2, 3)], &BTreeMap::new()).unwrap();
    assert!(Checkpoint::open(at("model-7")).is_err());
    merge(&[at("tmp/part-0"), at("tmp/part-1")], at("model-7")).unwrap();
    let checkpoint = Checkpoint::open(at("model-7")).unwrap();
    checkpoint.verify().unwrap();
    let table = Tensor::from_vec([5, 2], (0..10).collect::<Vec<i32>>()).unwrap();
    assert_eq!(checkpoint.read("table").unwrap(), table);
    assert_eq!(checkpoint.read("w").unwrap(), sample()[0].2);
    // A shard that is gone, or cut, is noticed.
    let shard = at("model-7-00001-of-00002.safetensors");
    let bytes = fs::read(&shard).unwrap();
    fs::write(&shard, &bytes[..bytes.len() - 1]).unwrap();
    assert!(Checkpoint::open(at("model-7")).is_err());
    fs::remove_file(&shard).unwrap();
    assert!(Checkpoint::open(at("model-7")).is_err());
}

/// Opens and reads everything; what it gives must be what was written.
fn read_all(prefix: &Path) -> Result<BTreeMap<String, Tensor>, engine::checkpoint::CheckpointError> {
    let checkpoint = Checkpoint::open(prefix)?;
    checkpoint.tensors().keys().map(|name| Ok((name.clone(), checkpoint.read(name)?))).collect()
}

#[test]
fn every_damaged_bit_of_ours_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("m");
    write_shard(&prefix, &sample(), &BTreeMap::new()).unwrap();
    let path = folder.path().join("m.safetensors");
    let (bytes, truth) = (fs::read(&path).unwrap(), read_all(&prefix).unwrap());
    for i in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[i] ^= 1 << (i % 8);
        fs::write(&path, &damaged).unwrap();
        // White space in the header and the like may change; no value may.
        if let Ok(all) = read_all(&prefix) {
            assert_eq!(all, truth, "byte {i}");
        }
    }
    for n in 0..bytes.len() {
        fs::write(&path, &bytes[..n]).unwrap();
        assert!(read_all(&prefix).is_err(), "cut at {n}");
    }
}

#[test]
fn damage_to_tensorflows_files_is_an_error_and_never_a_wrong_value() {
    let folder = tempfile::tempdir().unwrap();
    for (prefix, files) in [
        ("types", vec!["types.index", "types.data-00000-of-00001"]),
        ("parts", vec!["parts.index", "parts.data-00000-of-00002", "parts.data-00001-of-00002"]),
        ("old", vec!["old"]),
    ] {
        let truth = read_all(&fixtures().join(prefix)).unwrap();
        for f in &files {
            fs::copy(fixtures().join(f), folder.path().join(f)).unwrap();
        }
        for file in files {
            let path = folder.path().join(file);
            let bytes = fs::read(&path).unwrap();
            // Every byte of the small files; the larger ones in strides, for time.
            for i in (0..bytes.len()).step_by(bytes.len().div_ceil(300)) {
                let mut damaged = bytes.clone();
                damaged[i] ^= 1 << (i % 8);
                fs::write(&path, &damaged).unwrap();
                if let Ok(all) = read_all(&folder.path().join(prefix)) {
                    assert_eq!(all, truth, "{file} byte {i}");
                }
                fs::write(&path, &bytes[..i]).unwrap();
                assert!(read_all(&folder.path().join(prefix)).is_err(), "{file} cut at {i}");
            }
            fs::write(&path, &bytes).unwrap();
        }
    }
}

#[test]
fn hostile_headers_are_refused_without_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("h.safetensors");
    let refuse = |header: &str, data: &[u8]| {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(data);
        fs::write(&path, &bytes).unwrap();
        let error = read_all(&folder.path().join("h")).unwrap_err().to_string();
        assert!(error.contains("h.safetensors"), "{error}");
    };
    refuse("[]", b"");
    refuse("{", b"");
    refuse(r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}}"#, &[0; 8]);
    refuse(r#"{"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}}"#, &[0; 4]);
    refuse(r#"{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}"#, &[0; 4]);
    refuse(r#"{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}"#, &[]);
    refuse(r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#, &[0; 8]);
    refuse(
        r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}}"#,
        &[0; 6],
    );
    refuse(r#"{"__metadata__":{"x":1}}"#, b"");
    fs::write(&path, u64::MAX.to_le_bytes()).unwrap();
    assert!(read_all(&folder.path().join("h")).is_err());
    // An index must not lead out of its folder.
    fs::write(folder.path().join("i.safetensors.index.json"), r#"{"weight_map":{"a":"../h.safetensors"}}"#).unwrap();
    let error = read_all(&folder.path().join("i")).unwrap_err().to_string();
    assert!(error.ends_with("\"../h.safetensors\" is no file's name"), "{error}");
}

#[test]
fn bundles_survive_the_way_there_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let all: BTreeMap<String, Tensor> = sample().into_iter().map(|(name, _, t)| (name, t)).collect();
    write_bundle(folder.path().join("b"), &all).unwrap();
    assert_eq!(read_all(&folder.path().join("b")).unwrap(), all);
}
