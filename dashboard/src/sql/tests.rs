//! The panel through the accessibility tree, on an engine that knows one table. (`cli` has the test of the real one.)

use super::{
    SqlView,
    engine::{Engine, RowSet, Table, Tables},
};
use crate::{
    Data, View,
    data::{SourceInfo, SourceKind, Status},
    panel_test::{Panel, panel, wait_for},
    timeline::testing::demo,
};
use egui_kittest::kittest::Queryable as _;
use parking_lot::{Condvar, Mutex};
use std::{path::Path, sync::Arc, time::Duration};

/// `slices` of two rows; `forever` waits until it is cancelled.
#[derive(Clone, Default)]
struct Small {
    is_cancelled: Arc<(Mutex<bool>, Condvar)>,
}

impl Engine for Small {
    fn open(&self, path: &Path) -> Result<Box<dyn Tables>, String> {
        match path.ends_with("demo") {
            true => Ok(Box::new(self.clone())),
            false => Err(format!("{}: no trace", path.display())),
        }
    }
}

impl Tables for Small {
    fn list(&self) -> Vec<Table> {
        let columns = vec![["ts_ns", "bigint", "ns"].map(str::to_owned), ["name", "varchar", ""].map(str::to_owned)];
        vec![Table { name: "slices".into(), about: "what ran".into(), columns }]
    }

    fn query(&self, sql: &str, max_rows: usize) -> Result<RowSet, String> {
        if sql.contains("forever") {
            let (flag, changed) = &*self.is_cancelled;
            let mut flag = flag.lock();
            while !*flag {
                changed.wait(&mut flag);
            }
            return Err("cancelled".to_owned());
        }
        if !sql.contains("from slices") {
            return Err("no such table".to_owned());
        }
        let rows = [["2000", "MatMul"], ["10000", "Add"]];
        Ok(RowSet {
            columns: vec!["ts_ns".into(), "name".into()],
            are_numbers: vec![true, false],
            rows: rows.iter().take(max_rows).map(|row| row.map(str::to_owned).to_vec()).collect(),
            has_more: false,
        })
    }

    fn canceller(&self) -> Arc<dyn Fn() + Send + Sync> {
        let shared = self.is_cancelled.clone();
        Arc::new(move || {
            *shared.0.lock() = true;
            shared.1.notify_all();
        })
    }

    fn take_warnings(&self) -> Vec<String> {
        vec!["chunks-1.bin: 3 records are damaged".to_owned()]
    }
}

fn harness(engine: Option<Arc<dyn Engine>>, names: &[&str]) -> Panel<SqlView> {
    let mut data = Data::default().with_trace("demo", demo(3));
    for name in names {
        let source = SourceInfo::new(SourceKind::Trace, Arc::from(*name), Path::new(name));
        data.sources.push(SourceInfo { status: Status::Finished, ..source });
    }
    panel(SqlView::new(engine), data, [1300.0, 700.0])
}

#[test]
fn a_query_is_asked_and_its_rows_lead_to_the_timeline() {
    let mut harness = harness(Some(Arc::new(Small::default())), &["demo"]);
    wait_for(&mut harness, "slices");
    harness.get_by_label("Run").click();
    wait_for(&mut harness, "2 rows in");
    wait_for(&mut harness, "3 records are damaged");
    let y = |harness: &Panel<SqlView>, label: &str| harness.get_by_label(label).rect().center().y;
    assert!(y(&harness, "MatMul") < y(&harness, "Add"), "as they came");
    harness.get_by_label("Sort by name").click();
    harness.run_steps(4);
    assert!(y(&harness, "Add") < y(&harness, "MatMul"));
    let state = harness.state();
    assert_eq!(
        state.view.table(&state.data, &state.selection).as_deref(),
        Some("ts_ns,name\n10000,Add\n2000,MatMul\n")
    );
    harness.get_by_label("Add").click();
    harness.run_steps(4);
    let selection = &harness.state().selection;
    assert_eq!(selection.op.get().map(|op| &**op), Some("Add"));
    assert_eq!(selection.time.get().map(|range| range.ns.clone()), Some(10_000..10_001));
}

#[test]
fn what_is_wrong_is_said_and_a_query_can_be_stopped() {
    let mut harness = harness(Some(Arc::new(Small::default())), &["demo"]);
    wait_for(&mut harness, "slices");
    "select 1 from nothing".clone_into(&mut harness.state_mut().view.editor.text);
    harness.get_by_label("Run").click();
    wait_for(&mut harness, "no such table");
    "select forever".clone_into(&mut harness.state_mut().view.editor.text);
    harness.get_by_label("Run").click();
    // Pressed until the query is there to be stopped.
    for _ in 0..6_000 {
        harness.run_steps(1);
        if harness.query_by_label("cancelled").is_some() {
            return;
        }
        harness.get_by_label("Stop").click();
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never stopped");
}

#[test]
fn without_sql_or_anything_to_ask_it_says_so() {
    let mut without = harness(None, &["demo"]);
    wait_for(&mut without, "cargo build --release --features query");
    let mut empty = harness(Some(Arc::new(Small::default())), &[]);
    wait_for(&mut empty, "Nothing to query");
    let mut other = harness(Some(Arc::new(Small::default())), &["other"]);
    wait_for(&mut other, "other: no trace");
}
