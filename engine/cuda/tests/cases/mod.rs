//! Nodes with inputs, to be run on the CPU and on another device, and compared: for tests, and for the check of a GPU.

use std::sync::Arc;

use engine::device::Device;
use engine::graph::Attr;
use engine::{DType, Graph, Session, SessionOptions, Tensor};

/// Numbers that look like any, from -2 to 2.
pub fn numbers(dims: &[usize], seed: u64) -> Tensor {
    let n: usize = dims.iter().product();
    let value = |i: usize| {
        let x = (i as u64 + 1).wrapping_mul(seed.wrapping_mul(2) + 0x9e37_79b9_7f4a_7c15).rotate_left(23) >> 40;
        (x as f64 / (1u64 << 24) as f64 * 4.0 - 2.0) as f32
    };
    Tensor::from_vec(dims, (0..n).map(value).collect::<Vec<f32>>()).unwrap()
}

fn of(values: &Tensor, dtype: DType) -> Tensor {
    engine::convert::convert(values, dtype, engine::buffer::Allocator::host()).unwrap()
}

fn ints(values: &[i32]) -> Tensor {
    Tensor::vector(values)
}

/// One node, its inputs fed, its attributes.
pub struct Case {
    op: &'static str,
    inputs: Vec<Tensor>,
    attrs: Vec<(&'static str, Attr)>,
    /// Largest difference that rounding explains, relative to 1 or to the value, whichever is larger.
    tolerance: f64,
    /// Whether the inputs do not fit.
    fails: bool,
}

fn case(op: &'static str, inputs: Vec<Tensor>, attrs: Vec<(&'static str, Attr)>) -> Case {
    Case { op, inputs, attrs, tolerance: 1e-5, fails: false }
}

impl Case {
    fn within(self, tolerance: f64) -> Case {
        Case { tolerance, ..self }
    }

    fn fails(self) -> Case {
        Case { fails: true, ..self }
    }

    /// All outputs, on the devices of `options`, asked to be on `device`.
    fn run(&self, device: &str, options: SessionOptions) -> Result<Vec<Tensor>, String> {
        let g = Graph::new();
        let on = g.with_device(device);
        let mut feeds = Vec::new();
        for (i, input) in self.inputs.iter().enumerate() {
            let placeholder = g.add_node("Placeholder").name(&format!("x{i}")).attr("dtype", input.dtype());
            feeds.push(placeholder.value());
        }
        let mut builder = on.add_node(self.op).name("node");
        // Inputs that are a list are given as one.
        let is_list = matches!(self.op, "AddN" | "ConcatV2" | "Pack");
        if is_list {
            let (list, rest) = feeds.split_at(feeds.len() - usize::from(self.op == "ConcatV2"));
            builder = builder.inputs(list);
            for one in rest {
                builder = builder.input(*one);
            }
        } else {
            for one in &feeds {
                builder = builder.input(*one);
            }
        }
        for (name, value) in &self.attrs {
            builder = builder.attr(name, value.clone());
        }
        let node = builder.build().map_err(|e| e.to_string())?;
        let n_outputs = g.node(node).unwrap().outputs.len();
        let session = Session::new(&g, options).unwrap();
        let names: Vec<String> = (0..self.inputs.len()).map(|i| format!("x{i}:0")).collect();
        let feeds: Vec<(&str, Tensor)> = names.iter().map(String::as_str).zip(self.inputs.iter().cloned()).collect();
        let fetches: Vec<String> = (0..n_outputs).map(|i| format!("node:{i}")).collect();
        let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
        session.run(&feeds, &fetches, &[]).map_err(|e| e.to_string())
    }

