//! What findings say that a change saves, compared with what the change saved on the machine: training steps recorded on
//! an H200 with one thing planted that holds them up, whose time with and without it was measured without the profiler
//! (`tests/data/h200/record/pairs.py` and `comm.py`).

#![allow(clippy::unwrap_used, reason = "helpers of a test")]

use std::path::PathBuf;
use trace_analysis::findings::Finding;
use trace_analysis::report::analyse;
use trace_store::{Store, StoreOptions};

/// What is planted, the title of its finding and a part of the text, and how much of the predicted saving the planted
/// change is: a finding about a slow kernel predicts what half of its time is worth.
const PLANTED: &[(&str, &str, &str, f64)] = &[
    ("host", "host code", "`tokenize`", 1.0),
    ("log", "host code", "`log`", 1.0),
    ("input", "input", "DataLoader", 1.0),
    ("copy", "copies", "Pageable", 1.0),
    ("device_to_host", "copies", "Pageable", 1.0),
    ("kernel", "slow kernel", "in 8 executions", 2.0),
    ("launches", "launches", "captured graph", 1.0),
    ("item", "synchronisation", "synchronisation calls", 1.0),
    ("sync", "synchronisation", "synchronisation calls", 1.0),
    ("empty_cache", "memory", "memory to be allocated", 1.0),
    ("capture", "launches", "captured graph", 1.0),
    ("collectives", "exposed communication", "communication", 1.0),
];

fn data(name: &str) -> PathBuf {
    format!("{}/../../tests/data/h200/{name}", env!("CARGO_MANIFEST_DIR")).into()
}

fn measured_share(name: &str) -> f64 {
    let read = |file: &str| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(data(file)).unwrap()).unwrap()
    };
    let all = if name == "collectives" { read("planted_collectives.json") } else { read("planted.json")[name].clone() };
    let mean = |key: &str| all[key].as_array().unwrap().iter().map(|ms| ms.as_f64().unwrap()).sum::<f64>() / 2.0;
    1.0 - mean("without_ms") / mean("with_ms")
}

fn findings(name: &str) -> Vec<Finding> {
    let file = if name == "collectives" { "collectives_rank0" } else { name };
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    let file = data(&format!("planted_{file}.trace.json.gz"));
    trace_formats::import::open(&[file]).unwrap().read_all(&mut store).unwrap();
    analyse(&store, store.range()).findings
}

#[test]
fn changes_save_what_their_findings_say() {
    let docs = std::fs::read_to_string(data("../../../docs/use/analysis.md")).unwrap();
    let (mut n_near, mut table) = (0, String::new());
    for (name, title, part, times) in PLANTED {
        let all = findings(name);
        let rank = all.iter().position(|f| f.title == *title && f.text.contains(part));
        let rank = rank.unwrap_or_else(|| panic!("{name}: no {title} with {part:?} in {all:#?}"));
        assert!(rank < 2, "{name}: {title} is finding {rank} of {all:#?}");
        let (predicted, measured) = (all[rank].share * times, measured_share(name));
        n_near += usize::from((predicted / measured - 1.0).abs() <= 0.2);
        table += &format!("| `{name}` | {title} | {:.0} % | {:.0} % |\n", predicted * 100.0, measured * 100.0);
    }
    println!("{table}");
    assert!(n_near >= 11, "{n_near} within 20 %:\n{table}");
    assert!(docs.contains(&table), "docs/use/analysis.md lacks\n{table}");
}
