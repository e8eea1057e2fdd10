//! Threads that fill queues: they end with the data, stop when asked, and hand their errors on.

use std::fs;
use std::sync::Arc;

use engine::queues::{BatchOptions, Batches, Coordinator, batch, bucket_by_sequence_length, shuffle_batch};
use engine::{DType, Graph, Output, PartialShape, Session, SessionOptions, Tensor};

fn session(g: &Graph) -> Arc<Session> {
    Arc::new(Session::new(g, SessionOptions { threads: Some(2), ..SessionOptions::default() }).unwrap())
}

/// A node that gives the numbers of `0..n`, one a step, and then ends.
fn numbers(g: &Graph, n: i64) -> (Output, impl Fn(&Session)) {
    let q = g.add_node("FIFOQueueV2").name("numbers").attr("component_types", vec![DType::I64]);
    let q = q.attr("shapes", engine::graph::Attr::ListShape(vec![PartialShape::scalar()])).value();
    let all = g.constant(Tensor::vector(&(0..n).collect::<Vec<_>>()));
    let fill = g.add_node("QueueEnqueueManyV2").name("fill_numbers").input(q).inputs(&[all]).value().node();
    g.add_node("QueueCloseV2").name("end_numbers").input(q).after(&[fill]).value();
    let one = g.add_node("QueueDequeueV2").name("number").input(q).attr("component_types", vec![DType::I64]).value();
    (one.output(), |session: &Session| drop(session.run(&[], &[], &["end_numbers"]).unwrap()))
}

fn name(g: &Graph, o: Output) -> String {
    format!("{}:{}", g.node(o.node).unwrap().name, o.port)
}

/// All batches until the end.
fn drain(session: &Session, g: &Graph, outputs: &[Output]) -> Vec<Vec<Tensor>> {
    let names: Vec<String> = outputs.iter().map(|o| name(g, *o)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut all = Vec::new();
    loop {
        match session.run(&[], &names, &[]) {
            Ok(batch) => all.push(batch),
            Err(e) if e.is_end_of_data() => return all,
            Err(e) => panic!("{e}"),
        }
    }
}

#[test]
fn batches_hold_every_row_and_end_with_the_data() {
    for n_threads in [1, 3] {
        for shuffled in [false, true] {
            let g = Graph::new();
            let (x, fill) = numbers(&g, 50);
            let twice = (g.value(x) + x).output();
            let options = BatchOptions { n_threads, allow_smaller_final_batch: true, ..BatchOptions::new(8) };
            let made: Batches = match shuffled {
                false => batch(&g, &[x, twice], &options).unwrap(),
                true => shuffle_batch(&g, &[x, twice], &BatchOptions { capacity: 30, ..options }, 10, (1, 2)).unwrap(),
            };
            let session = session(&g);
            fill(&session);
            let coordinator = Coordinator::new();
            made.runner.start(&session, &coordinator).unwrap();
            let batches = drain(&session, &g, &made.outputs);
            coordinator.join().unwrap();
            let mut all: Vec<i64> = batches.iter().flat_map(|b| b[0].slice::<i64>().unwrap().to_vec()).collect();
            let ordered: Vec<i64> = (0..50).collect();
            if shuffled {
                assert_ne!(all, ordered);
            } else if n_threads == 1 {
                assert_eq!(all, ordered);
            }
            all.sort_unstable();
            assert_eq!(all, ordered, "{n_threads} threads, shuffled: {shuffled}");
            for b in &batches {
                let (x, twice) = (b[0].slice::<i64>().unwrap(), b[1].slice::<i64>().unwrap());
                assert!(x.iter().zip(twice).all(|(x, t)| 2 * x == *t));
            }
        }
    }
}

#[test]
fn threads_stop_when_asked_and_hand_errors_on() {
    let g = Graph::new();
    let x = g.constant(1i64).output();
    let endless = batch(&g, &[x], &BatchOptions::new(4)).unwrap();
    let file = g.constant(Tensor::string("/nowhere/to/be/found")).op("ReadFile").output();
    let failing = batch(&g, &[file], &BatchOptions::new(4)).unwrap();
    let session = session(&g);
    let coordinator = Coordinator::new();
    endless.runner.start(&session, &coordinator).unwrap();
    session.run(&[], &[&name(&g, endless.outputs[0])], &[]).unwrap();
    coordinator.join().unwrap();
    let coordinator = Coordinator::new();
    failing.runner.start(&session, &coordinator).unwrap();
    let error = coordinator.wait().unwrap_err().to_string();
    assert!(error.contains("/nowhere/to/be/found"), "{error}");
}

#[test]
fn sequences_of_like_length_share_their_batches() {
    let g = Graph::new();
    let (x, fill) = numbers(&g, 40);
    let length = g.value(x).op_with("FloorMod", 10.0);
    let (zero, one) = (length.number(0.0), length.number(1.0));
    let sequence = g.add_node("Range").input(zero).input(length).input(one).value().output();
    let length = length.cast(DType::I32);
    let options = BatchOptions { allow_smaller_final_batch: true, capacity: 100, ..BatchOptions::new(3) };
    let (outputs, runners) = bucket_by_sequence_length(&g, length, &[sequence, x], &[3, 7], &options).unwrap();
    let session = session(&g);
    fill(&session);
    let coordinator = Coordinator::new();
    runners.iter().for_each(|r| r.start(&session, &coordinator).unwrap());
    let batches = drain(&session, &g, &outputs);
    coordinator.join().unwrap();
    let bucket = |l: i32| usize::from(l >= 3) + usize::from(l >= 7);
    let mut seen = Vec::new();
    for b in batches {
        let (lengths, rows) = (b[0].slice::<i32>().unwrap(), b[1].slice::<i64>().unwrap());
        assert!(lengths.iter().all(|l| bucket(*l) == bucket(lengths[0])), "{lengths:?}");
        let longest = *lengths.iter().max().unwrap() as usize;
        assert_eq!(b[1].dims(), [lengths.len(), longest]);
        for (i, l) in lengths.iter().enumerate() {
            let row = &rows[i * longest..(i + 1) * longest];
            let wanted = (0..longest as i64).map(|k| if k < i64::from(*l) { k } else { 0 });
            assert!(row.iter().copied().eq(wanted));
        }
        seen.extend_from_slice(b[2].slice::<i64>().unwrap());
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..40).collect::<Vec<i64>>());
}

