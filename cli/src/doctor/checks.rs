//! The checks. Each check tries the facility itself.

use std::fs;

use trace_record::count::CounterSet;

use super::check::{Check, State};
use crate::dynamic_library::can_load;

/// Every check, in the order of the report.
pub fn all() -> Vec<Check> {
    vec![
        cores(),
        clock(),
        tracefs(),
        perf_events(),
        samples(),
        counters(),
        window(),
        gl(),
        cuda(),
        gpus(),
        gpu_library("cuBLASLt", "matrix products on GPUs, where our own kernels do without", "nvidia-cublas"),
        gpu_library("cuDNN", "convolutions on GPUs, where our own kernels do without", "nvidia-cudnn-cu13"),
        cupti(),
        injection(),
    ]
}

fn cores() -> Check {
    let n = std::thread::available_parallelism().map_or(1, usize::from);
    let simd = if cfg!(target_arch = "x86_64") { x86_level() } else { std::env::consts::ARCH };
    Check { name: "cores", state: State::Ok, seen: format!("{n}, {simd}"), used_for: "training", remedy: None }
}

#[cfg(target_arch = "x86_64")]
fn x86_level() -> &'static str {
    match () {
        () if is_x86_feature_detected!("avx512f") => "AVX-512",
        () if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") => "AVX2",
        () => "SSE2",
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn x86_level() -> &'static str {
    std::env::consts::ARCH
}

fn clock() -> Check {
    const READS: i64 = 100_000;
    let source = events::clock::source();
    let start = events::clock::mono_now();
    for _ in 0..READS {
        std::hint::black_box(events::clock::now());
    }
    let ns_per_read = (events::clock::mono_now() - start) as f64 / READS as f64;
    let is_invariant = source == events::clock::Source::Counter;
    let name = if is_invariant { "invariant time-stamp counter" } else { "CLOCK_MONOTONIC_RAW" };
    Check {
        name: "clock",
        state: if is_invariant { State::Ok } else { State::Limited },
        seen: format!("{name}, {ns_per_read:.1} ns per read"),
        used_for: "cheap time stamps",
        remedy: (!is_invariant).then(|| "the processor's time-stamp counter is not invariant here (or hidden by the virtual machine); CLOCK_MONOTONIC_RAW is used, which costs a few times more per event".into()),
    }
}

const PERF_REMEDY: &str = "as root: sysctl kernel.perf_event_paranoid=1, or run with CAP_PERFMON";

fn refused(error: &std::io::Error) -> String {
    let paranoid =
        fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").map_or_else(|_| "?".into(), |s| s.trim().to_owned());
    format!("perf_event_open: {error} (perf_event_paranoid is {paranoid})")
}

fn perf_events() -> Check {
    use perf_event::Builder;
    use perf_event::events::Software;
    let opened = Builder::new(Software::DUMMY).context_switch(true).build();
    let found = opened.map(|_| "context switches".to_owned()).map_err(|error| (refused(&error), PERF_REMEDY.into()));
    Check::from_result("perf events", "scheduling of a command", found)
}

fn samples() -> Check {
    use perf_event::events::Software;
    use perf_event::{Builder, SampleFlag};
    let opens = |with_kernel: bool| {
        let mut builder = Builder::new(Software::CPU_CLOCK);
        builder.sample_frequency(1_000).sample(SampleFlag::CALLCHAIN).exclude_kernel(!with_kernel).enabled(false);
        builder.build()
    };
    let (state, seen, remedy) = match (opens(true), opens(false)) {
        (Ok(_), _) => (State::Ok, "call stacks, the kernel's part included".to_owned(), None),
        (Err(_), Ok(_)) => {
            (State::Limited, "call stacks without the kernel's part".to_owned(), Some(PERF_REMEDY.into()))
        }
        (_, Err(error)) => (State::Missing, refused(&error), Some(PERF_REMEDY.into())),
    };
    Check { name: "samples", state, seen, used_for: "record --sample", remedy }
}