    /// Compares what a device gives with what the CPU gives.
    ///
    /// # Errors
    /// Where they differ.
    pub fn check(&self, gpu: &Arc<Device>) -> Result<(), String> {
        let expected = self.run("", SessionOptions::default());
        let devices = vec![Arc::new(Device::cpu(0, usize::MAX)), Arc::clone(gpu)];
        let n_allocs = || cuda::device::gpu_of(gpu).map_or(0, |gpu| gpu.stats().n_allocs);
        let before = n_allocs();
        // Not soft: an op without a kernel for these types is an error.
        let got = self.run("/device:GPU:0", SessionOptions { devices, ..SessionOptions::default() });
        let inputs: Vec<String> = self.inputs.iter().map(|t| format!("{}{}", t.dtype(), t.shape())).collect();
        let what = format!("{} of {}", self.op, inputs.join(" "));
        let (expected, got) = match (expected, got) {
            (Ok(expected), Ok(got)) if !self.fails => (expected, got),
            (Err(_), Err(_)) if self.fails => return Ok(()),
            (expected, got) => return Err(format!("{what}: expected {expected:?}, got {got:?}")),
        };
        for (port, (e, g)) in expected.iter().zip(&got).enumerate() {
            if (e.dtype(), e.shape()) != (g.dtype(), g.shape()) {
                return Err(format!("{what}, output {port}: expected {e:?}, got {g:?}"));
            }
            if let Some(i) = difference(e, g, self.tolerance) {
                return Err(format!("{what}, output {port}, element {i}: expected {e:?}, got {g:?}"));
            }
        }
        let is_tiny = expected.iter().all(|t| t.len() <= 64);
        if n_allocs() > before || is_tiny { Ok(()) } else { Err(format!("{what}: nothing was on the device")) }
    }
}

/// The first element that differs by more.
pub fn difference(a: &Tensor, b: &Tensor, tolerance: f64) -> Option<usize> {
    let wide = |t: &Tensor| match t.dtype() {
        DType::Bool => t.slice::<bool>().unwrap().iter().map(|v| f64::from(u8::from(*v))).collect(),
        _ => of(t, DType::F64).slice::<f64>().unwrap().to_vec(),
    };
    let (a, b): (Vec<f64>, Vec<f64>) = (wide(a), wide(b));
    a.iter().zip(&b).position(|(a, b)| {
        let is_same = a == b || a.is_nan() && b.is_nan();
        !is_same && !((a - b).abs() <= tolerance * a.abs().max(1.0))
    })
}

const UNARY: &[&str] = &[
    "Neg",
    "Abs",
    "Square",
    "Sign",
    "Reciprocal",
    "Exp",
    "Expm1",
    "Tanh",
    "Sigmoid",
    "Softplus",
    "Softsign",
    "Sin",
    "Cos",
    "Erf",
    "Floor",
    "Ceil",
    "Rint",
    "Round",
    "Relu",
    "Relu6",
    "Elu",
    "Selu",
];
const POSITIVE: &[&str] = &["Sqrt", "Rsqrt", "Log", "Log1p"];
const BINARY: &[&str] = &[
    "Add",
    "AddV2",
    "Sub",
    "Mul",
    "Maximum",
    "Minimum",
    "SquaredDifference",
    "RealDiv",
    "FloorDiv",
    "DivNoNan",
    "Xdivy",
];
const GRADIENTS: &[&str] = &[
    "TanhGrad",
    "SigmoidGrad",
    "SqrtGrad",
    "RsqrtGrad",
    "ReciprocalGrad",
    "SoftplusGrad",
    "SoftsignGrad",
    "ReluGrad",
    "Relu6Grad",
    "EluGrad",
    "SeluGrad",
];
const COMPARED: &[&str] = &["Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"];

fn element_wise_ops_of_one_and_two_values() -> Vec<Case> {
    let mut cases = Vec::new();
    for (i, op) in UNARY.iter().enumerate() {
        cases.push(case(op, vec![numbers(&[7, 33], i as u64)], vec![]));
    }
    cases.push(case("Tanh", vec![of(&numbers(&[300], 3), DType::F64)], vec![]).within(1e-14));
    for op in POSITIVE {
        let positive = Tensor::vector(&(1..200).map(|i| i as f32 / 17.0).collect::<Vec<_>>());
        cases.push(case(op, vec![positive], vec![]));
    }
    for (i, op) in BINARY.iter().enumerate() {
        let (a, b) = (numbers(&[5, 1, 31], i as u64), numbers(&[4, 31], i as u64 + 50));
        cases.push(case(op, vec![a, b], vec![]).within(1e-4));
    }
    for (i, op) in GRADIENTS.iter().enumerate() {
        cases.push(case(op, vec![numbers(&[9, 20], i as u64), numbers(&[9, 20], i as u64 + 9)], vec![]).within(1e-4));
    }
    for op in COMPARED {
        let half = |seed| of(&of(&numbers(&[90], seed), DType::I32), DType::F32);
        cases.push(case(op, vec![half(1), half(2)], vec![]));
    }
    cases
}

