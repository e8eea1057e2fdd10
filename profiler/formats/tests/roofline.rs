//! Rooflines of a TPU's trace compared with those of XProf.

// Clippy's exceptions for tests do not reach the helpers of an integration test.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use trace_analysis::ops::op_table;
use trace_analysis::roofline::{Bound, rooflines};
use trace_store::{Store, StoreOptions};

fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

/// `tests/fixtures/make_fixtures.py`.
#[test]
fn rooflines_are_those_of_xprof() {
    let fixture = |end: &str| format!("{}/tests/fixtures/roofline.xplane.pb{end}", env!("CARGO_MANIFEST_DIR"));
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    trace_formats::import::open(&[fixture("").into()]).unwrap().read_all(&mut store).unwrap();
    let (counted, ops) = op_table(&store, store.range(), &[]);
    let found = rooflines(&store, &store.range(), &counted, &ops);
    assert_eq!(found.len(), 1);
    let (line, roof) = (&found[0], found[0].roof);
    assert_eq!((line.device.as_str(), roof.flops_per_s, roof.bytes_per_s), ("TPU:0", Some(197e12), Some(819e9)));
    let expected: Value = serde_json::from_str(&std::fs::read_to_string(fixture(".expected.json")).unwrap()).unwrap();
    let near = |ours: f64, theirs: &Value, what: &str| {
        let theirs = number(theirs).unwrap();
        assert!((ours - theirs).abs() <= 2e-5 * theirs.abs(), "{what}: {ours} instead of {theirs}");
    };
    near(roof.ridge().unwrap(), &expected["ridge"], "ridge");
    let rows = expected["rows"].as_array().unwrap();
    assert_eq!(rows.len(), line.rows.len() + 1);
    for expected in rows {
        let name = expected["operation"].as_str().unwrap();
        if name == "Program" {
            // Its time is the step's.
            let flops =
                number(&expected["measured_flop_rate"]).unwrap() * number(&expected["total_time"]).unwrap() * 1e3;
            near(line.total.flops, &flops.into(), "all operations");
            continue;
        }
        let row = line.rows.iter().find(|row| row.name == name).unwrap();
        let bound = if roof.bound(&row.work) == Some(Bound::Compute) { "Compute" } else { "HBM" };
        assert_eq!(
            (row.count as f64, bound),
            (expected["occurrences"].as_f64().unwrap(), expected["bound_by"].as_str().unwrap())
        );
        near(row.work.ns as f64 / 1e3, &expected["total_time"], name);
        near(row.work.flops_per_s() / 1e9, &expected["measured_flop_rate"], name);
        near(row.work.bytes_per_s() / f64::from(1 << 30), &expected["hbm_bw"], name);
        near(row.work.intensity().unwrap(), &expected["hbm_operational_intensity"], name);
        near(roof.share(&row.work).unwrap(), &expected["roofline_efficiency"], name);
    }
}
