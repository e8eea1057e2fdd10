//! Ops, kernels, gradients and element types as another crate adds them: at link time in tables, and at run time.

use engine::gradients::{GRADIENT_TABLES, GradientSpec, Rule, gradients};
use engine::graph::{InferContext, ShapeError};
use engine::kernels::support::{Computed, kernel};
use engine::kernels::{KERNEL_TABLES, KernelContext, KernelDef, registered};
use engine::ops::{OP_TABLES, OpSpec, op};
use engine::{DType, Graph, Session, SessionOptions, Tensor};

fn unchanged(c: &mut InferContext<'_>) -> Result<(), ShapeError> {
    let shape = c.input(0);
    c.set(0, shape);
    Ok(())
}

#[linkme::distributed_slice(OP_TABLES)]
static OPS: &[OpSpec] = &[op("OutsideCube", "x: T -> y: T", "T: {float, double}", unchanged)];

#[linkme::distributed_slice(KERNEL_TABLES)]
static KERNELS: &[KernelDef] =
    &[KernelDef { op: "OutsideCube", device: "CPU", dtypes: ("T", &[DType::F64]), build: |_| kernel(cube) }];

#[linkme::distributed_slice(GRADIENT_TABLES)]
static GRADIENTS: &[GradientSpec] = &[("OutsideCube", CUBE)];

const CUBE: Rule = Rule::Slope(|x, _| 3.0 * x.square());

fn cube(c: &mut KernelContext<'_>) -> Computed {
    let x = c.input(0)?;
    let cubes: Vec<f64> = x.slice::<f64>()?.iter().map(|v| v * v * v).collect();
    let y = Tensor::from_vec(x.shape().clone(), cubes)?;
    c.set(0, y);
    Ok(())
}

/// The op of a vector, and its gradient.
fn run(op: &str) -> (Tensor, Tensor) {
    let g = Graph::new();
    let x = g.constant(Tensor::vector(&[1.0f64, -2.0])).output();
    let y = g.add_node(op).name("y").input(x).value().output();
    let slope = gradients(&g, &[y], &[x], &[]).unwrap()[0];
    let slope = format!("{}:{}", g.node(slope.node).unwrap().name, slope.port);
    let session = Session::new(&g, SessionOptions::default()).unwrap();
    let got = session.run(&[], &["y", &slope], &[]).unwrap();
    (got[0].clone(), got[1].clone())
}

#[test]
fn tables_are_extended_at_link_time() {
    assert_eq!(run("OutsideCube"), (Tensor::vector(&[1.0f64, -8.0]), Tensor::vector(&[3.0f64, 12.0])));
    let [only] = registered("OutsideCube")[..] else { panic!("one kernel") };
    assert_eq!((only.device, only.attr, only.dtypes), ("CPU", "T", &[DType::F64][..]));
}

#[test]
fn and_at_run_time() {
    engine::ops::register(&op("LaterCube", "x: T -> y: T", "T: {float, double}", unchanged)).unwrap();
    engine::gradients::register(("LaterCube", CUBE));
    engine::kernels::register(KernelDef {
        op: "LaterCube",
        device: "CPU",
        dtypes: ("T", &[DType::F64]),
        build: |_| kernel(cube),
    });
    assert_eq!(run("LaterCube"), (Tensor::vector(&[1.0f64, -8.0]), Tensor::vector(&[3.0f64, 12.0])));
    // A kernel of other types is added to it, by widening.
    engine::kernels::register(engine::kernels::widen::in_f64("LaterCube", ("T", &[DType::F32])));
    let g = Graph::new();
    let x = g.constant(Tensor::vector(&[3f32]));
    g.add_node("LaterCube").name("y").input(x).value();
    let session = Session::new(&g, SessionOptions::default()).unwrap();
    assert_eq!(session.run(&[], &["y"], &[]).unwrap()[0], Tensor::vector(&[27f32]));
}

#[test]
fn what_is_not_there_is_named() {
    let g = Graph::new();
    let x = g.constant(Tensor::vector(&[3f32]));
    g.add_node("OutsideCube").name("y").input(x).value();
    let session = Session::new(&g, SessionOptions::default()).unwrap();
    let error = session.run(&[], &["y"], &[]).unwrap_err().to_string();
    assert!(error.contains("OutsideCube") && error.contains("T=float"), "{error}");
}