fn broadcasts_types_and_selections() -> Vec<Case> {
    let truth = |n: usize| Tensor::from_vec([n], (0..n).map(|i| i % 3 == 0).collect::<Vec<bool>>()).unwrap();
    let mut cases = vec![
        case("AddV2", vec![numbers(&[2, 3, 4, 5], 1), numbers(&[3, 1, 5], 2)], vec![]),
        case("Mul", vec![numbers(&[100], 1), Tensor::scalar(3.0f32)], vec![]),
        case("AddV2", vec![numbers(&[3, 4], 1), numbers(&[5, 4], 2)], vec![]).fails(),
        case("AddN", vec![numbers(&[70], 1), numbers(&[70], 2), numbers(&[70], 3), numbers(&[70], 4)], vec![]),
        case("BiasAdd", vec![numbers(&[2, 3, 4, 70], 1), numbers(&[70], 2)], vec![]),
        case("BiasAdd", vec![numbers(&[2, 7, 4, 5], 1), numbers(&[7], 2)], vec![("data_format", "NCHW".into())]),
        case("BiasAddGrad", vec![numbers(&[40, 9, 7], 1)], vec![]),
        case("BiasAddGrad", vec![numbers(&[4, 9, 7], 1)], vec![("data_format", "NCHW".into())]),
        case("SelectV2", vec![truth(30), numbers(&[5, 30], 1), numbers(&[5, 1], 2)], vec![]),
        case("Select", vec![truth(90), numbers(&[90, 4], 1), numbers(&[90, 4], 2)], vec![]),
        case("LogicalAnd", vec![truth(99), truth(99)], vec![]),
        case("LogicalNot", vec![truth(99)], vec![]),
        case("LeakyRelu", vec![numbers(&[80], 1)], vec![("alpha", Attr::Float(0.3))]),
        case("Pow", vec![numbers(&[80], 1), Tensor::scalar(2.0f32)], vec![]),
    ];
    for dtype in [DType::F64, DType::F16, DType::BF16, DType::I32, DType::I64, DType::Bool] {
        let attrs = vec![("SrcT", Attr::Type(DType::F32)), ("DstT", Attr::Type(dtype))];
        cases.push(case("Cast", vec![numbers(&[200], 5)], attrs).within(0.0));
    }
    for dtype in [DType::F64, DType::F16, DType::BF16, DType::I32, DType::I64] {
        let tolerance = if dtype == DType::F16 || dtype == DType::BF16 { 8e-3 } else { 0.0 };
        let values = |seed| of(&numbers(&[7, 11], seed), dtype);
        cases.push(case("Mul", vec![values(1), values(2)], vec![]).within(tolerance));
        cases.push(case("Maximum", vec![values(1), values(2)], vec![]).within(0.0));
        let attrs = vec![("SrcT", Attr::Type(dtype)), ("DstT", Attr::Type(DType::F32))];
        cases.push(case("Cast", vec![values(7)], attrs).within(0.0));
    }
    cases
}

