//! What a profiling name says: the library, the operation and, for sends and receives, the ranks.

/// The operation of a profiling name: "all_reduce" of "nccl:all_reduce", "send" of "gloo:send 0->1".
pub(super) fn operation(profiling_name: &str) -> &str {
    // The name of a library may have a colon, that of an operation has none.
    let name = profiling_name.rsplit_once(':').map_or(profiling_name, |(_, name)| name);
    name.split(' ').next().unwrap_or(name)
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
