//! A step that sends a value between tasks, and the time that steps take.

use ::distributed::{Master, Session};
use ::engine::graph::Graph;
use ::engine::{DType, PartialShape};
use ::events::clock;
use engine::session::Steps;

use crate::report::BenchError;

/// A step that sends a value from task 1 to task 0.
pub struct OneWay {
    session: Session,
}

impl OneWay {
    pub fn new(master: &Master, bytes: usize) -> Result<OneWay, BenchError> {
        let g = Graph::new();
        let there = on(&g, 1);
        // Made there: a constant of this size would be a part of the graph.
        let shape = there.ints(&[(bytes / 4) as i32]);
        let ones = there.fill(shape, there.constant(1f32));
        let dims = PartialShape::new(&[Some(bytes / 4)]);
        let handle = there.add_node("VarHandleOp").name("v").attr("dtype", DType::F32).attr("shape", dims).value();
        let assign = there.add_node("AssignVariableOp").name("init").input(handle).input(ones);
        assign.attr("dtype", DType::F32).value();
        let value = there.add_node("ReadVariableOp").input(handle).attr("dtype", DType::F32).value();
        let here = on(&g, 0);
        let (begin, len) = (here.ints(&[0]), here.ints(&[1]));
        here.add_node("Slice").name("first").input(value).input(begin).input(len).value();
        let session = master.session(&g)?;
        session.run(&[], &[], &["init"])?;
        Ok(OneWay { session })
    }

    pub fn step(&mut self) -> Result<(), BenchError> {
        let got = self.session.run(&[], &["first"], &[])?;
        if got[0].slice::<f32>()? == [1.0] { Ok(()) } else { Err("another value came".into()) }
    }
}

/// The graph, its new nodes on this task.
pub fn on(g: &Graph, task: usize) -> Graph {
    g.with_device(&format!("/job:worker/task:{task}"))
}

/// Runs three times, then `n` times more, which are measured: nanoseconds.
pub fn times(into: &mut Vec<f64>, n: usize, mut run: impl FnMut() -> Result<(), BenchError>) -> Result<(), BenchError> {
    for k in 0..n + 3 {
        let begin = clock::mono_now();
        run()?;
        if k >= 3 {
            into.push((clock::mono_now() - begin) as f64);
        }
    }
    Ok(())
}
