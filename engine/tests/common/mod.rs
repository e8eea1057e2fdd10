//! Ops of these tests' own, registered as any other crate would register them, and graphs of them.

#![allow(dead_code, missing_docs, clippy::unwrap_used, reason = "tests; each file uses a part")]

use std::sync::Arc;

use engine::graph::{Graph, Node, NodeId, Output, ShapeError};
use engine::kernels::{Kernel, KernelContext, KernelDef, KernelError};
use engine::ops::{OpSpec, op, stateful};
use engine::resources::Variable;
use engine::{Session, SessionOptions, Shape, Tensor};
use parking_lot::Mutex;

fn scalar(c: &mut engine::graph::InferContext<'_>) -> Result<(), ShapeError> {
    c.set(0, engine::PartialShape::scalar());
    Ok(())
}

fn nothing(_: &mut engine::graph::InferContext<'_>) -> Result<(), ShapeError> {
    Ok(())
}

#[linkme::distributed_slice(engine::ops::OP_TABLES)]
static OPS: &[OpSpec] = &[
    // The sum of the inputs and `bias`, after about `work` multiplications.
    op("TestSum", "inputs: N * T -> sum: T", "N: int; T: type; bias: float = 0; work: int = 0", scalar),
    op("TestSource", "-> y: float", "value: float = 0", scalar),
    op("TestHolder", "-> y: float", "", nothing),
    op("TestSplit", "x: float -> a: float, b: float", "", nothing),
    op("TestFail", "x: float -> y: float", "", scalar),
    op("TestPanic", "x: float -> y: float", "", scalar),
    op("TestLeaveUnset", "x: float -> y: float", "", scalar),
    stateful("TestNote", "->", "", nothing),
    stateful("TestCount", "-> count: float", "container: string = 'localhost'", scalar),
    // Fills a vector in shards and gives its sum.
    op("TestShards", "-> sum: float", "n: int; panic: bool = false", scalar),
];

#[linkme::distributed_slice(engine::kernels::KERNEL_TABLES)]
static KERNELS: &[KernelDef] = &[
    cpu("TestSum", |node| Ok(Box::new(Sum { bias: node.float("bias").copied()?, work: node.int("work").copied()? }))),
    cpu("TestSource", |node| Ok(Box::new(Source(node.float("value").copied()?)))),
    cpu("TestSplit", |_| Ok(Box::new(Simple(split)))),
    cpu("TestFail", |_| Ok(Box::new(Simple(|_| Err(KernelError::invalid("it always fails")))))),
    cpu("TestPanic", |_| Ok(Box::new(Simple(|_| panic!("it always panics"))))),
    cpu("TestLeaveUnset", |_| Ok(Box::new(Simple(|_| Ok(()))))),
    cpu("TestNote", |_| Ok(Box::new(Simple(note)))),
    cpu("TestCount", |node| Ok(Box::new(Count(node.text("container")?.into())))),
    cpu("TestShards", |node| {
        Ok(Box::new(Shards { n: node.int("n").copied()? as usize, panic: node.flag("panic").copied()? }))
    }),
];

const fn cpu(op: &'static str, build: fn(&Node) -> Result<Box<dyn Kernel>, KernelError>) -> KernelDef {
    KernelDef { op, device: "CPU", dtypes: ("", &[]), build }
}

struct Sum {
    bias: f32,
    work: i64,
}

impl Kernel for Sum {
    fn compute(&self, ctx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        let mut sum = self.bias;
        for i in 0..ctx.inputs.len() {
            sum += ctx.input(i)?.item::<f32>()?;
        }
        let mut x = std::hint::black_box(1.000_1f32);
        for _ in 0..self.work {
            x = std::hint::black_box(x * 1.000_1);
        }
        std::hint::black_box(x);
        ctx.set(0, Tensor::scalar(sum));
        Ok(())
    }

    fn is_expensive(&self) -> bool {
        self.work > 0
    }
}

struct Source(f32);

impl Kernel for Source {
    fn compute(&self, ctx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        ctx.set(0, Tensor::scalar(self.0));
        Ok(())
    }

    fn is_expensive(&self) -> bool {
        false
    }
}

struct Simple(fn(&mut KernelContext<'_>) -> Result<(), KernelError>);

impl Kernel for Simple {
    fn compute(&self, ctx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        (self.0)(ctx)
    }
}

fn split(ctx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let x = ctx.input(0)?.item::<f32>()?;
    ctx.set(0, Tensor::scalar(x + 1.0));
    ctx.set(1, Tensor::scalar(x - 1.0));
    Ok(())
}

/// Names of the nodes of op `TestNote`, in the order in which they ran.
#[derive(Default)]
pub struct Notes(pub Mutex<Vec<String>>);

pub fn notes(session: &Session) -> Arc<Notes> {
    session.device().resources().find_or_create(&"notes".into(), &"notes".into(), Notes::default).unwrap()
}

fn note(ctx: &mut KernelContext<'_>) -> Result<(), KernelError> {
    let notes = ctx.resources.find_or_create(&"notes".into(), &"notes".into(), Notes::default)?;
    notes.0.lock().push(ctx.node.name.to_string());
    Ok(())
}

/// A variable that counts the executions of its node.
struct Count(Arc<str>);

impl Kernel for Count {
    fn compute(&self, ctx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        let variable = ctx.resources.find_or_create(&self.0, &ctx.node.name, Variable::default)?;
        let mut value = variable.value.write();
        let count = value.as_ref().map_or(Ok(0.0), Tensor::item::<f32>)? + 1.0;
        *value = Some(Tensor::scalar(count));
        ctx.set(0, Tensor::scalar(count));
        Ok(())
    }
}

struct Shards {
    n: usize,
    panic: bool,
}

impl Kernel for Shards {
    fn compute(&self, ctx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        let sum = std::sync::atomic::AtomicUsize::new(0);
        ctx.sharder.parallel_for(self.n, 1_000, &|range| {
            assert!(!self.panic || !range.contains(&(self.n / 2)), "a shard panics");
            for i in range {
                // Slow enough that other workers get their share.
                for _ in 0..100 {
                    std::hint::black_box(i);
                }
                sum.fetch_add(i, std::sync::atomic::Ordering::Relaxed);
            }
        });
        ctx.set(0, Tensor::scalar(sum.into_inner() as f32));
        Ok(())
    }
}

pub fn source(g: &Graph, name: &str, value: f32) -> Output {
    g.add_node("TestSource").name(name).attr("value", value).output().unwrap()
}

pub fn sum(g: &Graph, name: &str, inputs: &[Output]) -> Output {
    g.add_node("TestSum").name(name).inputs(inputs).output().unwrap()
}

pub fn note_node(g: &Graph, name: &str, after: &[NodeId]) -> NodeId {
    g.add_node("TestNote").name(name).after(after).build().unwrap()
}

pub fn session(g: &Graph, threads: usize) -> Session {
    // As they are: these tests are about which nodes run, and when.
    let passes = engine::compile::Passes::none();
    Session::new(g, SessionOptions { threads: Some(threads), passes, ..SessionOptions::default() }).unwrap()
}

pub fn value(tensors: &[Tensor]) -> f32 {
    assert_eq!(tensors.len(), 1);
    assert_eq!(tensors[0].shape(), &Shape::scalar());
    tensors[0].item::<f32>().unwrap()
}
