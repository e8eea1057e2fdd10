//! Which rows of a tree are visible, and in which order.

use super::{Column, Folding, Tree, rows};
use trace_analysis::torch::{ModuleCost, ModuleRow};
use ui::widgets::SortOrder;

fn row(name: &str, parent: Option<usize>, depth: usize, ns: [i64; 2]) -> ModuleRow {
    let cost = |device_ns| ModuleCost { device_ns, flop: device_ns as f64 * 2.0, ..ModuleCost::default() };
    ModuleRow {
        name: name.into(),
        parent,
        depth,
        calls: 1,
        forward: cost(ns[0]),
        backward: cost(ns[1]),
        ..ModuleRow::default()
    }
}

/// A model with two blocks, each with two layers, and what is outside.
fn tree() -> Tree {
    Tree::new(vec![
        row("Model_0", None, 0, [30, 60]),
        row("Block_0", Some(0), 1, [10, 20]),
        row("Linear_0", Some(1), 2, [4, 5]),
        row("Linear_1", Some(1), 2, [6, 15]),
        row("Block_1", Some(0), 1, [20, 40]),
        row("Linear_2", Some(4), 2, [20, 10]),
        row("Norm_0", Some(4), 2, [0, 30]),
        row("", None, 0, [10, 0]),
    ])
}

const IN_ORDER: SortOrder<Column> = SortOrder { column: Column::Module, descending: false };

fn shown(folding: &Folding, filter: &str, order: SortOrder<Column>) -> String {
    let tree = tree();
    let rows = rows(&tree, folding, filter, order);
    rows.shown.iter().map(|i| tree.modules[*i].title()).collect::<Vec<_>>().join(" ")
}

#[test]
fn shares_are_of_the_roots() {
    let tree = tree();
    let shares: Vec<f64> = tree.modules.iter().map(|module| module.share).collect();
    assert_eq!(shares, [0.9, 0.3, 0.09, 0.21, 0.6, 0.3, 0.3, 0.1]);
    assert!(tree.has_device && tree.has_flop && !tree.has_memory);
    assert_eq!(&*tree.modules[3].path, "Model_0/Block_0/Linear_1");
    assert_eq!((tree.find("Model_0/Block_1"), tree.find("Block_1")), (Some(4), None));
    assert_eq!(tree.modules[0].flop_rate, 180.0 * 1e9 / 90.0);
}

#[test]
fn levels_fold_and_siblings_sort() {
    let all = "Model_0 Block_0 Linear_0 Linear_1 Block_1 Linear_2 Norm_0 (outside modules)";
    assert_eq!(shown(&Folding::default(), "", IN_ORDER), all);
    let mut folding = Folding::default();
    folding.set_depth(1);
    assert_eq!(shown(&folding, "", IN_ORDER), "Model_0 Block_0 Block_1 (outside modules)");
    folding.toggle("Model_0/Block_1");
    assert_eq!(shown(&folding, "", IN_ORDER), "Model_0 Block_0 Block_1 Linear_2 Norm_0 (outside modules)");
    folding.toggle("Model_0");
    assert_eq!(shown(&folding, "", IN_ORDER), "Model_0 (outside modules)");
    let by_time = SortOrder { column: Column::DeviceBackward, descending: true };
    let sorted = "Model_0 Block_1 Norm_0 Linear_2 Block_0 Linear_1 Linear_0 (outside modules)";
    assert_eq!(shown(&Folding::default(), "", by_time), sorted);
}

#[test]
fn a_filter_finds_what_is_folded() {
    let mut folding = Folding::default();
    folding.set_depth(0);
    assert_eq!(shown(&folding, "norm", IN_ORDER), "Model_0 Block_1 Norm_0");
    assert_eq!(rows(&tree(), &folding, "linear", IN_ORDER).n_matches, 3);
    assert_eq!(shown(&folding, "nothing", IN_ORDER), "");
}

#[test]
fn many_modules_begin_folded() {
    let mut all = vec![row("Model_0", None, 0, [1, 1])];
    for block in 0..12 {
        let parent = all.len();
        all.push(row(&format!("Block_{block}"), Some(0), 1, [1, 1]));
        all.extend((0..3).map(|layer| row(&format!("Linear_{layer}"), Some(parent), 2, [1, 1])));
    }
    assert_eq!(rows(&Tree::new(all), &Folding::default(), "", IN_ORDER).shown.len(), 13);
}
