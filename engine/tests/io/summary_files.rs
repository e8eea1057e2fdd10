//! Files of summaries, as the ops write them.

use std::fs;
use std::path::Path;

use engine::{DType, Graph, Session, SessionOptions, Tensor};
use formats::event_file;
use formats::proto::event::What;
use formats::proto::{Event, summary};
use formats::tfrecord::{RecordStream, Scan};
use prost::Message;

/// The events of the only file of a folder that is there so far.
fn events(folder: &Path) -> Vec<Event> {
    let file = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    assert!(file.to_string_lossy().ends_with(".v2"), "{file:?}");
    let bytes = fs::read(file).unwrap();
    let (mut stream, mut source, mut all) = (RecordStream::new(0), bytes.as_slice(), Vec::new());
    while let Scan::Record(record) = stream.next(&mut source).unwrap() {
        all.push(Event::decode(record.data).unwrap());
    }
    all
}

#[test]
fn records_wait_until_there_are_enough() {
    let folder = tempfile::tempdir().unwrap();
    let g = Graph::new();
    let writer = g.add_node("SummaryWriter").output().unwrap();
    let constant = |value: Tensor| g.constant(value);
    let (logdir, suffix) = (folder.path().join("run"), constant(Tensor::string(".v2")));
    let create = g.add_node("CreateSummaryFileWriter").input(writer);
    let create = create.input(constant(Tensor::string(logdir.to_str().unwrap())));
    let create = create.input(constant(Tensor::scalar(2i32))).input(constant(Tensor::scalar(i32::MAX)));
    let create = create.input(suffix).build().unwrap();
    let write = g.add_node("WriteScalarSummary").input(writer).input(constant(Tensor::scalar(7i64)));
    let write = write.input(constant(Tensor::string("x"))).input(constant(Tensor::scalar(2.5f64)));
    let write = write.attr("T", DType::F64).build().unwrap();
    let name = |id| g.node(id).unwrap().name.to_string();
    let (create, write) = (name(create), name(write));
    let session = Session::new(&g, SessionOptions::default()).unwrap();
    let run = |target: &str| session.run(&[], &[], &[target]);
    assert!(run(&write).is_err(), "there is no file yet");
    run(&create).unwrap();
    run(&create).unwrap();
    run(&write).unwrap();
    assert_eq!(events(&logdir).len(), 0, "version and one value wait");
    run(&write).unwrap();
    let all = events(&logdir);
    assert_eq!(all.len(), 3);
    assert_eq!(all[0], event_file::version(all[0].wall_time));
    let Some(What::Summary(summary)) = &all[2].what else { panic!("{all:?}") };
    assert_eq!((all[2].step, summary.value[0].tag.as_str()), (7, "x"));
    assert_eq!(summary.value[0].value, Some(summary::value::Value::SimpleValue(2.5)));
    run(&write).unwrap();
    drop(session);
    assert_eq!(events(&logdir).len(), 4, "what waits is written when the writer goes");
}
