//! What the writer writes is what the reader reads.

use std::{fs, time::Duration};

use formats::proto::{NodeDef, Summary, summary};
use proptest::prelude::*;

use super::*;
use crate::{Logdir, Series};

fn read(logdir: &Path) -> Logdir {
    let mut logdir = Logdir::open(&[logdir.to_owned()]).unwrap();
    logdir.read_all();
    logdir
}

#[test]
fn every_kind_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let writer = SummaryWriter::create(&dir.path().join("run"), WriterOptions::default()).unwrap();
    let graph = GraphDef {
        node: vec![NodeDef { name: "loss".into(), op: "Mean".into(), ..NodeDef::default() }],
        ..GraphDef::default()
    };
    writer.add_graph(&graph);
    writer.add_scalar("loss", 0.1, 7);
    assert_eq!(writer.add_histogram("w", [0.5_f32, -0.5, f32::NAN], 7), 1);
    let value = summary::Value {
        tag: "op".into(),
        node_name: "scope/op".into(),
        value: Some(summary::value::Value::SimpleValue(2.5)),
        ..summary::Value::default()
    };
    writer.add_summary_bytes(&Summary { value: vec![value] }.encode_to_vec(), 8, 12.5);
    writer.close().unwrap();

    let logdir = read(dir.path());
    let runs = logdir.runs();
    let run = &runs.by_name["run"];
    assert_eq!(*run.graph.as_ref().unwrap().decode().unwrap(), graph);
    let Series::Scalar(loss) = &run.series["loss"] else { panic!() };
    assert_eq!((loss.len(), loss.step(0), loss.values().get(0)), (1, 7, f64::from(0.1_f32)));
    let Series::Scalar(op) = &run.series["op"] else { panic!() };
    assert_eq!((op.step(0), op.wall(0), op.values().get(0), op.node_name.as_str()), (8, 12.5, 2.5, "scope/op"));
    let Series::Histogram(w) = &run.series["w"] else { panic!() };
    let h = &w.histogram(0).unwrap();
    assert_eq!((h.min, h.max, h.num, h.sum, h.sum_squares), (-0.5, 0.5, 2.0, 0.0, 0.5));
    assert_eq!(h.buckets.iter().map(|b| b.count).collect::<Vec<_>>(), [1.0, 0.0, 1.0]);
    assert!(run.damage.is_empty() && run.files[0].n_waiting == 0);
}

#[test]
fn the_name_is_what_tensorboard_looks_for() {
    let dir = tempfile::tempdir().unwrap();
    let a = SummaryWriter::create(dir.path(), WriterOptions::default()).unwrap();
    let b = SummaryWriter::create(dir.path(), WriterOptions::default()).unwrap();
    assert_ne!(a.path(), b.path());
    let name = a.path().file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("events.out.tfevents."), "{name}");
    assert!(name["events.out.tfevents.".len()..][..10].bytes().all(|b| b.is_ascii_digit()), "{name}");
}

#[test]
fn flush_makes_it_visible() {
    let dir = tempfile::tempdir().unwrap();
    let options = WriterOptions { flush_every: Duration::from_secs(3600), ..WriterOptions::default() };
    let writer = SummaryWriter::create(dir.path(), options).unwrap();
    writer.add_scalar("x", 1.0, 1);
    writer.flush().unwrap();
    assert_eq!(read(dir.path()).runs().by_name["."].series["x"].n_points(), 1);
    writer.add_scalar("x", 1.0, 2);
    drop(writer);
    assert_eq!(read(dir.path()).runs().by_name["."].series["x"].n_points(), 2);
}

#[test]
fn threads_share_a_writer() {
    let dir = tempfile::tempdir().unwrap();
    // A queue so small that the threads wait for it.
    let options = WriterOptions { queue_bytes: 4096, max_wait: Duration::from_secs(60), ..WriterOptions::default() };
    let writer = SummaryWriter::create(dir.path(), options).unwrap();
    std::thread::scope(|scope| {
        for t in 0..4 {
            let writer = &writer;
            scope.spawn(move || (0..1000).for_each(|step| writer.add_scalar(&format!("t{t}"), step as f32, step)));
        }
    });
    writer.close().unwrap();
    let logdir = read(dir.path());
    for t in 0..4 {
        let runs = logdir.runs();
        let Series::Scalar(s) = &runs.by_name["."].series[&format!("t{t}")] else { panic!() };
        assert!(s.points().map(|p| p.step).eq(0..1000), "records of one thread keep their order");
    }
}

#[test]
fn an_unwritable_folder_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, b"").unwrap();
    let error = SummaryWriter::create(&file.join("logdir"), WriterOptions::default()).unwrap_err();
    assert!(error.to_string().starts_with("cannot create the event file "), "{error}");
}

/// `/dev/full` takes nothing, like a full disk.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_counted_and_reported() {
    let file = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let queue = Arc::new(Queue::new(WriterOptions::default()));
    let of_thread = queue.clone();
    let thread = std::thread::spawn(move || of_thread.write_to(EventFile::from_file("/dev/full".into(), file)));
    let writer = SummaryWriter { path: "/dev/full".into(), queue, thread: Some(thread) };
    writer.add_scalar("x", 1.0, 1);
    writer.add_scalar("x", 1.0, 2);
    assert!(matches!(writer.flush(), Err(WriterError::Lost { n_lost: 2, .. })));
    writer.add_scalar("x", 1.0, 3);
    let error = writer.close().unwrap_err().to_string();
    assert!(error.starts_with("3 records are missing in /dev/full: No space left"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn scalars_come_back_bit_for_bit(points in prop::collection::vec((any::<u32>(), any::<i64>()), 1..50), tag in "\\PC{0,20}") {
        let dir = tempfile::tempdir().unwrap();
        let writer = SummaryWriter::create(dir.path(), WriterOptions::default()).unwrap();
        for &(bits, step) in &points {
            writer.add_scalar(&tag, f32::from_bits(bits), step);
        }
        writer.close().unwrap();
        let logdir = read(dir.path());
        let runs = logdir.runs();
        let Series::Scalar(s) = &runs.by_name["."].series[&tag] else { panic!() };
        let value = |bits: u32| f64::from(f32::from_bits(bits)).to_bits();
        prop_assert!(s.points().map(|p| p.step).eq(points.iter().map(|p| p.1)));
        // A signalling NaN becomes quiet on its way to f64; all else keeps its bits.
        prop_assert!(s.values().iter().map(f64::to_bits).eq(points.iter().map(|p| value(p.0))));
    }
}
