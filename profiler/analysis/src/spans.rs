//! What the spans of known producers mean for the analyses, beyond their category: a table, a row for each producer.
//!
//! A name says more than its category here, since frameworks mark the making of a step's input, and their profilers their own work,
//! with the same kind of span as any user's code.

use trace_model::{Category, SiteInfo};

/// What a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The step's input is made, fetched or waited for.
    Input,
    /// The profiler that recorded the trace works: no part of the program.
    Profiler,
}

/// How a row knows a name.
#[derive(Clone, Copy, Debug)]
enum NamePattern {
    /// The whole name.
    Name(&'static str),
    /// The name's beginning.
    Begins(&'static str),
    /// A part of the name.
    Has(&'static str),
    /// Both parts, in this order.
    Both(&'static str, &'static str),
    /// The op of an HLO instruction: `infeed`, `infeed.3`.
    Hlo(&'static str),
    /// The category, whatever the name.
    Category(&'static str),
}

impl NamePattern {
    fn holds(self, category: &str, name: &str) -> bool {
        match self {
            NamePattern::Name(all) => name == all,
            NamePattern::Begins(begin) => name.starts_with(begin),
            NamePattern::Has(part) => name.contains(part),
            NamePattern::Both(a, b) => name.find(a).is_some_and(|at| name[at + a.len()..].contains(b)),
            NamePattern::Hlo(op) => {
                let rest = name.trim_start_matches('%').strip_prefix(op);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with(' '))
            }
            NamePattern::Category(of) => category == of,
        }
    }
}

/// Names, what they mean, and who writes them where.
const ROWS: &[(NamePattern, Meaning, &str)] = &[
    (
        NamePattern::Begins("enumerate(DataLoader)"),
        Meaning::Input,
        "PyTorch: _profile_name in torch/utils/data/dataloader.py; workers or none",
    ),
    (
        NamePattern::Begins("enumerate(DataPipe)"),
        Meaning::Input,
        "PyTorch: torch/utils/data/datapipes/_hook_iterator.py",
    ),
    (NamePattern::Both("torch/utils/data/", "__next__"), Meaning::Input, "PyTorch with_stack: FILE(LINE): FUNCTION"),
    (
        NamePattern::Both("torch/utils/data/_utils/", ": "),
        Meaning::Input,
        "PyTorch with_stack: fetch, collate, pin_memory, worker",
    ),
    (NamePattern::Both("torchdata/", "__next__"), Meaning::Input, "torchdata: StatefulDataLoader and nodes"),
    (NamePattern::Both("nvidia/dali/plugin/", "__next__"), Meaning::Input, "NVIDIA DALI's iterators"),
    (
        NamePattern::Both("data_loader.py", "__next__"),
        Meaning::Input,
        "JAX's Python tracer: $FILE:LINE FUNCTION (grain and others)",
    ),
    (NamePattern::Both("dataloader.py", "__next__"), Meaning::Input, "the same"),
    (NamePattern::Has("dataloader_next"), Meaning::Input, "Lightning: [_TrainingEpochLoop].train_dataloader_next"),
    (NamePattern::Has(".val_next"), Meaning::Input, "Lightning: [_EvaluationLoop].val_next"),
    (
        NamePattern::Has(".batch_to_device"),
        Meaning::Input,
        "Lightning: [Strategy]NAME.batch_to_device, the input's copy to the device",
    ),
    (
        NamePattern::Begins("## copy_batch_to_gpu"),
        Meaning::Input,
        "torchrec: train_pipeline, the input's copy to the device",
    ),
    (NamePattern::Begins("## wait_for_batch"), Meaning::Input, "torchrec: train_pipeline"),
    (NamePattern::Begins("## next_batch"), Meaning::Input, "torchrec: train_pipeline"),
    (NamePattern::Begins("## load_batch"), Meaning::Input, "torchrec: train_pipeline"),
    (
        NamePattern::Begins("IteratorGetNext"),
        Meaning::Input,
        "tf.data: IteratorGetNext[Sync|AsOptional][Op::DoCompute]",
    ),
    (NamePattern::Begins("MultiDeviceIteratorGetNext"), Meaning::Input, "tf.data: one iterator for several devices"),
    (NamePattern::Begins("Iterator::"), Meaning::Input, "tf.data: TraceMe of each dataset, Iterator::Prefetch::Map"),
    (
        NamePattern::Begins("InfeedEnqueue"),
        Meaning::Input,
        "TensorFlow on TPUs: InfeedEnqueue[Tuple]; XProf's HostInfeedEnqueue",
    ),
    (NamePattern::Begins("TransferToInfeed"), Meaning::Input, "PjRt and StreamExecutor"),
    (NamePattern::Hlo("infeed"), Meaning::Input, "XLA: the device waits for the host's next batch; XProf's kHloInfeed"),
    (
        NamePattern::Both("profiler.py:", " start_trace"),
        Meaning::Profiler,
        "JAX: jax/_src/profiler.py in the Python tracer",
    ),
    (NamePattern::Both("profiler.py:", " stop_trace"), Meaning::Profiler, "the same"),
    (NamePattern::Both("profiler_v2.py:", " st"), Meaning::Profiler, "TensorFlow: start and stop in profiler_v2.py"),
    (NamePattern::Begins("ProfilerSession::"), Meaning::Profiler, "XLA: tsl/profiler/lib/profiler_session.cc"),
    (
        NamePattern::Begins("profiler::_record_function"),
        Meaning::Profiler,
        "PyTorch: what record_function itself costs",
    ),
    (
        NamePattern::Both("torch/profiler/profiler.py(", ": "),
        Meaning::Profiler,
        "PyTorch with_stack: step, start_trace, stop_trace",
    ),
    (NamePattern::Category("overhead"), Meaning::Profiler, "Kineto: buffers that CUPTI flushes and asks for"),
    (
        NamePattern::Category("cuda_profiler_range"),
        Meaning::Profiler,
        "Kineto: kernels that CUPTI replayed to count; each has an equal share of the time, whatever it took",
    ),
    (NamePattern::Name("cudaProfilerStart"), Meaning::Profiler, "CUDA"),
    (NamePattern::Name("cudaProfilerStop"), Meaning::Profiler, "CUDA"),
];

/// What a site's spans mean, where a row knows it.
pub(super) fn meaning(site: &SiteInfo) -> Option<Meaning> {
    use Category as C;
    if !matches!(site.category, C::Op | C::Python | C::Other | C::Kernel | C::Launch) {
        return None;
    }
    let row = ROWS.iter().find(|(is, ..)| is.holds(&site.category_name, &site.name));
    row.map(|(_, meaning, _)| *meaning)
}

/// Whether a span is the user's label of a part of the program, not a function: what it holds says what ran.
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
