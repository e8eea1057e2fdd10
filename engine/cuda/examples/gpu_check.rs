//! Checks and measures the GPUs of this machine: every kernel and model against the CPU, then products, copies and steps, compared
//! with PyTorch where `python3` has it, and records a trace. Prints one table and writes `gpu_check.json` (or the file that is named)
//! and, next to it, `gpu_check.trace`. Without a GPU it says what it skipped, and ends well.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a program that talks to the terminal"
)]

#[path = "../tests/cases/mod.rs"]
mod cases;
#[path = "measured/convolutions.rs"]
mod convolutions;
#[path = "../tests/networks/mod.rs"]
mod networks;

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;

use cuda::backend::{Gemm, Lane, MatrixType};
use cuda::device::{count, gpu_of, problem};
use cuda::gpu::Gpu;
use cupti::Library;
use engine::device::{Device, DeviceOptions};
use engine::models::{Convnet, LanguageModel, MlpOptions, Network, Unrolling};
use engine::{DType, Session, SessionOptions, Shape, Tensor};

/// A line of the table.
struct Line {
    what: String,
    value: f64,
    unit: &'static str,
    note: String,
}

#[derive(Default)]
struct Report {
    lines: Vec<Line>,
    n_wrong: usize,
}

impl Report {
    fn add(&mut self, what: impl Into<String>, value: f64, unit: &'static str, note: impl Into<String>) {
        let line = Line { what: what.into(), value, unit, note: note.into() };
        println!("{:44} {:>12.3} {:10} {}", line.what, line.value, line.unit, line.note);
        self.lines.push(line);
    }

    fn wrong(&mut self, what: &str, why: &str) {
        let short: String = why.chars().take(400).collect();
        println!("WRONG {what}: {short}");
        self.n_wrong += 1;
    }

    /// One object, a list of lines in it.
    fn json(&self, device: &str) -> String {
        let mut text = format!("{{\"device\":{device:?},\"wrong\":{},\"lines\":[", self.n_wrong);
        for (i, line) in self.lines.iter().enumerate() {
            let (comma, value) = (if i > 0 { "," } else { "" }, if line.value.is_finite() { line.value } else { -1.0 });
            let Line { what, unit, note, .. } = line;
            let _ = write!(text, "{comma}{{\"what\":{what:?},\"value\":{value},\"unit\":{unit:?},\"note\":{note:?}}}");
        }
        text + "]}\n"
    }
}

