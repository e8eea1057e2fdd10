//! Planted jobs, whose waits and stragglers are known.

use super::{Communication, RankRow};
use crate::report::{Analysis, analyse};
use trace_store::{Store, testkit};

fn analysis(text: &str) -> (Store, Analysis) {
    let store = testkit::store(text);
    let found = analyse(&store, store.range());
    (store, found)
}

/// What PyTorch says of an all-reduce of 1 KiB in a group of ranks.
fn says(group: u32, ranks: &str) -> String {
    format!(
        r#"says {{"Collective~name":"allreduce","In~msg~nelems":256,"Out~msg~nelems":256,"dtype":"Float","Group~size":2,"Process~Group~Name":"{group}","Process~Group~Ranks":"{ranks}"}}"#
    )
}

/// A rank's step: a launch of a kernel after `sleep` ns without slices, then of a collective that ends at `end`.
fn step(rank: u32, n: i64, begin: i64, sleep: i64, end: i64) -> String {
    let (at, kernel, reduce) = (begin + 1_000 + sleep, 2 * n + 1, 2 * n + 2);
    format!(
        "{rank}.main python: prepare {begin}..{}
         {rank}.main launch: cudaLaunchKernel {at}..{} c {kernel}
         {rank}.main launch: cudaLaunchKernel {}..{} c {reduce}
         {rank}.gpu7 kernel: gemm {}..{} c {kernel}
         {rank}.gpu7 collective: ncclAllReduce {}..{end} c {reduce}\n",
        begin + 1_000,
        at + 1_000,
        at + 2_000,
        at + 3_000,
        at + 2_000,
        at + 102_000,
        at + 103_000,
    )
}

fn rank(store: &Store, communication: &Communication, pid: u32) -> RankRow {
    let is_of_pid = |row: &&RankRow| store.processes()[row.process as usize].pid == pid;
    communication.ranks.iter().find(is_of_pid).unwrap().clone()
}

#[test]
fn ranks_are_late_by_the_measure_of_the_one_in_the_middle() {
    // Of five ranks the fourth sleeps 2 ms before each step, the second 500 us.
    let mut text = String::new();
    for n in 0..6_i64 {
        for pid in 1..=5 {
            let sleep = match pid {
                4 => 2_000_000,
                2 => 500_000,
                _ => 0,
            };
            text += &step(pid, n, n * 10_000_000, sleep, n * 10_000_000 + 4_000_000);
        }
    }
    let (store, found) = analysis(&text);
    let communication = &found.communication;
    let late = |pid| {
        let row = rank(&store, communication, pid);
        (row.exchanges, row.times_last, row.late_ns, row.own_late_ns, row.waiting_ns)
    };
    assert_eq!(late(4), (6, 6, 12_000_000, 12_000_000, 0));
    assert_eq!(late(2), (6, 0, 3_000_000, 3_000_000, 9_000_000));
    assert_eq!(late(5), (6, 0, 0, 0, 12_000_000));
    assert_eq!(rank(&store, communication, 4).waited_ns, 3 * 12_000_000 + 9_000_000);
    for (pid, ns) in [(4, 10_000_000), (2, 2_500_000)] {
        let row = rank(&store, communication, pid);
        assert_eq!(row.reasons[0].text, "code without slices after `prepare`", "{row:?}");
        // The first collective has none before it, from which the ways could be compared.
        assert!(row.reasons[0].ns - row.reasons[0].other_ns >= ns, "{row:?}");
        assert_eq!(row.unlike_others[0].text, "code without slices after `prepare`");
    }
    assert!(rank(&store, communication, 1).unlike_others.is_empty());
    let finding = found.findings.iter().find(|finding| finding.title == "straggler").unwrap();
    assert_eq!(finding.saves_ns, 12_000_000);
    assert!(finding.text.contains("in code without slices after `prepare`"), "{}", finding.text);
}