/// Lines of two files through a reader, whose position comes back with a checkpoint.
#[test]
fn readers_go_on_where_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<Vec<u8>> = ["a", "b"].iter().map(|f| folder.path().join(f).to_str().unwrap().into()).collect();
    fs::write(folder.path().join("a"), "head\none\ntwo\r\nthree").unwrap();
    fs::write(folder.path().join("b"), "head\nfour\n\nsix\n").unwrap();
    let build = || {
        let g = Graph::new();
        let names = g.add_node("FIFOQueueV2").name("names").attr("component_types", vec![DType::String]).value();
        let all = g.constant(Tensor::from_strings([2], files.clone()).unwrap());
        let fill = g.add_node("QueueEnqueueManyV2").name("fill").input(names).inputs(&[all]).value().node();
        g.add_node("QueueCloseV2").name("end").input(names).after(&[fill]).value();
        let reader = g.add_node("TextLineReaderV2").name("reader").attr("skip_header_lines", 1i64).value();
        g.add_node("ReaderReadV2").name("read").input(reader).input(names).value();
        g.add_node("ReaderNumRecordsProducedV2").name("n").input(reader).value();
        g.add_node("ReaderNumWorkUnitsCompletedV2").name("n_files").input(reader).value();
        session(&g)
    };
    let read = |s: &Session| -> Result<(String, String), engine::session::RunError> {
        let got = s.run(&[], &["read:0", "read:1"], &[])?;
        let text = |t: &Tensor| String::from_utf8(t.strings().unwrap()[0].clone()).unwrap();
        Ok((text(&got[0]).rsplit('/').next().unwrap().to_owned(), text(&got[1])))
    };
    let first = build();
    first.run(&[], &[], &["end"]).unwrap();
    let all: Vec<_> = ["a:2 one", "a:3 two", "a:4 three", "b:2 four", "b:3 ", "b:4 six"].into();
    let check = |s: &Session, from: usize| {
        for wanted in &all[from..] {
            let (key, value) = read(s).unwrap();
            assert_eq!(format!("{key} {value}"), *wanted);
        }
        let error = read(s).unwrap_err();
        assert!(error.is_end_of_data(), "{error}");
        let counts = s.run(&[], &["n", "n_files"], &[]).unwrap();
        assert_eq!((counts[0].item::<i64>().unwrap(), counts[1].item::<i64>().unwrap()), (6, 2));
    };
    read(&first).unwrap();
    read(&first).unwrap();
    let mut saver = engine::checkpoint::Saver::new(folder.path().join("c"), Default::default()).unwrap();
    saver.save(&first, 2).unwrap();
    check(&first, 2);
    let second = build();
    saver.restore(&second).unwrap().unwrap();
    check(&second, 2);
}