fn products() -> Vec<Case> {
    let mut cases = Vec::new();
    for (m, k, n) in [(3, 5, 7), (65, 17, 130), (64, 64, 64), (1, 100, 1), (70, 1, 3)] {
        for (ta, tb) in [(false, false), (true, false), (false, true), (true, true)] {
            let a = if ta { [k, m] } else { [m, k] };
            let b = if tb { [n, k] } else { [k, n] };
            let attrs = vec![("transpose_a", Attr::Bool(ta)), ("transpose_b", Attr::Bool(tb))];
            cases.push(case("MatMul", vec![numbers(&a, 1), numbers(&b, 2)], attrs).within(1e-4));
        }
    }
    cases.push(case("MatMul", vec![numbers(&[3, 4], 1), numbers(&[5, 6], 2)], vec![]).fails());
    cases.push(case(
        "MatMul",
        vec![of(&numbers(&[9, 20], 1), DType::F64), of(&numbers(&[20, 9], 2), DType::F64)],
        vec![],
    ));
    for (a, b) in [([3, 4, 5], [3, 5, 6]), ([1, 4, 5], [3, 5, 6]), ([3, 4, 5], [1, 5, 6])] {
        cases.push(case("BatchMatMulV2", vec![numbers(&a, 1), numbers(&b, 2)], vec![]).within(1e-4));
    }
    let adjoint = vec![("adj_x", Attr::Bool(true)), ("adj_y", Attr::Bool(true))];
    cases.push(case("BatchMatMulV2", vec![numbers(&[2, 1, 5, 4], 1), numbers(&[3, 6, 5], 2)], adjoint).within(1e-4));
    cases
}

fn reductions() -> Vec<Case> {
    let mut cases = Vec::new();
    for op in ["Sum", "Mean", "Max", "Min", "Prod"] {
        for axes in [&[0][..], &[1], &[2], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2], &[-1], &[]] {
            for keeps in [false, true] {
                let x = if op == "Prod" { numbers(&[3, 4, 5], 1) } else { numbers(&[6, 7, 40], 1) };
                cases.push(case(op, vec![x, ints(axes)], vec![("keep_dims", Attr::Bool(keeps))]).within(1e-4));
            }
        }
    }
    // Large enough to be made in parts.
    cases.push(case("Sum", vec![numbers(&[100_000], 1), ints(&[0])], vec![]).within(1e-3));
    cases.push(case("Mean", vec![numbers(&[5_000, 6], 1), ints(&[0])], vec![]).within(1e-4));
    cases.push(case("Sum", vec![of(&numbers(&[50, 9], 1), DType::I64), ints(&[0])], vec![]).within(0.0));
    let truth = Tensor::from_vec([9, 20], (0..180).map(|i| i % 40 != 7).collect::<Vec<bool>>()).unwrap();
    cases.push(case("All", vec![truth.clone(), ints(&[1])], vec![]));
    cases.push(case("Any", vec![truth, ints(&[0])], vec![]));
    cases.push(case("L2Loss", vec![numbers(&[30, 30], 4)], vec![]).within(1e-4));
    cases
}

fn layouts() -> Vec<Case> {
    let x = || numbers(&[4, 5, 6], 1);
    let mut cases = vec![
        case("Transpose", vec![x(), ints(&[2, 0, 1])], vec![]),
        case("Transpose", vec![numbers(&[65, 33], 1), ints(&[1, 0])], vec![]),
        case("Transpose", vec![x(), ints(&[0, 0, 1])], vec![]).fails(),
        case("ConcatV2", vec![x(), numbers(&[4, 2, 6], 2), Tensor::scalar(1i32)], vec![]),
        case("ConcatV2", vec![x(), numbers(&[4, 5, 1], 2), Tensor::scalar(-1i32)], vec![]),
        case("Split", vec![Tensor::scalar(2i32), x()], vec![("num_split", Attr::Int(3))]),
        case("SplitV", vec![x(), ints(&[1, -1, 2]), Tensor::scalar(1i32)], vec![("num_split", Attr::Int(3))]),
        case("Slice", vec![x(), ints(&[1, 0, 2]), ints(&[2, -1, 3])], vec![]),
        case("Slice", vec![x(), ints(&[1, 0, 2]), ints(&[9, -1, 3])], vec![]).fails(),
        case("StridedSlice", vec![x(), ints(&[3, 1]), ints(&[0, 4]), ints(&[-2, 2])], vec![]),
        case(
            "StridedSlice",
            vec![x(), ints(&[1, 0]), ints(&[2, 3]), ints(&[1, 1])],
            vec![("shrink_axis_mask", Attr::Int(1))],
        ),
        case("Pad", vec![x(), Tensor::from_vec([3, 2], vec![1i32, 0, 0, 2, 3, 1]).unwrap()], vec![]),
        case(
            "PadV2",
            vec![x(), Tensor::from_vec([3, 2], vec![1i32, 0, 0, 2, 3, 1]).unwrap(), Tensor::scalar(7.0f32)],
            vec![],
        ),
        case("Tile", vec![x(), ints(&[2, 1, 3])], vec![]),
        case("BroadcastTo", vec![numbers(&[5, 1], 1), ints(&[4, 5, 6])], vec![]),
        case("Pack", vec![x(), x(), x()], vec![("axis", Attr::Int(1))]),
        case("Unpack", vec![x()], vec![("axis", Attr::Int(1)), ("num", Attr::Int(5))]),
        case("Fill", vec![ints(&[20, 30]), Tensor::scalar(2.5f32)], vec![]),
        case("ZerosLike", vec![x()], vec![]),
        case("OnesLike", vec![x()], vec![]),
        case("ReverseV2", vec![x(), ints(&[0, 2])], vec![]),
        case("Reshape", vec![x(), ints(&[-1, 12])], vec![]),
        case("ExpandDims", vec![x(), Tensor::scalar(1i32)], vec![]),
    ];
    let slice = vec![ints(&[4, 5, 6]), ints(&[1, 4]), ints(&[3, 0]), ints(&[1, -1]), numbers(&[2, 4, 6], 3)];
    cases.push(case("StridedSliceGrad", slice, vec![]));
    cases
}

