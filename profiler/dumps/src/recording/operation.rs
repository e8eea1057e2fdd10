//! What a profiling name says: the library, the operation and, for sends and receives, the ranks.

/// The operation of a profiling name: "all_reduce" of "nccl:all_reduce", "send" of "gloo:send 0->1".
pub(super) fn operation(profiling_name: &str) -> &str {
    // The name of a library may have a colon, that of an operation has none.
    let name = profiling_name.rsplit_once(':').map_or(profiling_name, |(_, name)| name);
    name.split(' ').next().unwrap_or(name)
}

/// A send or a receive, with numbers of ranks within the process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transfer {
    /// To a rank.
    Send(usize),
    /// From a rank; from any one where there is none.
    Receive(Option<usize>),
}

/// The send or receive of a profiling name: "nccl:send 0->1" is from 0 to 1, "nccl:recv 1<-0" too, "gloo:recv 1<-?" from any.
pub(super) fn transfer(profiling_name: &str) -> Option<Transfer> {
    let (_, ranks) = profiling_name.rsplit_once(' ')?;
    match operation(profiling_name) {
        "send" => ranks.split_once("->")?.1.parse().ok().map(Transfer::Send),
        "recv" => match ranks.split_once("<-")?.1 {
            "?" => Some(Transfer::Receive(None)),
            source => source.parse().ok().map(|source| Transfer::Receive(Some(source))),
        },
        _ => None,
    }
}

/// Operations in which each rank may send and receive another number of elements: only their sums must agree.
pub(super) fn is_uneven(operation: &str) -> bool {
    matches!(operation, "all_to_all" | "all_to_all_single")
}

#[test]
fn operations_of_names() {
    let names = ["nccl:all_reduce", "a:b:barrier", "gloo:send 0->1", "broadcast", ""];
    assert_eq!(names.map(operation), ["all_reduce", "barrier", "send", "broadcast", ""]);
}

#[test]
fn transfers_of_names() {
    let names = ["nccl:send 0->12", "nccl:recv 1<-0", "gloo:recv 3<-?", "nccl:send", "nccl:all_reduce", "nccl:send x"];
    let expected =
        [Some(Transfer::Send(12)), Some(Transfer::Receive(Some(0))), Some(Transfer::Receive(None)), None, None, None];
    assert_eq!(names.map(transfer), expected);
}