fn main() -> ExitCode {
    let out = std::env::args().nth(1).unwrap_or_else(|| "gpu_check.json".to_owned());
    if let Some(problem) = problem() {
        println!("no GPU to check: {problem}");
        println!(
            "skipped: {} groups of kernels, {} models, products, convolutions, copies, steps, a trace, PyTorch",
            cases::all().len(),
            networks::all().len()
        );
        libraries();
        return ExitCode::SUCCESS;
    }
    let mut report = Report::default();
    let device = match engine::device::make("GPU", 0, &DeviceOptions::default()) {
        Ok(device) => device,
        Err(error) => {
            println!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let Some(gpu) = gpu_of(&device).cloned() else { return ExitCode::FAILURE };
    let name = gpu.backend().name();
    println!("{name}, {} devices", count());
    libraries();
    println!();
    check_kernels(&mut report, &device);
    check_own_convolutions(&mut report, &device, &gpu);
    check_models(&mut report, &device);
    measure_products(&mut report, &gpu);
    convolutions::measure(&mut report, &gpu);
    measure_copies(&mut report, &gpu);
    measure_steps(&mut report, &device, &gpu);
    trace(&mut report, &device, &Path::new(&out).with_extension("trace"));
    peer(&mut report);
    if let Some(complaint) = gpu.complaint() {
        report.wrong("a library", complaint);
    }
    let stats = gpu.stats();
    report.add("memory, peak in use", stats.peak as f64 / 1e6, "MB", format!("{} pieces", stats.n_allocs));
    report.add("memory, peak reserved", stats.peak_reserved as f64 / 1e6, "MB", format!("{} regions", stats.n_regions));
    if let Err(error) = std::fs::write(&out, report.json(&name)) {
        eprintln!("{out}: {error}");
        return ExitCode::FAILURE;
    }
    println!("\n{} lines in {out}, {} wrong", report.lines.len(), report.n_wrong);
    if report.n_wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Seconds since some moment.
fn now() -> f64 {
    events::clock::mono_now() as f64 / 1e9
}

fn check_kernels(report: &mut Report, device: &Arc<Device>) {
    for (group, cases) in cases::all() {
        let wrong: Vec<String> = cases.iter().filter_map(|case| case.check(device).err()).collect();
        wrong.iter().for_each(|why| report.wrong(group, why));
        report.add(
            format!("kernels: {group}"),
            (cases.len() - wrong.len()) as f64,
            "cases",
            format!("of {}", cases.len()),
        );
    }
}

/// Which of the libraries that quicken a device are there.
fn libraries() {
    for library in cuda::driver::optional() {
        match library.found {
            Ok(found) => println!("{}: {found}", library.name),
            Err(why) => println!("{}: {why}: own kernels", library.name),
        }
    }
}

/// Where cuDNN convolved before: the same by this crate's kernels.
fn check_own_convolutions(report: &mut Report, device: &Arc<Device>, gpu: &Gpu) {
    let by_library = gpu.n_convolved();
    if by_library == 0 {
        let is_there = cuda::driver::optional().iter().any(|library| library.name == "cuDNN" && library.found.is_ok());
        return match is_there {
            true => report.wrong("cuDNN", "it is there, and took no convolution"),
            false => println!("skipped: convolutions by cuDNN"),
        };
    }
    report.add("kernels: convolutions by cuDNN", by_library as f64, "calls", "in the cases above");
    let (_, cases) = cases::all().into_iter().find(|(name, _)| *name == cases::CONVOLUTIONS).unwrap();
    gpu.let_library_convolve(false);
    let wrong: Vec<String> = cases.iter().filter_map(|case| case.check(device).err()).collect();
    gpu.let_library_convolve(true);
    wrong.iter().for_each(|why| report.wrong("own convolutions", why));
    let right = (cases.len() - wrong.len()) as f64;
    report.add("kernels: convolutions by own kernels", right, "cases", format!("of {}", cases.len()));
}

fn check_models(report: &mut Report, device: &Arc<Device>) {
    for (name, network, size) in networks::all() {
        let n = networks::n_steps(name, 20);
        let (expected, _) = networks::losses(&*network, size, n, &[], SessionOptions::default());
        let (got, _) = networks::losses(&*network, size, n, &["/device:GPU:0"], networks::options(Arc::clone(device)));
        match networks::differs(name, &expected, &got) {
            Some(why) => report.wrong(name, &why),
            None => report.add(format!("model: {name}"), n as f64, "steps", "losses as on the CPU"),
        }
    }
}

fn matrix(gpu: &Gpu, dtype: DType, n: usize) -> (Tensor, u64) {
    let (t, at) = gpu.room(dtype, Shape::new(&[n, n])).unwrap();
    gpu.zero(at, t.n_bytes()).unwrap();
    (t, at)
}

/// Ways of cuBLASLt that are tried.
const N_WAYS: usize = 16;

/// Seconds of a product: the best of some rounds, each of so many products that the host's part is hidden. `None`: there is no such way.
fn product_seconds(gpu: &Gpu, gemm: &Gemm, way: usize, at: [u64; 3], n_rounds: usize) -> Result<Option<f64>, String> {
    let repeats = (200usize << 30) / (gemm.m * gemm.n * gemm.k) + 3;
    let mut best = f64::MAX;
    for _ in 0..n_rounds {
        let begin = now();
        for _ in 0..repeats {
            if !gpu.backend().gemm(gemm, way, at[0], at[1], at[2]).map_err(|e| e.to_string())? {
                return Ok(None);
            }
        }
        gpu.backend().synchronise(Lane::Compute).map_err(|e| e.to_string())?;
        best = best.min((now() - begin) / repeats as f64);
    }
    Ok(Some(best))
}

/// The best of the ways that the library knows: which, and its seconds.
fn best_way(gpu: &Gpu, gemm: &Gemm, at: [u64; 3]) -> Result<(usize, f64), String> {
    let mut best = (0, f64::MAX);
    for way in 0..N_WAYS {
        let Some(seconds) = product_seconds(gpu, gemm, way, at, 2)? else { break };
        if seconds < best.1 {
            best = (way, seconds);
        }
    }
    Ok(best)
}

/// Products as `MatMul` makes them, and cuBLASLt's best for comparison.
fn measure_products(report: &mut Report, gpu: &Gpu) {
    let types = [
        (MatrixType::F32, DType::F32, "f32"),
        (MatrixType::Tf32, DType::F32, "tf32"),
        (MatrixType::F16, DType::F16, "f16"),
        (MatrixType::Bf16, DType::BF16, "bf16"),
    ];
    for (of, dtype, name) in types {
        for n in [1024usize, 4096, 8192] {
            let [(_a, a), (_b, b), (_c, c)] = [0; 3].map(|_| matrix(gpu, dtype, n));
            let gemm = Gemm {
                of,
                m: n,
                n,
                k: n,
                transpose_a: false,
                transpose_b: false,
                lda: n,
                ldb: n,
                ldc: n,
                n_batches: 1,
                strides: [0; 3],
                adds: false,
            };
            let ours = match product_seconds(gpu, &gemm, 0, [a, b, c], 5) {
                Ok(Some(seconds)) => seconds,
                Ok(None) => return report.add("products", 0.0, "TFLOP/s", "no cuBLASLt: not measured"),
                Err(error) => return report.wrong(name, &error),
            };
            let (way, best) = match best_way(gpu, &gemm, [a, b, c]) {
                Ok(best) => best,
                Err(error) => return report.wrong(name, &error),
            };
            let rate = |seconds: f64| 2.0 * (n as f64).powi(3) / seconds / 1e12;
            report.add(format!("product {name} {n}"), rate(ours), "TFLOP/s", format!("{:.3} of the best", best / ours));
            let note = format!("way {way} of at most {N_WAYS}, by itself");
            report.add(format!("cuBLASLt's best: product {name} {n}"), rate(best.min(ours)), "TFLOP/s", note);
        }
    }
}

fn measure_copies(report: &mut Report, gpu: &Gpu) {
    let n_bytes = 256usize << 20;
    let backend = gpu.backend();
    let (Ok(pinned), Ok(block)) = (backend.alloc_pinned(n_bytes), gpu.block(n_bytes)) else {
        return report.wrong("copies", "no memory");
    };
    let (there, mut best) = (block.address(), [f64::MAX; 3]);
    for _ in 0..5 {
        for (i, lane) in [Lane::ToDevice, Lane::ToHost, Lane::Compute].into_iter().enumerate() {
            let begin = now();
            // SAFETY: both have as many bytes, and nobody else uses them until the lane is past, which is waited for.
            let done = unsafe {
                match lane {
                    Lane::ToDevice => backend.copy_to_device(lane, there, pinned, n_bytes),
                    Lane::ToHost => backend.copy_to_host(lane, pinned, there, n_bytes),
                    _ => backend.copy(lane, there + (n_bytes / 2) as u64, there, n_bytes / 2),
                }
            };
            if let Err(error) = done.and_then(|()| backend.synchronise(lane)) {
                return report.wrong("copies", &error.to_string());
            }
            best[i] = best[i].min(now() - begin);
        }
    }
    // SAFETY: it came from there, and all copies are done.
    unsafe { backend.free_pinned(pinned) };
    let rate = |seconds: f64| n_bytes as f64 / seconds / 1e9;
    report.add("copy to the device, pinned", rate(best[0]), "GB/s", "256 MiB");
    report.add("copy to the host, pinned", rate(best[1]), "GB/s", "256 MiB");
    report.add("copy within the device", rate(best[2]), "GB/s", "read and written");
}

/// A network that learns on a device, fed with one batch from the host again and again.
struct Learning {
    session: Session,
    feeds: Vec<(String, Tensor)>,
    loss: String,
    target: String,
}

impl Learning {
    fn begin(device: &Arc<Device>, network: &dyn Network, size: usize) -> Result<Learning, String> {
        let (g, t) = networks::trained(network, &["/device:GPU:0"]);
        let session = Session::new(&g, networks::options(Arc::clone(device))).map_err(|e| e.to_string())?;
        let node = |id| g.node(id).map(|node| node.name.to_string()).map_err(|e| e.to_string());
        session.run(&[], &[], &[&node(t.init)?]).map_err(|e| e.to_string())?;
        let names = t.feeds[0].iter().map(|feed| networks::name(&g, *feed));
        let feeds = names.zip(networks::batch(network, size, 0)).collect();
        Ok(Learning { session, feeds, loss: networks::name(&g, t.losses[0]), target: node(t.train_ops[0])? })
    }

    /// Milliseconds of a step, over so many, each of which fetches its loss.
    fn step_ms(&self, n: usize) -> Result<f64, String> {
        let feeds: Vec<(&str, Tensor)> =
            self.feeds.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let begin = now();
        for _ in 0..n {
            self.session.run(&feeds, &[&self.loss], &[&self.target]).map_err(|e| e.to_string())?;
        }
        Ok((now() - begin) / n as f64 * 1e3)
    }
}

fn measure_steps(report: &mut Report, device: &Arc<Device>, gpu: &Gpu) {
    let lstm =
        LanguageModel { n_words: 10_000, units: 650, layers: 2, time: 20, batch: 64, unrolling: Unrolling::Unrolled };
    let mlp = MlpOptions { n_inputs: 1024, hidden: vec![4096, 4096], n_classes: 1000, ..MlpOptions::default() };
    let residual = networks::Residual { edge: 28, channels: 128, n_blocks: 1 };
    let all: Vec<(&str, Box<dyn Network>, usize)> = vec![
        ("mlp 1024-4096-4096-1000, batch 512", Box::new(mlp), 512),
        ("resnet block 128 x 28 x 28, batch 64", Box::new(residual), 64),
        ("convnet, batch 256", Box::new(Convnet { dropout: 0.0, ..Convnet::default() }), 256),
        ("lstm 2 x 650, 20 words, batch 64", Box::new(lstm), 64),
    ];
    for (name, network, size) in all {
        let before = gpu.n_convolved();
        let learning = match Learning::begin(device, &*network, size) {
            Ok(learning) => learning,
            Err(why) => return report.wrong(name, &why),
        };
        let mut measure = |what: &str| match learning.step_ms(5).and_then(|_| learning.step_ms(50)) {
            Ok(ms) => report.add(format!("step of {name}"), ms, "ms", what),
            Err(why) => report.wrong(name, &why),
        };
        measure("fed from the host, loss fetched");
        if gpu.n_convolved() > before {
            gpu.let_library_convolve(false);
            measure("the same, convolutions by own kernels");
            gpu.let_library_convolve(true);
        }
    }
}

/// Reports to CUPTI which node of the graph gives work to the device.
struct Correlation(cupti::CuptiLibrary);

impl cuda::attribution::Listener for Correlation {
    fn begins(&self, node: u32) {
        // What it refuses has no node.
        let _ = self.0.push(u64::from(node));
    }

    fn ends(&self) {
        let _ = self.0.pop();
    }
}

/// Steps with their trace, CUDA's activity in it, in a folder for `stepscope view`.
fn trace(report: &mut Report, device: &Arc<Device>, folder: &Path) {
    let traced = || -> Result<(f64, f64, String), String> {
        let learning = Learning::begin(device, &Convnet { dropout: 0.0, ..Convnet::default() }, 256)?;
        learning.step_ms(5)?;
        let without = learning.step_ms(20)?;
        let session = events::start(folder, events::Options::default()).map_err(|e| e.to_string())?;
        let recorder = cupti::Recorder::find_and_start();
        if let Ok(library) = cupti::CuptiLibrary::find() {
            cuda::attribution::listen(Box::new(Correlation(library)));
        }
        let with = learning.step_ms(20);
        let note = match recorder {
            Ok(recorder) => format!("{:?}", recorder.stop()),
            Err(why) => format!("without CUDA's activity: {why}"),
        };
        drop(session);
        Ok((without, with?, note))
    };
    match traced() {
        Ok((without, with, note)) => {
            report.add("tracing a step of the convnet", (with / without - 1.0) * 100.0, "% more", note);
        }
        Err(why) => report.wrong("trace", &why),
    }
}

/// The same by PyTorch: lines of `what value unit`.
fn peer(report: &mut Report) {
    let script = include_str!("torch_peer.py");
    let python = std::env::var("STEPSCOPE_TORCH").unwrap_or_else(|_| "python3".to_owned());
    let Ok(done) = Command::new(&python).args(["-c", script]).output() else {
        return println!("skipped: no {python} to run PyTorch");
    };
    if !done.status.success() {
        let last = String::from_utf8_lossy(&done.stderr).lines().last().unwrap_or_default().to_owned();
        return println!("skipped: PyTorch ({last})");
    }
    for line in String::from_utf8_lossy(&done.stdout).lines() {
        let [what, value, unit] = line.split('|').collect::<Vec<_>>()[..] else { continue };
        let unit = if unit == "ms" { "ms" } else { "TFLOP/s" };
        report.add(format!("PyTorch: {what}"), value.parse().unwrap_or(f64::NAN), unit, "");
    }
}
