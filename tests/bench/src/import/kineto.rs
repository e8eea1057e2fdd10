//! A made-up training run as PyTorch's profiler writes it: Python functions, operators in operators with their shapes, launches,
//! arrows, kernels and copies on streams, steps. Every slice lies wholly in the one around it, as in a real file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// What was written.
pub struct Written {
    /// Of the file.
    pub bytes: u64,
    /// Slices among the events; the others are arrows' ends.
    pub slices: u64,
}

const OPS: [(&str, &str); 6] = [
    ("aten::linear", "aten::addmm"),
    ("aten::matmul", "aten::mm"),
    ("aten::layer_norm", "aten::native_layer_norm"),
    ("aten::softmax", "aten::_softmax"),
    ("aten::dropout", "aten::native_dropout"),
    ("aten::conv2d", "aten::cudnn_convolution"),
];
const KERNELS: [&str; 6] = [
    "ampere_sgemm_128x64_tn",
    "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4>(cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4::Params)",
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float, float const*, float const*, float const*, float*, float*, float*)",
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false, false>(float*, float const*, int, int, int, bool const*, int, bool)",
    "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, 1, 4, bool>(at::cuda::detail::TensorInfo<float const, unsigned int>, at::cuda::detail::TensorInfo<float, unsigned int>, at::cuda::detail::TensorInfo<bool, unsigned int>, unsigned int, float, at::PhiloxCudaState)",
    "void cudnn::winograd_nonfused::winogradForwardFilter4x4<float, float>(cudnn::winograd_nonfused::WinogradFilterParams<float, float>)",
];
const FILES: [&str; 4] = [
    "module.py(1773): _wrapped_call_impl",
    "linear.py(124): forward",
    "container.py(250): forward",
    "dropout.py(73): forward",
];
/// Operators of a step.
const STEP: u64 = 600;
const PID: u32 = 41_873;
/// The forward pass's thread and autograd's.
const THREADS: [u32; 2] = [PID, PID + 212];
const STREAMS: [u32; 3] = [7, 20, 24];

/// Writes `n` events.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, n: u64) -> io::Result<Written> {
    let mut made = Generator {
        out: BufWriter::with_capacity(1 << 20, File::create(path)?),
        random: 1,
        left: n,
        slices: 0,
        at: [4_458_676_000_000_000; 2],
        free: [0; 3],
        step_begin: 4_458_676_000_000_000,
        id: 0,
    };
    made.out.write_all(HEAD.as_bytes())?;
    let mut op = 0;
    while made.left > 0 {
        made.operator(op)?;
        op += 1;
        if op % STEP == 0 {
            made.step(op / STEP)?;
        }
    }
    // A trailing comma is no JSON.
    made.out.write_all(LAST.as_bytes())?;
    made.out.flush()?;
    Ok(Written { bytes: made.out.get_ref().metadata()?.len(), slices: made.slices })
}

const HEAD: &str = r#"{
  "schemaVersion": 1,
  "deviceProperties": [
    {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 85031714816, "computeMajor": 8, "computeMinor": 0, "numSms": 108}
  ],
  "displayTimeUnit": "ms", "baseTimeNanoseconds": 1759220000000000000,
  "traceEvents": [
"#;
const LAST: &str = r#"  {
    "name": "process_name", "ph": "M", "ts": 4458676000000.000, "pid": 41873, "tid": 0,
    "args": {
      "name": "python3"
    }
  }
]}
"#;

struct Generator {
    out: BufWriter<File>,
    random: u64,
    left: u64,
    slices: u64,
    /// Where each thread is, in ns.
    at: [u64; 2],
    /// When each stream is free.
    free: [u64; 3],
    step_begin: u64,
    /// The last id of an operator, and the last correlation.
    id: u64,
}

/// A slice without its arguments.
struct Slice<'a> {
    category: &'a str,
    name: &'a str,
    pid: u32,
    tid: u32,
    begin: u64,
    end: u64,
}

impl Generator {
    fn number(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % below
    }