fn rows_and_indices() -> Vec<Case> {
    let logits = || numbers(&[20, 300], 1);
    let labels = Tensor::vector(&(0..20).map(|i| (i * 37) % 300).collect::<Vec<i64>>());
    let rows = |n: usize, of: i32| Tensor::vector(&(0..n as i32).map(|i| (i * 7 + 3) % of).collect::<Vec<i32>>());
    vec![
        case("Softmax", vec![logits()], vec![]),
        case("LogSoftmax", vec![logits()], vec![]),
        case("Softmax", vec![of(&numbers(&[3, 5, 7], 2), DType::F64)], vec![]),
        case("SparseSoftmaxCrossEntropyWithLogits", vec![logits(), labels], vec![]).within(1e-5),
        case("SoftmaxCrossEntropyWithLogits", vec![logits(), numbers(&[20, 300], 8)], vec![]).within(1e-4),
        case("GatherV2", vec![numbers(&[40, 9], 1), rows(100, 40), Tensor::scalar(0i32)], vec![]),
        case("GatherV2", vec![numbers(&[4, 30, 5], 1), rows(70, 30), Tensor::scalar(1i32)], vec![]),
        case("UnsortedSegmentSum", vec![numbers(&[100, 6], 1), rows(100, 11), Tensor::scalar(11i32)], vec![]),
        case("ArgMax", vec![logits(), Tensor::scalar(1i32)], vec![]),
        case("ArgMin", vec![logits(), Tensor::scalar(0i32)], vec![]),
        case(
            "OneHot",
            vec![rows(90, 10), Tensor::scalar(10i32), Tensor::scalar(1.0f32), Tensor::scalar(0.5f32)],
            vec![],
        ),
    ]
}

fn list(values: &[i64]) -> Attr {
    Attr::ListInt(values.to_vec())
}

/// The group that a library may compute.
pub const CONVOLUTIONS: &str = "convolutions and their gradients";

/// What a convolution slides over, and how.
struct Sliding {
    /// Batch, rows, columns and channels.
    image: [usize; 4],
    /// Rows, columns, channels that a filter sees, and to how many.
    filter: [usize; 4],
    stride: i64,
    dilation: i64,
    padding: &'static str,
    /// With padding EXPLICIT: before and behind rows, then columns.
    zeros: [i64; 4],
    is_first: bool,
    dtype: DType,
}

const SLIDING: Sliding = Sliding {
    image: [3, 8, 9, 5],
    filter: [3, 3, 5, 6],
    stride: 1,
    dilation: 1,
    padding: "SAME",
    zeros: [0; 4],
    is_first: false,
    dtype: DType::F32,
};

