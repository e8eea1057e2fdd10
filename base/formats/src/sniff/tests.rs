//! What a path is said to be.

use prost::Message;

use super::*;
use crate::{
    proto::{GraphDef, NodeDef, VersionDef},
    tfrecord::append_record,
};

#[track_caller]
fn check(name: &str, content: &[u8], expected: FileKind) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    fs::write(&path, content).unwrap();
    assert_eq!(sniff(&path).unwrap(), expected, "{name}");
}

fn graph() -> GraphDef {
    GraphDef {
        node: vec![NodeDef { name: "x".into(), op: "Placeholder".into(), ..NodeDef::default() }],
        ..GraphDef::default()
    }
}

fn records() -> Vec<u8> {
    let mut out = Vec::new();
    append_record(&mut out, b"an event would be here");
    append_record(&mut out, b"and here");
    out
}

#[test]
fn files_by_content() {
    check("anything", &records(), FileKind::EventFile);
    check("graph.txt", &graph().encode_to_vec(), FileKind::GraphDef);
    check("graph.pb", b"# written by hand\n\nnode { name: 'x' }", FileKind::GraphDefText);
    let with_versions =
        GraphDef { node: vec![], versions: Some(VersionDef { producer: 1087, ..VersionDef::default() }), ..graph() };
    check("versions", &with_versions.encode_to_vec(), FileKind::GraphDef);
    let mut damaged = records();
    damaged[3] ^= 1;
    check("damaged", &damaged, FileKind::EventFile);
}

#[test]
fn dumps_of_pytorch() {
    check("a", b"\x80\x04\x95\0\0\x01\0\0\0\0\0}\x94(\x8c\x08segments\x94]", FileKind::MemorySnapshot);
    check("b.pickle", b"\x80\x02}q\0(X\x0d\0\0\0device_traces", FileKind::MemorySnapshot);
    let flight = b"\x80\x02}(X\x07\0\0\0versionq\0X\x04\0\0\x002.10q\x01X\x09\0\0\0pg_config";
    let is = |what| FileKind::Unknown(Foreign::LooksLike(what));
    check("rank_0", flight, is("a flight recorder's dump: see `stepscope dumps`"));
    check("c.pkl", b"\x80\x04]\x94.", is("a pickle"));
}

#[test]
fn traces_of_other_tools() {
    use TraceFormat as T;
    let is = |name: &str, content: &[u8], format| check(name, content, FileKind::Trace(format));
    is("a", b"{\"traceEvents\": []}", T::ChromeJson);
    is("b", b"\xef\xbb\xbf [\n{\"name\": \"x\", \"ph\":\"X\"", T::ChromeJson);
    is("c", b"\x0a\x05\x40\x07\x50\x01\x5a", T::Perfetto);
    is("d", b"\x0a\x0d\x08\x02\x12\x09/host:CPU", T::XPlane);
    is("e", b"\x0a\x10\x0a\x0e\x0a\x0c/device:CPU0", T::StepStats);
    is("f", b"# tracer: nop\n#\n", T::Ftrace);
    is("f", b"\n# tracer: nop\n#\n", T::Ftrace);
    is("g", b" a b-12 (  3) [001] d..2. 12.345: sched_switch: prev_comm=x\n", T::Ftrace);
    is("h", b"python3 1/2 [000] 12.345678:  250000 cpu-clock:u: \n", T::PerfScript);
    is("t", b"\x17\x08\x44tracing6\0\0\x08", T::TraceDat);
    is("j", b"SQLite format 3\0\x04\0CREATE TABLE StringIds (id", T::Nsys);
    is("i", &zstd::encode_all(&b"[{\"ph\":\"X\"}]"[..], 1).unwrap(), T::ChromeJson);
}

#[test]
fn foreign_files_say_what_they_are() {
    let looks_like = |what| FileKind::Unknown(Foreign::LooksLike(what));
    check("events.out.tfevents.1", b"\x89PNG\r\n\x1a\n\0\0", looks_like("PNG"));
    check("a.json", b"{\"answers\": []}", looks_like("JSON"));
    check("a.db", b"SQLite format 3\0\x04\0CREATE TABLE letters (id", looks_like("SQLite"));
    check("a.txt", b"hello", looks_like("text"));
    check("Cargo.lock", b"# made\nversion = 4\n\n[[package]]\n", looks_like("text"));
    check("a.pbtxt", b"# made\nnode {\n  name: \"a\"\n}\n", FileKind::GraphDefText);
    check("b.pbtxt", b"versions\n{\n  producer: 9\n}\n", FileKind::GraphDefText);
    check("c.pbtxt", b"version: 4\n", FileKind::GraphDefText);
    check("a.bin", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13], FileKind::Unknown(Foreign::Unrecognised));
    check("a.gz", &[0x1f, 0x8b, 8, 0, 0], looks_like("gzip"));
    check("empty", b"", FileKind::Unknown(Foreign::Empty));
    check("events.out.tfevents.1", b"", FileKind::EventFile);
    assert_eq!(Foreign::LooksLike("PNG").to_string(), "not an event file, graph or trace (looks like PNG)");
}

#[test]
fn folders() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    assert_eq!(sniff(root).unwrap(), FileKind::Unknown(Foreign::NothingInFolder));
    fs::create_dir_all(root.join("a/run/trace")).unwrap();
    assert_eq!(sniff(root).unwrap(), FileKind::Unknown(Foreign::NothingInFolder));
    fs::write(root.join("a/run/events.out.tfevents.1"), b"").unwrap();
    assert_eq!(sniff(root).unwrap(), FileKind::Logdir);
    fs::write(root.join("a/run/trace/meta-17.bin"), b"").unwrap();
    assert_eq!(sniff(&root.join("a/run")).unwrap(), FileKind::RunFolder);
    assert_eq!(sniff(&root.join("a/run/trace")).unwrap(), FileKind::TraceFolder);
    assert_eq!(sniff(root).unwrap(), FileKind::Logdir);
    fs::create_dir_all(root.join("b/trace/sealed")).unwrap();
    fs::write(root.join("b/trace/sealed/slices.parquet"), b"").unwrap();
    for (path, kind) in
        [("b", FileKind::RunFolder), ("b/trace", FileKind::TraceFolder), ("b/trace/sealed", FileKind::TraceFolder)]
    {
        assert_eq!(sniff(&root.join(path)).unwrap(), kind, "{path}");
    }
    assert_eq!(sniff(&root.join("missing")).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn real_files() {
    let cases = [
        ("events", FileKind::Logdir),
        ("events/tf2_all_plugins.tfevents.v2", FileKind::EventFile),
        ("events/odd_empty.tfevents", FileKind::EventFile),
        ("graphs/tf_inception_v3_4towers.tfevents.gz", FileKind::GraphDef),
        ("graphs/zhacmsra_functions.pbtxt.gz", FileKind::GraphDefText),
        ("graphdef_cases/nested_g1/graph.pb", FileKind::GraphDef),
    ];
    for (path, expected) in cases {
        let Some(file) = test_support::data(path) else { continue };
        assert_eq!(sniff(&file).unwrap(), expected, "{path}");
    }
    let digits = test_support::root().join("engine/data/digits.csv.gz");
    assert_eq!(sniff(&digits).unwrap(), FileKind::Unknown(Foreign::LooksLike("gzip")));
}