    /// A Python function, an operator in it, one in that, its launch, the arrow, the kernel.
    fn operator(&mut self, op: u64) -> io::Result<()> {
        // Every third of autograd.
        let (thread, stream) = (usize::from(op % 3 == 2), self.number(3) as usize);
        let tid = THREADS[thread];
        let begin = self.at[thread] + 200 + self.number(3_000);
        let inner = begin + 1_500 + self.number(2_000);
        let launch = inner + 1_000 + self.number(3_000);
        let launched = launch + 3_000 + self.number(4_000);
        let inner_end = launched + 500 + self.number(1_000);
        let end = inner_end + 400 + self.number(1_500);
        self.at[thread] = end + 300;
        self.id += 1;
        let (id, kind) = (self.id, (op % 6) as usize);
        let (outer_name, inner_name) = OPS[kind];
        let (rows, columns) = (64 << self.number(5), 256 << self.number(4));
        let python = format!("torch/nn/modules/{}", FILES[(op % 4) as usize]);
        let slice =
            Slice { category: "python_function", name: &python, pid: PID, tid, begin: begin - 100, end: end + 200 };
        self.slice(&slice, format_args!(r#""Python parent id": {}, "Python id": {id}, "Ev Idx": {}"#, id / 2, id * 3))?;
        for (name, begin, end) in [(outer_name, begin, end), (inner_name, inner, inner_end)] {
            let slice = Slice { category: "cpu_op", name, pid: PID, tid, begin, end };
            self.slice(&slice, format_args!(
                r#""External id": {id},"Record function id": 0, "Concrete Inputs": ["", "", "", "1", "1"], "Input type": ["float", "float", "float", "Scalar", "Scalar"], "Input Strides": [[1], [{columns}, 1], [1, {columns}], [], []], "Input Dims": [[{columns}], [{rows}, {columns}], [{columns}, {columns}], [], []], "Ev Idx": {}"#,
                id * 3 + 1
            ))?;
        }
        let slice =
            Slice { category: "cuda_runtime", name: "cudaLaunchKernel", pid: PID, tid, begin: launch, end: launched };
        self.slice(&slice, format_args!(r#""External id": {id}, "cbid": 211, "correlation": {id}"#))?;
        self.arrow('s', PID, tid, launch)?;
        let begin = self.free[stream].max(launched + 2_000) + 700;
        let end = begin + 1_500 + self.number(20_000);
        self.free[stream] = end;
        let stream = STREAMS[stream];
        let slice = Slice { category: "kernel", name: KERNELS[kind], pid: 0, tid: stream, begin, end };
        self.slice(&slice, format_args!(
            r#""External id": {id}, "queued": 0, "device": 0, "context": 1, "stream": {stream}, "correlation": {id}, "registers per thread": 122, "shared memory": 12544, "blocks per SM": 1.1851852, "warps per SM": 4.7407406, "grid": [{rows}, 2, 1], "block": [128, 1, 1], "est. achieved occupancy %": 7"#
        ))?;
        self.arrow('f', 0, stream, begin)
    }

    /// The step that ends where both threads are.
    fn step(&mut self, number: u64) -> io::Result<()> {
        let end = self.at.into_iter().max().unwrap_or(0) + 1_000;
        let name = format!("ProfilerStep#{number}");
        // On a thread of its own: the Python functions of the step lie in it.
        let slice =
            Slice { category: "user_annotation", name: &name, pid: PID, tid: PID + 1, begin: self.step_begin, end };
        let id = self.id;
        self.slice(&slice, format_args!(r#""External id": {id}, "Ev Idx": {}"#, id * 3 + 2))?;
        // Not at once: trace_processor rounds times, and drops a slice that begins before the last one's end.
        (self.at, self.step_begin) = ([end + 500; 2], end + 500);
        Ok(())
    }

    fn slice(&mut self, slice: &Slice<'_>, args: std::fmt::Arguments<'_>) -> io::Result<()> {
        let Slice { category, name, pid, tid, begin, end } = slice;
        if self.left == 0 {
            return Ok(());
        }
        (self.left, self.slices) = (self.left - 1, self.slices + 1);
        let (ts, dur) = (Us(*begin), Us(end - begin));
        writeln!(
            self.out,
            "  {{\n    \"ph\": \"X\", \"cat\": \"{category}\", \"name\": \"{name}\", \"pid\": {pid}, \"tid\": {tid},"
        )?;
        writeln!(self.out, "    \"ts\": {ts}, \"dur\": {dur},\n    \"args\": {{\n      {args}\n    }}\n  }},")
    }

    fn arrow(&mut self, phase: char, pid: u32, tid: u32, at: u64) -> io::Result<()> {
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        let (id, ts) = (self.id, Us(at));
        let bind = if phase == 'f' { ", \"bp\": \"e\"" } else { "" };
        write!(self.out, "  {{\n    \"ph\": \"{phase}\", \"id\": {id}, \"pid\": {pid}, \"tid\": {tid}, \"ts\": {ts},")?;
        writeln!(self.out, "\n    \"cat\": \"ac2g\", \"name\": \"ac2g\"{bind}\n  }},")
    }
}

/// Nanoseconds, written in microseconds.
struct Us(u64);

impl std::fmt::Display for Us {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}