/// The counters of threads that the system offers.
fn counters() -> Check {
    let (state, seen, remedy) = match trace_record::count::available(CounterSet::default_counters()) {
        Ok((counted, missing)) => {
            let remedies: Vec<String> = missing.iter().map(|(names, how)| format!("{names}: {how}")).collect();
            let state = if missing.is_empty() { State::Ok } else { State::Limited };
            (state, counted.names().collect::<Vec<_>>().join(", "), (!missing.is_empty()).then(|| remedies.join("; ")))
        }
        Err(how) => (State::Missing, "not granted".to_owned(), Some(how)),
    };
    Check {
        name: "hardware counters",
        state,
        seen,
        used_for: "record --counters: what each thread and op cost",
        remedy,
    }
}

fn tracefs() -> Check {
    let (state, seen, remedy) = match trace_record::watch::tracefs_clocks() {
        Ok(clocks) if clocks.contains("x86-tsc") => {
            (State::Ok, "readable, trace_clock x86-tsc offered".to_owned(), None)
        }
        Ok(_) => (State::Limited, "readable, no trace_clock x86-tsc (mono_raw is used)".to_owned(), None),
        Err(error) => (State::Missing, error.to_string(), Some("run as root, on a kernel with CONFIG_FTRACE".into())),
    };
    Check { name: "tracefs", state, seen, used_for: "scheduler events of the whole machine", remedy }
}

fn window() -> Check {
    let missing = crate::display::unavailable_reason();
    let remedy = "log in to a desktop, use ssh -X, or run with --headless";
    let found = missing.map_or_else(|| Ok("found".to_owned()), |why| Err((why.to_owned(), remedy.to_owned())));
    Check::from_result("display", "the window", found)
}

fn gl() -> Check {
    let found = ["libEGL.so.1", "libGL.so.1", "libGLX.so.0"].into_iter().find(|name| can_load(name));
    library("OpenGL", found, "the window", "as root on Debian: apt-get install libegl1 libgl1 libgl1-mesa-dri")
}

fn cuda() -> Check {
    let found = ["libcuda.so.1", "libcuda.so"].into_iter().find(|name| can_load(name));
    let remedy = "install NVIDIA's driver; only GPU devices need it";
    library("CUDA driver", found, "GPU devices", remedy)
}

/// Whether the engine can compute on a GPU, and why not.
fn gpus() -> Check {
    let problem = cuda::device::problem().map(|problem| ("none".to_owned(), problem));
    let found = problem.map_or_else(|| Ok(text::count_of(cuda::device::count() as u64, "device")), Err);
    Check::from_result("GPU", "devices of type GPU", found)
}

/// Whether a library for faster kernels on GPUs is found.
fn gpu_library(name: &'static str, used_for: &'static str, package: &str) -> Check {
    let libraries = cuda::driver::optional();
    let library = libraries.into_iter().find(|library| library.name == name);
    let found = library.map_or_else(|| Err("not checked".to_owned()), |library| library.found);
    let remedy = format!("pip install {package}, then STEPSCOPE_CUDA_LIBRARIES=its lib folder");
    Check::from_result(name, used_for, found.map_err(|why| (why, remedy)))
}

fn cupti() -> Check {
    let seen = cupti::CuptiLibrary::find().map_err(cupti::Unavailable::NoLibrary);
    let version = seen.and_then(|library| cupti::probe(&library));
    let found = version.map(|version| format!("version {version} answers"));
    let found = found.map_err(|why| ("not usable".to_owned(), why.to_string()));
    Check::from_result("CUPTI", "CUDA streams, calls and NVTX ranges in traces", found)
}

fn injection() -> Check {
    let library = crate::record::cuda::find_library().map(|path| path.display().to_string());
    let found = library.ok_or_else(|| ("not found".to_owned(), crate::record::cuda::remedy()));
    Check::from_result("CUDA injection", "CUDA in the programs that 'record' starts", found)
}

fn library(name: &'static str, found: Option<&str>, used_for: &'static str, remedy: &str) -> Check {
    let found = found.map(|library| format!("{library} loads"));
    Check::from_result(name, used_for, found.ok_or_else(|| ("library not found".to_owned(), remedy.to_owned())))
}
