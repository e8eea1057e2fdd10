//! The kinds of collectives: what their message is, and how bandwidths follow from it, by the definitions of nccl-tests
//! (doc/PERFORMANCE.md).

/// The kind of a collective or of a transfer between two ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CollectiveKind {
    /// Every rank gets the reduction of all ranks' values.
    AllReduce,
    /// Every rank gets the values of all ranks.
    AllGather,
    /// Every rank gets a part of the reduction.
    ReduceScatter,
    /// Every rank gets a part of each rank's values.
    AllToAll,
    /// Every rank gets the values of one.
    Broadcast,
    /// One rank gets the reduction.
    Reduce,
    /// One rank gets the values of all.
    Gather,
    /// Every rank gets a part of one rank's values.
    Scatter,
    /// Values leave for one other rank.
    Send,
    /// Values of one other rank arrive.
    Receive,
    /// Kernels that send and receive, of which the trace does not say more.
    SendReceive,
    /// All ranks wait for each other.
    Barrier,
    /// Anything else.
    Other,
}

/// Parts of names, without all that is no letter, in the order in which they are looked for.
const NAMES: &[(&str, CollectiveKind)] = &[
    ("barrier", CollectiveKind::Barrier),
    ("allreduce", CollectiveKind::AllReduce),
    ("reducescatter", CollectiveKind::ReduceScatter),
    ("allgather", CollectiveKind::AllGather),
    ("alltoall", CollectiveKind::AllToAll),
    ("broadcast", CollectiveKind::Broadcast),
    ("gather", CollectiveKind::Gather),
    ("scatter", CollectiveKind::Scatter),
    ("sendrecv", CollectiveKind::SendReceive),
    ("send", CollectiveKind::Send),
    ("recv", CollectiveKind::Receive),
    ("reduce", CollectiveKind::Reduce),
];

impl CollectiveKind {
    /// The kind by a framework's name (`_allgather_base`), or by a kernel's (`ncclDevKernel_AllGather_RING_LL(...)`).
    pub(super) fn from_name(name: &str) -> CollectiveKind {
        let name = name.split('(').next().unwrap_or(name);
        let letters: String = name.chars().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_lowercase()).collect();
        NAMES.iter().find(|(part, _)| letters.contains(part)).map_or(CollectiveKind::Other, |(_, kind)| *kind)
    }

    /// The name, as in `torch.distributed`: `all_reduce`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CollectiveKind::AllReduce => "all_reduce",
            CollectiveKind::AllGather => "all_gather",
            CollectiveKind::ReduceScatter => "reduce_scatter",
            CollectiveKind::AllToAll => "all_to_all",
            CollectiveKind::Broadcast => "broadcast",
            CollectiveKind::Reduce => "reduce",
            CollectiveKind::Gather => "gather",
            CollectiveKind::Scatter => "scatter",
            CollectiveKind::Send => "send",
            CollectiveKind::Receive => "recv",
            CollectiveKind::SendReceive => "send_recv",
            CollectiveKind::Barrier => "barrier",
            CollectiveKind::Other => "other",
        }
    }

    /// The bus bandwidth by the algorithm bandwidth, among `ranks` ranks; `None` where no definition is known.
    pub(crate) fn bus_factor(self, ranks: u32) -> Option<f64> {
        let n = f64::from(ranks.max(1));
        match self {
            CollectiveKind::AllReduce => Some(2.0 * (n - 1.0) / n),
            CollectiveKind::AllGather
            | CollectiveKind::ReduceScatter
            | CollectiveKind::AllToAll
            | CollectiveKind::Gather
            | CollectiveKind::Scatter => Some((n - 1.0) / n),
            CollectiveKind::Broadcast | CollectiveKind::Reduce | CollectiveKind::Send | CollectiveKind::Receive => {
                Some(1.0)
            }
            CollectiveKind::SendReceive | CollectiveKind::Barrier | CollectiveKind::Other => None,
        }
    }

    /// The number of elements that count as the message, by those of a rank's input and output; `None` where nothing is
    /// sent.
    pub(super) fn message_elements(self, input: u64, output: u64) -> Option<u64> {
        match self {
            CollectiveKind::AllGather => Some(output),
            // Only one rank has the whole of it.
            CollectiveKind::Gather | CollectiveKind::Scatter => Some(input.max(output)),
            CollectiveKind::Barrier => None,
            CollectiveKind::Receive => Some(output),
            _ => Some(input),
        }
    }

    /// Whether no rank can leave before the last one has come. Of a broadcast or reduction the ranks may leave one by
    /// one.
    pub(crate) fn synchronises(self) -> bool {
        !matches!(
            self,
            CollectiveKind::Broadcast
                | CollectiveKind::Reduce
                | CollectiveKind::Gather
                | CollectiveKind::Scatter
                | CollectiveKind::Send
                | CollectiveKind::Receive
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_frameworks_and_kernels_have_kinds() {
        for (name, kind) in [
            ("allreduce", CollectiveKind::AllReduce),
            ("allreduce_coalesced", CollectiveKind::AllReduce),
            ("_allgather_base", CollectiveKind::AllGather),
            ("all_gather_into_tensor_coalesced", CollectiveKind::AllGather),
            ("_reduce_scatter_base", CollectiveKind::ReduceScatter),
            ("all_to_allv", CollectiveKind::AllToAll),
            ("_broadcast_oop", CollectiveKind::Broadcast),
            ("_reduce_oop", CollectiveKind::Reduce),
            ("gather", CollectiveKind::Gather),
            ("scatter", CollectiveKind::Scatter),
            ("recv", CollectiveKind::Receive),
            ("all-reduce.3", CollectiveKind::AllReduce),
            (
                "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
                CollectiveKind::AllReduce,
            ),
            (
                "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                CollectiveKind::ReduceScatter,
            ),
            ("ncclDevKernel_Reduce_Sum_bf16_RING_LL(...)", CollectiveKind::Reduce),
            ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)", CollectiveKind::SendReceive),
            // RCCL's one kernel for all.
            ("ncclDevKernel_Generic(ncclDevComm*, unsigned long, ncclWork*)", CollectiveKind::Other),
        ] {
            assert_eq!(CollectiveKind::from_name(name), kind, "{name}");
        }
    }

    /// The tables of nccl-tests' PERFORMANCE.md, for eight ranks.
    #[test]
    fn bus_factors_are_those_of_nccl_tests() {
        assert_eq!(CollectiveKind::AllReduce.bus_factor(8), Some(1.75));
        assert_eq!(CollectiveKind::AllGather.bus_factor(8), Some(0.875));
        assert_eq!(CollectiveKind::ReduceScatter.bus_factor(8), Some(0.875));
        assert_eq!(CollectiveKind::AllToAll.bus_factor(8), Some(0.875));
        assert_eq!(CollectiveKind::Broadcast.bus_factor(8), Some(1.0));
        assert_eq!(CollectiveKind::Reduce.bus_factor(8), Some(1.0));
        assert_eq!(CollectiveKind::AllReduce.bus_factor(1), Some(0.0));
    }
}