impl Sliding {
    fn attrs(&self) -> Vec<(&'static str, Attr)> {
        let (first, [a, b, c, d]) = (self.is_first, self.zeros);
        let order = |y: i64, x: i64| if first { [1, 1, y, x] } else { [1, y, x, 1] };
        let zeros = if first { [0, 0, 0, 0, a, b, c, d] } else { [0, 0, a, b, c, d, 0, 0] };
        let mut attrs = vec![
            ("strides", list(&order(self.stride, self.stride))),
            ("padding", self.padding.into()),
            ("dilations", list(&order(self.dilation, self.dilation))),
            ("data_format", if first { "NCHW" } else { "NHWC" }.into()),
        ];
        if self.padding == "EXPLICIT" {
            attrs.push(("explicit_paddings", list(&zeros)));
        }
        attrs
    }

    /// The convolution and its two gradients.
    fn cases(&self) -> [Case; 3] {
        let tolerance = match self.dtype {
            DType::F16 => 2e-2,
            DType::BF16 => 1e-1,
            _ => 1e-4,
        };
        let [n, h, w, c] = self.image;
        let image = if self.is_first { [n, c, h, w] } else { [n, h, w, c] };
        let [x, w] = [of(&numbers(&image, 1), self.dtype), of(&numbers(&self.filter, 2), self.dtype)];
        let forward = case("Conv2D", vec![x.clone(), w.clone()], self.attrs()).within(tolerance);
        let y = forward.run("", SessionOptions::default()).unwrap().remove(0);
        let dy = of(&numbers(y.dims(), 3), self.dtype);
        let dims = |t: &Tensor| ints(&t.dims().iter().map(|d| *d as i32).collect::<Vec<_>>());
        let to_image = vec![dims(&x), w.clone(), dy.clone()];
        [
            forward,
            case("Conv2DBackpropInput", to_image, self.attrs()).within(tolerance),
            case("Conv2DBackpropFilter", vec![x, dims(&w), dy], self.attrs()).within(tolerance),
        ]
    }
}

fn convolutions_and_their_gradients() -> Vec<Case> {
    let mut all = Vec::new();
    for (edge, window, stride, dilation, padding) in [
        (8, 3, 1, 1, "SAME"),
        (9, 3, 2, 1, "SAME"),
        // One zero, behind; and rows that no window reaches.
        (8, 3, 2, 1, "SAME"),
        (8, 3, 2, 1, "VALID"),
        (8, 5, 1, 1, "VALID"),
        (7, 1, 1, 1, "VALID"),
        (7, 1, 2, 1, "SAME"),
        (11, 3, 1, 2, "VALID"),
        (8, 2, 3, 1, "SAME"),
    ] {
        let (image, filter) = ([3, edge, edge + 1, 5], [window, window, 5, 6]);
        all.push(Sliding { image, filter, stride, dilation, padding, ..SLIDING });
    }
    // Zeros of other numbers on each side, fewer than windows need, and so many that windows lie in them alone.
    for zeros in [[1, 1, 2, 2], [2, 0, 1, 3], [0, 1, 4, 0]] {
        all.push(Sliding { padding: "EXPLICIT", zeros, stride: 2, ..SLIDING });
    }
    // Groups: two, as many as channels, of windows of one pixel, and with dilation.
    for (each, to, window, stride, dilation, padding) in
        [(3, 4, 3, 1, 1, "SAME"), (1, 12, 3, 2, 1, "SAME"), (2, 9, 1, 1, 1, "VALID"), (2, 6, 2, 1, 2, "VALID")]
    {
        let (image, filter) = ([2, 8, 7, 6], [window, window, each, to]);
        all.push(Sliding { image, filter, stride, dilation, padding, ..SLIDING });
    }
    let grouped = Sliding { image: [2, 7, 8, 4], filter: [3, 2, 2, 6], stride: 2, ..SLIDING };
    for dtype in [DType::F32, DType::F16, DType::BF16, DType::F64] {
        for is_first in [false, true] {
            all.push(Sliding { dtype, is_first, ..grouped });
        }
    }
    let mut cases: Vec<Case> = all.iter().flat_map(Sliding::cases).collect();
    // Channels that do not fit: no whole number of groups, and results that cannot be dealt out to them.
    for filter in [[3, 3, 2, 6], [3, 3, 1, 6]] {
        cases.push(case("Conv2D", vec![numbers(&SLIDING.image, 1), numbers(&filter, 2)], SLIDING.attrs()).fails());
    }
    cases
}

