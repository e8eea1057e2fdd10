//! The meaning of known producers' spans for the analyses, beyond their category: two tables of names.
//!
//! The name of a span says more than its category, since frameworks mark the making of a step's input, and profilers
//! mark their work, with the same kind of span as any user's code.

use NamePattern::{Contains, ContainsBoth, Exact, HloOp, InCategory, StartsWith};
use trace_model::{Category, SiteInfo};

/// The meaning of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The step's input is made, fetched or waited for.
    Input,
    /// The profiler that recorded the trace works: no part of the program.
    Profiler,
}

/// A pattern of a span's name.
#[derive(Clone, Copy, Debug)]
enum NamePattern {
    /// The complete name.
    Exact(&'static str),
    StartsWith(&'static str),
    Contains(&'static str),
    /// A name that contains both parts, in this order.
    ContainsBoth(&'static str, &'static str),
    /// The op of an HLO instruction: `infeed`, `infeed.3`.
    HloOp(&'static str),
    /// The category, whatever the name.
    InCategory(&'static str),
}

impl NamePattern {
    fn matches(self, category: &str, name: &str) -> bool {
        match self {
            Exact(pattern) => name == pattern,
            StartsWith(prefix) => name.starts_with(prefix),
            Contains(part) => name.contains(part),
            ContainsBoth(a, b) => name.find(a).is_some_and(|at| name[at + a.len()..].contains(b)),
            HloOp(op) => {
                let rest = name.trim_start_matches('%').strip_prefix(op);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with(' '))
            }
            InCategory(pattern) => category == pattern,
        }
    }
}

/// Spans in which a step's input is made, with the producer and the source file that writes them.
const INPUT: &[NamePattern] = &[
    // PyTorch: _profile_name in torch/utils/data/dataloader.py, workers or none;
    // torch/utils/data/datapipes/_hook_iterator.py
    StartsWith("enumerate(DataLoader)"),
    StartsWith("enumerate(DataPipe)"),
    // PyTorch with_stack: FILE(LINE): FUNCTION; fetch, collate, pin_memory, worker
    ContainsBoth("torch/utils/data/", "__next__"),
    ContainsBoth("torch/utils/data/_utils/", ": "),
    // torchdata: StatefulDataLoader and nodes
    ContainsBoth("torchdata/", "__next__"),
    // NVIDIA DALI's iterators
    ContainsBoth("nvidia/dali/plugin/", "__next__"),
    // JAX's Python tracer: $FILE:LINE FUNCTION (grain and others)
    ContainsBoth("data_loader.py", "__next__"),
    ContainsBoth("dataloader.py", "__next__"),
    // Lightning: [_TrainingEpochLoop].train_dataloader_next, [_EvaluationLoop].val_next, [Strategy]NAME.batch_to_device
    // (the input's copy to the device)
    Contains("dataloader_next"),
    Contains(".val_next"),
    Contains(".batch_to_device"),
    // torchrec: train_pipeline; the first is the input's copy to the device
    StartsWith("## copy_batch_to_gpu"),
    StartsWith("## wait_for_batch"),
    StartsWith("## next_batch"),
    StartsWith("## load_batch"),
    // tf.data: IteratorGetNext[Sync|AsOptional][Op::DoCompute], one iterator for several devices, and the TraceMe of
    // each dataset (Iterator::Prefetch::Map)
    StartsWith("IteratorGetNext"),
    StartsWith("MultiDeviceIteratorGetNext"),
    StartsWith("Iterator::"),
    // TensorFlow on TPUs: InfeedEnqueue[Tuple]; XProf's HostInfeedEnqueue
    StartsWith("InfeedEnqueue"),
    // PjRt and StreamExecutor
    StartsWith("TransferToInfeed"),
    // XLA: the device waits for the host's next batch; XProf's kHloInfeed
    HloOp("infeed"),
];

/// Spans in which the profiler works, with the producer and the source file that writes them.
const PROFILER: &[NamePattern] = &[
    // JAX: jax/_src/profiler.py in the Python tracer
    ContainsBoth("profiler.py:", " start_trace"),
    ContainsBoth("profiler.py:", " stop_trace"),
    // TensorFlow: start and stop in profiler_v2.py
    ContainsBoth("profiler_v2.py:", " st"),
    // XLA: tsl/profiler/lib/profiler_session.cc
    StartsWith("ProfilerSession::"),
    // PyTorch: the cost of record_function itself
    StartsWith("profiler::_record_function"),
    // PyTorch with_stack: step, start_trace, stop_trace
    ContainsBoth("torch/profiler/profiler.py(", ": "),
    // Kineto: buffers that CUPTI flushes and asks for; kernels that CUPTI replayed to count, each with an equal share
    // of the time, whatever it took
    InCategory("overhead"),
    InCategory("cuda_profiler_range"),
    // CUDA
    Exact("cudaProfilerStart"),
    Exact("cudaProfilerStop"),
];

/// The meaning of a site's spans; `None` where no pattern matches.
pub(super) fn meaning(site: &SiteInfo) -> Option<Meaning> {
    use Category as C;
    if !matches!(site.category, C::Op | C::Python | C::Other | C::Kernel | C::Launch) {
        return None;
    }
    let is_in = |rows: &[NamePattern]| rows.iter().any(|row| row.matches(&site.category_name, &site.name));
    if is_in(INPUT) { Some(Meaning::Input) } else { is_in(PROFILER).then_some(Meaning::Profiler) }
}

/// Whether a span is the user's label of a part of the program, not a function, so that nested spans say what ran.
pub(super) fn is_label(site: &SiteInfo) -> bool {
    matches!(site.category_name.as_str(), "user_annotation" | "nvtx" | "NVTX" | "cpu_instant_event")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_known_producers() {
        for (category, name, want) in [
            ("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", Some(Meaning::Input)),
            ("op", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", Some(Meaning::Input)),
            ("python", "torch/utils/data/dataloader.py(633): __next__", Some(Meaning::Input)),
            ("python", "torch/utils/data/_utils/fetch.py(51): <listcomp>", Some(Meaning::Input)),
            ("python", "torch/utils/data/sampler.py(3): __len__", None),
            ("user_annotation", "[pl][profile][_TrainingEpochLoop].train_dataloader_next", Some(Meaning::Input)),
            ("user_annotation", "## copy_batch_to_gpu 3 ##", Some(Meaning::Input)),
            ("op", "IteratorGetNext", Some(Meaning::Input)),
            ("host", "IteratorGetNextOp::DoCompute", Some(Meaning::Input)),
            ("host", "Iterator::Prefetch::ParallelMapV2", Some(Meaning::Input)),
            ("host", "$data_loader.py:521 __next__", Some(Meaning::Input)),
            ("kernel", "infeed.2", Some(Meaning::Input)),
            ("kernel", "%infeed", Some(Meaning::Input)),
            ("kernel", "infeeding_kernel", None),
            ("host", "$profiler.py:226 stop_trace", Some(Meaning::Profiler)),
            ("python", "torch/profiler/profiler.py(719): step", Some(Meaning::Profiler)),
            ("overhead", "Activity Buffer Request", Some(Meaning::Profiler)),
            ("cuda_profiler_range", "void gemm<4>", Some(Meaning::Profiler)),
            ("user_annotation", "## forward ##", None),
            ("collective", "enumerate(DataLoader)", None),
        ] {
            assert_eq!(meaning(&SiteInfo::new(category, name)), want, "{category} {name}");
        }
    }
}
