//! What the spans of known producers mean for the analyses, beyond their category: a table, a row for each producer.
//!
//! A name says more than its category here, since frameworks mark the making of a step's input, and their profilers their own work,
//! with the same kind of span as any user's code.

use crate::store::{Category, SiteInfo};

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
enum Is {
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

impl Is {
    fn holds(self, category: &str, name: &str) -> bool {
        match self {
            Is::Name(all) => name == all,
            Is::Begins(begin) => name.starts_with(begin),
            Is::Has(part) => name.contains(part),
            Is::Both(a, b) => name.find(a).is_some_and(|at| name[at + a.len()..].contains(b)),
            Is::Hlo(op) => {
                let rest = name.trim_start_matches('%').strip_prefix(op);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with(' '))
            }
            Is::Category(of) => category == of,
        }
    }
}

/// Names, what they mean, and who writes them where.
const ROWS: &[(Is, Meaning, &str)] = &[
    (
        Is::Begins("enumerate(DataLoader)"),
        Meaning::Input,
        "PyTorch: _profile_name in torch/utils/data/dataloader.py; workers or none",
    ),
    (Is::Begins("enumerate(DataPipe)"), Meaning::Input, "PyTorch: torch/utils/data/datapipes/_hook_iterator.py"),
    (Is::Both("torch/utils/data/", "__next__"), Meaning::Input, "PyTorch with_stack: FILE(LINE): FUNCTION"),
    (
        Is::Both("torch/utils/data/_utils/", ": "),
        Meaning::Input,
        "PyTorch with_stack: fetch, collate, pin_memory, worker",
    ),
    (Is::Both("torchdata/", "__next__"), Meaning::Input, "torchdata: StatefulDataLoader and nodes"),
    (Is::Both("nvidia/dali/plugin/", "__next__"), Meaning::Input, "NVIDIA DALI's iterators"),
    (
        Is::Both("data_loader.py", "__next__"),
        Meaning::Input,
        "JAX's Python tracer: $FILE:LINE FUNCTION (grain and others)",
    ),
    (Is::Both("dataloader.py", "__next__"), Meaning::Input, "the same"),
    (Is::Has("dataloader_next"), Meaning::Input, "Lightning: [_TrainingEpochLoop].train_dataloader_next"),
    (Is::Has(".val_next"), Meaning::Input, "Lightning: [_EvaluationLoop].val_next"),
    (
        Is::Has(".batch_to_device"),
        Meaning::Input,
        "Lightning: [Strategy]NAME.batch_to_device, the input's copy to the device",
    ),
    (Is::Begins("## copy_batch_to_gpu"), Meaning::Input, "torchrec: train_pipeline, the input's copy to the device"),
    (Is::Begins("## wait_for_batch"), Meaning::Input, "torchrec: train_pipeline"),
    (Is::Begins("## next_batch"), Meaning::Input, "torchrec: train_pipeline"),
    (Is::Begins("## load_batch"), Meaning::Input, "torchrec: train_pipeline"),
    (Is::Begins("IteratorGetNext"), Meaning::Input, "tf.data: IteratorGetNext[Sync|AsOptional][Op::DoCompute]"),
    (Is::Begins("MultiDeviceIteratorGetNext"), Meaning::Input, "tf.data: one iterator for several devices"),
    (Is::Begins("Iterator::"), Meaning::Input, "tf.data: TraceMe of each dataset, Iterator::Prefetch::Map"),
    (
        Is::Begins("InfeedEnqueue"),
        Meaning::Input,
        "TensorFlow on TPUs: InfeedEnqueue[Tuple]; XProf's HostInfeedEnqueue",
    ),
    (Is::Begins("TransferToInfeed"), Meaning::Input, "PjRt and StreamExecutor"),
    (Is::Hlo("infeed"), Meaning::Input, "XLA: the device waits for the host's next batch; XProf's kHloInfeed"),
    (Is::Both("profiler.py:", " start_trace"), Meaning::Profiler, "JAX: jax/_src/profiler.py in the Python tracer"),
    (Is::Both("profiler.py:", " stop_trace"), Meaning::Profiler, "the same"),
    (Is::Both("profiler_v2.py:", " st"), Meaning::Profiler, "TensorFlow: start and stop in profiler_v2.py"),
    (Is::Begins("ProfilerSession::"), Meaning::Profiler, "XLA: tsl/profiler/lib/profiler_session.cc"),
    (Is::Begins("profiler::_record_function"), Meaning::Profiler, "PyTorch: what record_function itself costs"),
    (
        Is::Both("torch/profiler/profiler.py(", ": "),
        Meaning::Profiler,
        "PyTorch with_stack: step, start_trace, stop_trace",
    ),
    (Is::Category("overhead"), Meaning::Profiler, "Kineto: buffers that CUPTI flushes and asks for"),
    (
        Is::Category("cuda_profiler_range"),
        Meaning::Profiler,
        "Kineto: kernels that CUPTI replayed to count; each has an equal share of the time, whatever it took",
    ),
    (Is::Name("cudaProfilerStart"), Meaning::Profiler, "CUDA"),
    (Is::Name("cudaProfilerStop"), Meaning::Profiler, "CUDA"),
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