fn convolutions_by_channel_and_their_gradients() -> Vec<Case> {
    let mut cases = Vec::new();
    for (edge, window, stride, dilation, each, padding) in [
        (8, 3, 1, 1, 1, "SAME"),
        (9, 3, 2, 1, 3, "SAME"),
        (8, 5, 1, 1, 2, "VALID"),
        (11, 3, 1, 2, 1, "VALID"),
        (8, 2, 3, 1, 2, "SAME"),
    ] {
        let attrs = || {
            vec![
                ("strides", list(&[1, stride, stride, 1])),
                ("padding", padding.into()),
                ("dilations", list(&[1, dilation, dilation, 1])),
            ]
        };
        let (x, w) = (numbers(&[3, edge, edge + 1, 5], 1), numbers(&[window, window, 5, each], 2));
        let forward = case("DepthwiseConv2dNative", vec![x.clone(), w.clone()], attrs()).within(1e-4);
        let y = forward.run("", SessionOptions::default()).unwrap().remove(0);
        let dy = numbers(y.dims(), 3);
        let dims = |t: &Tensor| ints(&t.dims().iter().map(|d| *d as i32).collect::<Vec<_>>());
        cases.push(forward);
        let to_input = vec![dims(&x), w.clone(), dy.clone()];
        cases.push(case("DepthwiseConv2dNativeBackpropInput", to_input, attrs()).within(1e-4));
        let to_filter = vec![x.clone(), dims(&w), dy];
        cases.push(case("DepthwiseConv2dNativeBackpropFilter", to_filter, attrs()).within(1e-4));
    }
    let turned = vec![("strides", list(&[1, 1, 2, 2])), ("padding", "SAME".into()), ("data_format", "NCHW".into())];
    let doubles =
        [(&[2usize, 3, 8, 9][..], 1), (&[3, 3, 3, 4], 2)].map(|(dims, seed)| of(&numbers(dims, seed), DType::F64));
    cases.push(case("DepthwiseConv2dNative", doubles.to_vec(), turned).within(1e-12));
    for (dtype, tolerance) in [(DType::F16, 2e-2), (DType::BF16, 1e-1)] {
        let attrs = vec![("strides", list(&[1, 1, 1, 1])), ("padding", "SAME".into())];
        let narrow =
            [(&[2usize, 8, 9, 3][..], 1), (&[3, 3, 3, 2], 2)].map(|(dims, seed)| of(&numbers(dims, seed), dtype));
        cases.push(case("DepthwiseConv2dNative", narrow.to_vec(), attrs).within(tolerance));
    }
    let misfit = vec![numbers(&[2, 8, 8, 3], 1), numbers(&[3, 3, 4, 1], 2)];
    let attrs = vec![("strides", list(&[1, 1, 1, 1])), ("padding", "SAME".into())];
    cases.push(case("DepthwiseConv2dNative", misfit, attrs).fails());
    cases
}

fn local_response_normalisation() -> Vec<Case> {
    let mut cases = Vec::new();
    // A radius of no neighbours, of some, and of more than there are channels.
    for (radius, beta, dtype, tolerance) in [
        (0, 0.5, DType::F32, 1e-5),
        (2, 0.75, DType::F32, 1e-5),
        (40, 1.0, DType::F32, 1e-5),
        (3, 0.75, DType::F64, 1e-12),
        (2, 0.5, DType::F16, 4e-3),
        (2, 0.5, DType::BF16, 3e-2),
    ] {
        let attrs = || {
            vec![
                ("depth_radius", Attr::Int(radius)),
                ("bias", Attr::Float(1.5)),
                ("alpha", Attr::Float(0.3)),
                ("beta", Attr::Float(beta)),
            ]
        };
        let x = of(&numbers(&[2, 3, 4, 13], 1), dtype);
        let forward = case("LRN", vec![x.clone()], attrs()).within(tolerance);
        let y = forward.run("", SessionOptions::default()).unwrap().remove(0);
        cases.push(forward);
        let dy = of(&numbers(&[2, 3, 4, 13], 3), dtype);
        cases.push(case("LRNGrad", vec![dy, x, y], attrs()).within(tolerance));
    }
    cases.push(case("LRN", vec![numbers(&[8, 13], 1)], vec![]).fails());
    cases
}

