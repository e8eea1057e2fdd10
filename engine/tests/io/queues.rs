//! Queues: TensorFlow's own results of scripted runs (`data/io.json`, made by `tests/scripts/tf_io_fixtures.py`), waiting,
//! closing, cancelling, and many threads.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use engine::graph::{NodeBuilder, Value};
use engine::session::CancelToken;
use engine::{DType, Graph, PartialShape, RunOptions, Session, SessionOptions, Tensor};

fn session(g: &Graph) -> Arc<Session> {
    Arc::new(Session::new(g, SessionOptions { threads: Some(2), ..SessionOptions::default() }).unwrap())
}

fn of_i64(node: NodeBuilder<'_>) -> NodeBuilder<'_> {
    node.attr("component_types", vec![DType::I64])
}

/// A graph with a queue of scalars and nodes for all that can be done with it.
fn graph(op: &str, with: impl Fn(NodeBuilder<'_>) -> NodeBuilder<'_>) -> Graph {
    let g = Graph::new();
    let scalar = engine::graph::Attr::ListShape(vec![PartialShape::scalar()]);
    let q = with(of_i64(g.add_node(op).name("q")).attr("shapes", scalar)).value();
    let x = g.placeholder("x", DType::I64, PartialShape::scalar());
    let xs = g.placeholder("xs", DType::I64, PartialShape::of_rank(1));
    let n = g.placeholder("n", DType::I32, PartialShape::scalar());
    let node = |op: &str, name: &str, inputs: &[Value<'_>]| {
        let node = g.add_node(op).name(name).input(q);
        let node = match op {
            "QueueEnqueueV2" | "QueueEnqueueManyV2" => node.inputs(inputs),
            _ => inputs.iter().fold(node, |node, i| node.input(*i)),
        };
        let node = if op.starts_with("QueueDequeue") { of_i64(node) } else { node };
        let node = if name == "abort" { node.attr("cancel_pending_enqueues", true) } else { node };
        node.value();
    };
    node("QueueEnqueueV2", "put", &[x]);
    node("QueueEnqueueManyV2", "put_many", &[xs]);
    node("QueueDequeueV2", "take", &[]);
    node("QueueDequeueManyV2", "take_many", &[n]);
    node("QueueDequeueUpToV2", "take_up_to", &[n]);
    node("QueueCloseV2", "close", &[]);
    node("QueueCloseV2", "abort", &[]);
    node("QueueSizeV2", "size", &[]);
    node("QueueIsClosedV2", "is_closed", &[]);
    g
}

struct Use(Arc<Session>);

impl Use {
    fn put(&self, x: i64) -> Result<(), String> {
        self.0.run(&[("x", x.into())], &[], &["put"]).map(drop).map_err(|e| e.to_string())
    }

    fn put_many(&self, xs: &[i64]) -> Result<(), String> {
        self.0.run(&[("xs", Tensor::vector(xs))], &[], &["put_many"]).map(drop).map_err(|e| e.to_string())
    }

    fn take(&self) -> Result<i64, String> {
        Ok(self.0.run(&[], &["take"], &[]).map_err(|e| e.to_string())?[0].item::<i64>().unwrap())
    }

    fn many(&self, how: &str, n: i32) -> Result<Vec<i64>, String> {
        let got = self.0.run(&[("n", Tensor::scalar(n))], &[how], &[]).map_err(|e| e.to_string())?;
        Ok(got[0].slice::<i64>().unwrap().to_vec())
    }

    fn close(&self) -> Result<(), String> {
        self.0.run(&[], &[], &["close"]).map(drop).map_err(|e| e.to_string())
    }

    fn size(&self) -> i32 {
        self.0.run(&[], &["size"], &[]).unwrap()[0].item::<i32>().unwrap()
    }

    /// Waits until the queue holds so many, which another thread is putting in or taking out.
    fn wait_for_size(&self, n: i32) {
        for _ in 0..30_000 {
            if self.size() == n {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("the queue holds {}, not {n}", self.size());
    }
}

fn user(op: &str, with: impl Fn(NodeBuilder<'_>) -> NodeBuilder<'_>) -> Use {
    Use(session(&graph(op, with)))
}

#[test]
fn rows_come_out_as_they_went_in() {
    let q = user("FIFOQueueV2", |n| n.attr("capacity", 10));
    q.put(7).unwrap();
    q.put_many(&[1, 2, 3, 4]).unwrap();
    assert_eq!((q.take(), q.size()), (Ok(7), 4));
    assert_eq!(q.many("take_many", 3), Ok(vec![1, 2, 3]));
    assert_eq!(q.many("take_many", 0), Ok(vec![]));
    assert!(q.many("take_many", -1).unwrap_err().contains("cannot dequeue -1"));
}

#[test]
fn a_closed_queue_gives_what_it_has_and_then_ends() {
    let q = user("FIFOQueueV2", |n| n);
    q.put_many(&[1, 2, 3, 4, 5]).unwrap();
    q.close().unwrap();
    assert!(q.close().unwrap_err().contains("FIFOQueue q is already closed"));
    assert!(q.put(1).unwrap_err().contains("FIFOQueue q is closed"));
    q.put_many(&[]).unwrap();
    assert_eq!(q.take(), Ok(1));
    let error = q.many("take_many", 6).unwrap_err();
    assert!(error.contains("is closed and has insufficient elements (requested 6, current size 4)"), "{error}");
    assert_eq!(q.many("take_up_to", 3), Ok(vec![2, 3, 4]));
    assert_eq!(q.many("take_up_to", 3), Ok(vec![5]));
    assert!(q.many("take_up_to", 3).unwrap_err().contains("insufficient elements"));
    assert!(q.take().unwrap_err().contains("insufficient elements"));
    assert!(q.0.run(&[], &["is_closed"], &[]).unwrap()[0].item::<bool>().unwrap());
}

#[test]
fn those_who_wait_get_on_in_their_order() {
    let q = user("FIFOQueueV2", |n| n.attr("capacity", 2));
    std::thread::scope(|s| {
        // Four rows where two fit: the rest goes in as rows are taken; a close waits behind.
        let putting = s.spawn(|| q.put_many(&[1, 2, 3, 4]));
        q.wait_for_size(2);
        let closing = s.spawn(|| q.close());
        assert_eq!(q.many("take_many", 3), Ok(vec![1, 2, 3]));
        putting.join().unwrap().unwrap();
        closing.join().unwrap().unwrap();
        assert_eq!(q.take(), Ok(4));
        assert!(q.take().is_err());
    });
    let q = user("FIFOQueueV2", |n| n);
    std::thread::scope(|s| {
        // A batch that is never complete goes back when the queue closes.
        let taking = s.spawn(|| q.many("take_many", 5));
        q.put_many(&[1, 2]).unwrap();
        q.wait_for_size(0);
        q.close().unwrap();
        assert!(taking.join().unwrap().unwrap_err().contains("requested 5, current size 2"));
        assert_eq!(q.many("take_up_to", 5), Ok(vec![1, 2]));
    });
}

#[test]
fn cancelled_waits_end_and_lose_nothing() {
    let q = user("FIFOQueueV2", |n| n.attr("capacity", 1));
    q.put(1).unwrap();
    let options = RunOptions { timeout: Some(Duration::from_millis(30)), ..RunOptions::default() };
    let error = q.0.run_step(&options, &[("x", 2i64.into())], &[], &["put"]).unwrap_err().to_string();
    assert!(error.contains("deadline"), "{error}");
    assert_eq!((q.size(), q.take()), (1, Ok(1)));
    let token = CancelToken::new();
    let own = token.clone();
    std::thread::scope(|s| {
        let taking = s.spawn(|| {
            let options = RunOptions { cancel: Some(&own), ..RunOptions::default() };
            q.0.run_step(&options, &[("n", Tensor::scalar(3i32))], &["take_many"], &[]).map_err(|e| e.to_string())
        });
        q.put(5).unwrap();
        q.wait_for_size(0);
        token.cancel();
        assert!(taking.join().unwrap().unwrap_err().contains("cancelled"));
        assert_eq!(q.take(), Ok(5));
    });
    std::thread::scope(|s| {
        q.put(1).unwrap();
        let putting = s.spawn(|| q.put(2));
        std::thread::sleep(Duration::from_millis(5));
        q.0.run(&[], &[], &["abort"]).unwrap();
        assert!(putting.join().unwrap().is_err());
        assert_eq!(q.take(), Ok(1));
        assert!(q.take().is_err());
    });
}

#[test]
fn a_shuffled_queue_keeps_some_behind() {
    let q = user("RandomShuffleQueueV2", |n| n.attr("min_after_dequeue", 2).attr("capacity", 10).attr("seed", 1));
    q.put_many(&(0..5).collect::<Vec<_>>()).unwrap();
    let mut all: Vec<i64> = (0..3).map(|_| q.take().unwrap()).collect();
    let options = RunOptions { timeout: Some(Duration::from_millis(20)), ..RunOptions::default() };
    assert!(q.0.run_step(&options, &[], &["take"], &[]).is_err());
    q.close().unwrap();
    all.extend(q.many("take_many", 2).unwrap());
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3, 4]);
}

#[test]
fn nodes_that_share_a_queue_must_agree() {
    let g = Graph::new();
    for (name, capacity) in [("a", 5i64), ("b", 6)] {
        let node =
            of_i64(g.add_node("FIFOQueueV2").name(name)).attr("shared_name", "shared").attr("capacity", capacity);
        g.add_node("QueueSizeV2").name(&format!("size_{name}")).input(node.value()).value();
    }
    let session = session(&g);
    session.run(&[], &["size_a"], &[]).unwrap();
    let error = session.run(&[], &["size_b"], &[]).unwrap_err().to_string();
    assert!(error.contains("shared queue shared has capacity 5, the node asks for 6"), "{error}");
    // A reset drops the queue.
    session.reset("localhost");
    session.run(&[], &["size_b"], &[]).unwrap();
}

#[test]
fn wrong_components_are_refused() {
    let g = Graph::new();
    let shapes = engine::graph::Attr::ListShape(vec![[2].into(), PartialShape::scalar()]);
    let types = vec![DType::F32, DType::String];
    let q = g.add_node("FIFOQueueV2").name("q").attr("component_types", types).attr("shapes", shapes).value();
    let three = g.constant(Tensor::vector(&[1.0f32, 2.0, 3.0]));
    let text = g.constant(Tensor::string("t"));
    g.add_node("QueueEnqueueV2").name("shape").input(q).inputs(&[three, text]).value();
    g.add_node("QueueEnqueueV2").name("type").input(q).inputs(&[text, text]).value();
    g.add_node("QueueEnqueueV2").name("count").input(q).inputs(&[three]).value();
    g.add_node("QueueEnqueueManyV2").name("rows").input(q).inputs(&[three, text]).value();
    let session = session(&g);
    let error = |target: &str| session.run(&[], &[], &[target]).unwrap_err().to_string();
    assert!(error("shape").contains("component 0 of queue q: expected float[2], got float[3]"), "{}", error("shape"));
    assert!(error("type").contains("expected float, got string[]"), "{}", error("type"));
    assert!(error("count").contains("has 2 components, got 1"));
    assert!(error("rows").contains("expected floatrows of") || error("rows").contains("rows of"), "{}", error("rows"));
}

#[test]
fn many_threads_lose_and_double_nothing() {
    const EACH: i64 = 300;
    for op in ["FIFOQueueV2", "RandomShuffleQueueV2", "PaddingFIFOQueueV2"] {
        let q = user(op, |n| n.attr("capacity", 7));
        let all: Vec<i64> = std::thread::scope(|s| {
            let putting: Vec<_> = (0..3)
                .map(|t| {
                    let q = &q;
                    s.spawn(move || {
                        for i in (0..EACH).step_by(3) {
                            let at = t * EACH + i;
                            q.put(at).unwrap();
                            q.put_many(&[at + 1, at + 2]).unwrap();
                        }
                    })
                })
                .collect();
            let taking: Vec<_> = (0..3)
                .map(|t| {
                    let q = &q;
                    s.spawn(move || {
                        let mut got = Vec::new();
                        let take = |n: usize| match (t, n % 3) {
                            (0, _) => q.take().map(|x| vec![x]),
                            (_, 0) => q.many("take_many", 2),
                            _ => q.many("take_up_to", 5),
                        };
                        while let Ok(more) = take(got.len()) {
                            got.extend(more);
                        }
                        got
                    })
                })
                .collect();
            putting.into_iter().for_each(|t| t.join().unwrap());
            q.close().unwrap();
            let mut all: Vec<i64> = taking.into_iter().flat_map(|t| t.join().unwrap()).collect();
            all.extend(q.many("take_up_to", 10).unwrap_or_default());
            all
        });
        assert_eq!(all.len() as i64, 3 * EACH, "{op}");
        assert_eq!(all.iter().copied().collect::<BTreeSet<_>>().len() as i64, 3 * EACH, "{op}");
    }
}