#[test]
fn a_delay_that_came_with_the_collective_before_is_nobodys_own() {
    // The second rank's device leaves the first collective 1 ms later, and so comes 1 ms later to the next one.
    let (store, found) = analysis(
        "1.gpu7 collective: ncclAllReduce 0..5000000 c 2
         2.gpu7 collective: ncclAllReduce 0..6000000 c 2
         1.gpu7 collective: ncclAllReduce 5010000..9000000 c 4
         2.gpu7 collective: ncclAllReduce 6010000..9000000 c 4",
    );
    let row = rank(&store, &found.communication, 2);
    assert_eq!((row.late_ns, row.own_late_ns, row.waited_ns), (1_000_000, 0, 1_000_000));
    assert!(row.reasons[0].text.starts_with("the end of the collective before"), "{row:?}");
    assert!(found.findings.iter().all(|finding| finding.title != "straggler"));
}

#[test]
fn groups_of_ranks_do_not_wait_for_each_other() {
    // Two groups of two: 1 and 2, 3 and 4, of kernels with one name. The second group is 3 ms later than the first.
    let mut text = String::new();
    for (pid, start, group, ranks) in
        [(1, 0, 1, "[0,1]"), (2, 200_000, 1, "[0,1]"), (3, 3_000_000, 2, "[2,3]"), (4, 3_100_000, 2, "[2,3]")]
    {
        let end = if group == 1 { 5_000_000 } else { 6_000_000 };
        text += &format!("{pid}.gpu7 collective: ncclAllReduce {start}..{end} {}\n", says(group, ranks));
    }
    let (store, found) = analysis(&text);
    let waits: Vec<i64> = (1..=4).map(|pid| rank(&store, &found.communication, pid).waiting_ns).collect();
    assert_eq!(waits, [200_000, 0, 100_000, 0]);
    assert_eq!(found.communication.exchanges.len(), 2);
    let rows = &found.communication.collectives;
    assert_eq!(
        rows.iter().map(|row| (row.bytes, row.count, row.exchanges)).collect::<Vec<_>>(),
        [(Some(1_024), 2, 1); 2]
    );
    // The shortest execution of each, and 2 (n-1) / n of two ranks.
    assert_eq!(rows[0].algorithm_bytes_per_s, Some(1_024.0 * 1e9 / 4_800_000.0));
    assert_eq!(rows[0].bus_bytes_per_s, rows[0].algorithm_bytes_per_s);
    // Nobody of the first group is a straggler for the second.
    assert_eq!(found.stragglers.collectives.iter().map(|late| late.late_ns).collect::<Vec<_>>(), [200_000, 100_000]);
}

#[test]
fn exposed_time_is_without_compute_of_the_same_device() {
    let (_, found) = analysis(
        "1.gpu7 collective: ncclAllReduce 0..1000
         1.gpu9 kernel: gemm 100..300
         1.gpu11 kernel: gemm 200..400
         2.gpu7 collective: ncclAllReduce 0..1000
         2.gpu9 kernel: gemm 900..2000",
    );
    let row = &found.communication.collectives[0];
    assert_eq!((row.total_ns, row.exposed_ns), (2_000, 700 + 900));
    let ranks: Vec<(i64, i64)> =
        found.communication.ranks.iter().map(|row| (row.exposed_ns, row.overlapped_ns)).collect();
    assert_eq!(ranks, [(700, 300), (900, 100)]);
}

#[test]
fn transfers_of_ranks_that_are_not_known_are_no_exchange() {
    let peer = |name: &str, key: &str, rank: u32| {
        format!(
            r#"says {{"Collective~name":"{name}","In~msg~nelems":4,"Out~msg~nelems":4,"dtype":"Half","Process~Group~Name":"0","Process~Group~Ranks":"[0,1]","{key}~Rank":{rank}}}"#
        )
    };
    let text = format!(
        "1.gpu7 collective: ncclSendRecv 500..900 {}
         2.gpu7 collective: ncclSendRecv 100..950 {}",
        peer("send", "Dst", 1),
        peer("recv", "Src", 0),
    );
    // The ranks of the job are those of files; without them nothing says who sent.
    let (_, found) = analysis(&text);
    assert!(found.communication.exchanges.is_empty());
    let names: Vec<(&str, Option<u64>)> =
        found.communication.collectives.iter().map(|row| (row.name.as_str(), row.bytes)).collect();
    assert_eq!(names, [("recv", Some(8)), ("send", Some(8))]);
}