fn pools_and_their_gradients() -> Vec<Case> {
    let mut cases = Vec::new();
    for (window, stride, padding) in [(2, 2, "VALID"), (3, 2, "SAME"), (3, 1, "SAME"), (2, 3, "VALID")] {
        let attrs = || {
            vec![
                ("ksize", list(&[1, window, window, 1])),
                ("strides", list(&[1, stride, stride, 1])),
                ("padding", padding.into()),
            ]
        };
        // Few different values: the first of several largest counts.
        let x = of(&of(&numbers(&[2, 9, 8, 3], 4), DType::I32), DType::F32);
        let forward = case("MaxPool", vec![x.clone()], attrs());
        let y = forward.run("", SessionOptions::default()).unwrap().remove(0);
        let dy = numbers(y.dims(), 3);
        cases.push(forward);
        cases.push(case("MaxPoolGrad", vec![x.clone(), y, dy.clone()], attrs()));
        cases.push(case("AvgPool", vec![x], attrs()));
        cases.push(case("AvgPoolGrad", vec![ints(&[2, 9, 8, 3]), dy], attrs()));
    }
    cases
}

fn batch_normalisation() -> Vec<Case> {
    let mut cases = Vec::new();
    for trains in [true, false] {
        for factor in [1.0, 0.1] {
            let attrs = || vec![("is_training", Attr::Bool(trains)), ("exponential_avg_factor", Attr::Float(factor))];
            let variance = Tensor::vector(&[0.5f32, 1.5, 2.0, 0.7]);
            let [scale, offset, mean] = [1, 2, 3].map(|seed| numbers(&[4], seed));
            let x = numbers(&[3, 5, 6, 4], 9);
            cases.push(
                case(
                    "FusedBatchNormV3",
                    vec![x.clone(), scale.clone(), offset, mean.clone(), variance.clone()],
                    attrs(),
                )
                .within(1e-4),
            );
            let trains = vec![("is_training", Attr::Bool(trains))];
            let inputs = vec![numbers(&[3, 5, 6, 4], 5), x, scale, mean, variance, numbers(&[1], 1)];
            cases.push(case("FusedBatchNormGradV3", inputs, trains).within(1e-3));
        }
    }
    cases
}

fn random_numbers() -> Vec<Case> {
    vec![
        case(
            "RandomUniform",
            vec![ints(&[70, 33])],
            vec![("dtype", Attr::Type(DType::F32)), ("seed", Attr::Int(7)), ("seed2", Attr::Int(-3))],
        )
        .within(0.0),
        case(
            "RandomStandardNormal",
            vec![ints(&[70, 33])],
            vec![("dtype", Attr::Type(DType::F32)), ("seed", Attr::Int(7))],
        ),
    ]
}

/// All cases, by group.
pub fn all() -> Vec<(&'static str, Vec<Case>)> {
    vec![
        ("element wise ops of one and two values", element_wise_ops_of_one_and_two_values()),
        ("broadcasts types and selections", broadcasts_types_and_selections()),
        ("products", products()),
        ("reductions", reductions()),
        ("layouts", layouts()),
        ("rows and indices", rows_and_indices()),
        (CONVOLUTIONS, convolutions_and_their_gradients()),
        ("convolutions by channel and their gradients", convolutions_by_channel_and_their_gradients()),
        ("local response normalisation", local_response_normalisation()),
        ("pools and their gradients", pools_and_their_gradients()),
        ("batch normalisation", batch_normalisation()),
        ("random numbers", random_numbers()),
    ]
}
