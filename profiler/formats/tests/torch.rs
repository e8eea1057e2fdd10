//! Modules, and ops by the shapes of their inputs, of a real trace of PyTorch, compared with PyTorch's own tables and with
//! torch_tb_profiler (`fixtures/torch/make.py`).

#![allow(clippy::unwrap_used, reason = "helpers of a test")]

use serde_json::Value;
use std::collections::BTreeMap;
use trace_analysis::report::{Analysis, analyse};
use trace_analysis::torch::{ModuleRow, OpShapeRow};
use trace_store::{Store, StoreOptions};

fn fixture(name: &str) -> String {
    format!("{}/tests/fixtures/torch/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn expected() -> Value {
    serde_json::from_str(&std::fs::read_to_string(fixture("step.json")).unwrap()).unwrap()
}

fn tables() -> (Vec<ModuleRow>, Vec<OpShapeRow>) {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    trace_formats::import::open(&[fixture("step.trace.json.gz").into()]).unwrap().read_all(&mut store).unwrap();
    let all = analyse(&store, store.range());
    (all.modules, all.op_shapes)
}

fn near(ours_ns: i64, theirs_us: f64) -> bool {
    (ours_ns as f64 / 1e3 - theirs_us).abs() <= 0.01 + 1e-4 * theirs_us
}

#[test]
fn ops_and_shapes_are_those_of_pytorch() {
    let (_, rows) = tables();
    let mut ours: BTreeMap<(&str, String), (u64, i64, i64)> = BTreeMap::new();
    for row in &rows {
        // PyTorch's table joins what differs in types, or in the tensors of a list.
        let mut dims: Value = serde_json::from_str(&row.dims).unwrap();
        for input in dims.as_array_mut().unwrap().iter_mut().filter(|input| input[0].is_array()) {
            *input = Value::Array(Vec::new());
        }
        let sums = ours.entry((&row.name, dims.to_string())).or_default();
        *sums = (sums.0 + row.count, sums.1 + row.total_ns, sums.2 + row.self_ns);
    }
    let expected = expected();
    let mut theirs: BTreeMap<(&str, String), (u64, f64, f64)> = BTreeMap::new();
    for row in expected["ops"].as_array().unwrap() {
        let dims: Value = serde_json::from_str(row[1].as_str().unwrap()).unwrap();
        // It has a row for each overload.
        let sums = theirs.entry((row[0].as_str().unwrap(), dims.to_string())).or_default();
        let times = [3, 4].map(|at| row[at].as_f64().unwrap());
        *sums = (sums.0 + row[2].as_u64().unwrap(), sums.1 + times[0], sums.2 + times[1]);
    }
    assert!(theirs.len() > 200, "{}", theirs.len());
    for (key, (count, total_us, self_us)) in theirs {
        let found = ours.remove(&key).unwrap_or_else(|| panic!("{key:?} is missing"));
        assert_eq!(found.0, count, "{key:?}");
        assert!(near(found.1, total_us), "{key:?}: {found:?}, not {total_us} us");
        // Functions of Python that run inside an op, such as a forward pass that is repeated, are not its own time here.
        if key.0.starts_with("aten::") {
            assert!(near(found.2, self_us), "{key:?}: {found:?}, not {self_us} us");
        }
    }
    assert!(ours.is_empty(), "PyTorch does not have {ours:?}");
}

/// The modules of torch_tb_profiler's tree with the names that contain them, calls and time.
fn flattened(stats: &Value, around: &[String], found: &mut Vec<(Vec<String>, u64, f64)>) {
    for module in stats.as_array().unwrap() {
        let path = [around, &[module["name"].as_str().unwrap().to_owned()]].concat();
        flattened(&module["children"], &path, found);
        found.push((path, module["calls"].as_u64().unwrap(), module["host_us"].as_f64().unwrap()));
    }
}

fn path(rows: &[ModuleRow], row: &ModuleRow) -> Vec<String> {
    let mut names = vec![row.name.clone()];
    let mut parent = row.parent;
    while let Some(row) = parent.map(|parent| &rows[parent]) {
        names.insert(0, row.name.clone());
        parent = row.parent;
    }
    names
}

#[test]
fn the_tree_of_modules_is_that_of_torch_tb_profiler() {
    let (rows, _) = tables();
    let mut theirs = Vec::new();
    flattened(&expected()["modules"], &[], &mut theirs);
    let is_repeated = |path: &[String]| path.iter().any(|name| name == "Block_2");
    let theirs: BTreeMap<_, _> = theirs.into_iter().map(|(path, calls, us)| (path, (calls, us))).collect();
    let mut n_compared = 0;
    for row in rows.iter().filter(|row| !row.name.is_empty()) {
        let path = path(&rows, row);
        if is_repeated(&path) {
            // It shows the second forward pass as a tree of its own, and counts both in each.
            let alone = &path[path.iter().position(|name| name == "Block_2").unwrap()..];
            let (calls, us) = theirs[alone];
            assert_eq!((row.calls, calls), (1, 2), "{path:?}");
            assert!(us * 1e3 < (row.forward.host_ns + row.backward.host_ns) as f64 * 1.001, "{path:?}");
            continue;
        }
        let (calls, us) = theirs.get(&path).copied().unwrap_or_else(|| panic!("{path:?}: {theirs:?}"));
        assert_eq!(row.calls, calls, "{path:?}");
        assert!(near(row.forward.host_ns, us), "{path:?}: {} ns, not {us} us", row.forward.host_ns);
        n_compared += 1;
    }
    let n_theirs = theirs.keys().filter(|path| !is_repeated(path)).count();
    assert_eq!((n_compared, n_theirs), (24, 24));
}

#[test]
fn operations_of_modules_are_those_of_pytorchs_counter() {
    let (rows, shapes) = tables();
    let expected = expected();
    let expected = expected["flop"].as_object().unwrap();
    let count = |value: &Value| (value[0].as_f64().unwrap(), value[1].as_f64().unwrap());
    let mut n_compared = 0;
    for row in &rows {
        let Some(theirs) = expected.get(&row.name).map(count) else { continue };
        assert_eq!(row.forward.flop, theirs.0, "forward of {}", row.name);
        // For modules that contain others its counter loses gradients when a module is called twice.
        let is_leaf = rows.iter().all(|other| other.parent.map(|parent| &rows[parent].name) != Some(&row.name));
        // Of a pass that is repeated it counts the same op for several modules.
        let is_repeated = path(&rows, row).iter().any(|name| name == "Block_2");
        if (is_leaf && !is_repeated) || row.name == "Net_0" {
            // The last op of that pass begins, and is stopped before it computes.
            let stopped = if row.name == "Net_0" { count(&expected["Linear_11"]).0 } else { 0.0 };
            assert_eq!(row.backward.flop, theirs.1 + stopped, "gradients of {}", row.name);
            n_compared += 1;
        }
    }
    assert!(n_compared >= 12, "{n_compared}");
    // All that is counted is in a module, and in the table of shapes.
    let in_modules = rows.iter().map(|row| row.own_forward.flop + row.own_backward.flop).sum::<f64>();
    assert_eq!(shapes.iter().map(|row| row.flop).sum::<f64>(), in_modules);
}

#[test]
fn memory_of_forward_passes_is_left_for_the_gradients() {
    let (rows, _) = tables();
    let net = rows.iter().find(|row| row.name == "Net_0").unwrap();
    assert!(net.forward.net_bytes > 0 && net.forward.allocated_bytes >= net.forward.net_bytes, "{net:?}");
    assert!(net.backward.allocated_bytes > 0 && net.backward.host_ns > 0, "{net:?}");
    // The optimizer's and the loss' ops.
    let outside = rows.iter().find(|row| row.name.is_empty()).unwrap();
    assert!(outside.own_forward.host_ns > 0 && outside.parent.is_none(), "{outside:?}");
}

/// A step with a device: a module, its gradient on another thread, and an op of the optimizer.
const WITH_DEVICE: &str = r#"{"traceEvents": [
 {"ph":"M","name":"process_name","pid":7,"args":{"name":"python"}},
 {"ph":"X","cat":"python_function","name":"nn.Module: Net_0","pid":7,"tid":7,"ts":0,"dur":100},
 {"ph":"X","cat":"python_function","name":"nn.Module: Linear_0","pid":7,"tid":7,"ts":10,"dur":60},
 {"ph":"X","cat":"cpu_op","name":"aten::linear","pid":7,"tid":7,"ts":20,"dur":40,
  "args":{"Sequence number":5,"Fwd thread id":0,"Input Dims":[[2,3],[5,3],[5]],"Input type":["float","float","float"]}},
 {"ph":"X","cat":"cpu_op","name":"aten::addmm","pid":7,"tid":7,"ts":25,"dur":30,
  "args":{"Sequence number":5,"Fwd thread id":0,"Input Dims":[[5],[2,3],[3,5],[],[]],"Input type":["float","float","float","Scalar","Scalar"]}},
 {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":7,"tid":7,"ts":30,"dur":5,"args":{"correlation":11}},
 {"ph":"X","cat":"kernel","name":"sgemm","pid":0,"tid":20,"ts":200,"dur":70,"args":{"device":0,"stream":20,"correlation":11}},
 {"ph":"X","cat":"cpu_op","name":"autograd::engine::evaluate_function: AddmmBackward0","pid":7,"tid":8,"ts":120,"dur":50,
  "args":{"Sequence number":5,"Fwd thread id":1}},
 {"ph":"X","cat":"cpu_op","name":"aten::mm","pid":7,"tid":8,"ts":130,"dur":20,
  "args":{"Input Dims":[[3,2],[2,5]],"Input type":["float","float"]}},
 {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":7,"tid":8,"ts":135,"dur":5,"args":{"correlation":12}},
 {"ph":"X","cat":"kernel","name":"sgemm_nt","pid":0,"tid":20,"ts":280,"dur":30,"args":{"device":0,"stream":20,"correlation":12}},
 {"ph":"X","cat":"cpu_op","name":"aten::_foreach_add_","pid":7,"tid":7,"ts":180,"dur":10,"args":{"Input Dims":[[[2],[3]]],"Input type":["TensorList"]}}
]}"#;

#[test]
fn work_of_devices_is_the_modules_that_enqueued_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.json");
    std::fs::write(&file, WITH_DEVICE).unwrap();
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    trace_formats::import::open(&[file]).unwrap().read_all(&mut store).unwrap();
    let Analysis { modules, op_shapes: shapes, .. } = analyse(&store, store.range());
    let row = |name: &str| modules.iter().find(|row| row.name == name).unwrap();
    let linear = row("Linear_0");
    assert_eq!((linear.calls, linear.parent, linear.depth), (1, Some(0), 1));
    assert_eq!((linear.own_forward.device_ns, linear.own_backward.device_ns), (70_000, 30_000));
    assert_eq!((linear.own_forward.host_ns, linear.own_backward.host_ns), (60_000, 50_000));
    assert_eq!((linear.own_forward.flop, linear.own_backward.flop), (60.0, 60.0));
    let net = row("Net_0");
    assert_eq!((net.own_forward.host_ns, net.forward.host_ns, net.backward.device_ns), (40_000, 100_000, 30_000));
    assert_eq!(row("").own_forward.host_ns, 10_000);
    let shape = |name: &str| shapes.iter().find(|row| row.name == name).unwrap();
    assert_eq!((shape("aten::linear").device_ns, shape("aten::linear").self_device_ns), (70_000, 0));
    assert_eq!((shape("aten::addmm").device_ns, shape("aten::addmm").self_device_ns), (70_000, 70_000));
    assert_eq!((shape("aten::mm").total_ns, shape("aten::mm").self_ns, shape("aten::mm").flop), (20_000, 15_000, 60.0));
    // The gradient's part of a range: its op is before the range, so that its module is not known.
    let Analysis { modules, op_shapes: shapes, .. } = analyse(&store, 110_000..175_000);
    assert!(modules.is_empty() && shapes.len() == 1, "{modules:?}");
}

fn h200(name: &str) -> std::path::PathBuf {
    format!("{}/../../tests/data/h200/{name}", env!("CARGO_MANIFEST_DIR")).into()
}

fn unpacked(name: &str) -> Value {
    let file = std::fs::File::open(h200(name)).unwrap();
    serde_json::from_reader(flate2::read::GzDecoder::new(file)).unwrap()
}

fn analysed(name: &str) -> Analysis {
    let mut store = Store::with_options(StoreOptions::UNBOUNDED);
    trace_formats::import::open(&[h200(name)]).unwrap().read_all(&mut store).unwrap();
    analyse(&store, store.range())
}

/// What ops enqueued on a real device: PyTorch's own averages of the same recordings.
#[test]
fn device_times_are_those_of_pytorch() {
    for name in ["gpt", "conv", "compiled", "graphs"] {
        let mut ours: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        for row in analysed(&format!("{name}.trace.json.gz")).op_shapes {
            let sums = ours.entry(row.name).or_default();
            *sums = (sums.0 + row.device_ns, sums.1 + row.self_device_ns);
        }
        let mut theirs: BTreeMap<String, (f64, f64)> = BTreeMap::new();
        for row in unpacked(&format!("{name}.averages.json.gz")).as_array().unwrap() {
            let op = row[0].as_str().unwrap();
            // Ops with shapes; it lists kernels and annotations as rows of their own.
            if op.starts_with("aten::") && row[1] != "[]" {
                let sums = theirs.entry(op.to_owned()).or_default();
                *sums = (sums.0 + row[5].as_f64().unwrap(), sums.1 + row[6].as_f64().unwrap());
            }
        }
        assert!(theirs.len() >= 10, "{name}: {}", theirs.len());
        for (op, (total_us, self_us)) in &theirs {
            let found = ours.get(op).copied().unwrap_or_default();
            assert!(
                near(found.0, *total_us) && near(found.1, *self_us),
                "{name} {op}: {found:?}, not {total_us} {self_us}"
            );
        }
    }
}

/// Categories of TraceLens that are the same kinds here, on the same recordings (`record/tracelens.py`).
#[test]
fn kernels_are_of_the_kinds_that_tracelens_finds() {
    use trace_analysis::kernels::KernelKind as K;
    let expected: Value = serde_json::from_str(&std::fs::read_to_string(h200("tracelens.json")).unwrap()).unwrap();
    let kinds: &[(K, &[&str])] = &[
        (K::MatrixProduct, &["GEMM"]),
        (K::Convolution, &["CONV_fwd", "CONV_bwd"]),
        (K::Normalization, &["NORM_fwd", "NORM_bwd"]),
        (K::Optimizer, &["multi_tensor_apply"]),
        (K::Compiled, &["triton"]),
    ];
    let mut n_compared = 0;
    for (name, categories) in expected.as_object().unwrap() {
        let kernels = analysed(&format!("{name}.trace.json.gz")).kernels;
        for (kind, theirs) in kinds {
            // It leaves out what was launched before the recording, an update of parameters in this one.
            if (name.as_str(), *kind) == ("compiled", K::Optimizer) {
                continue;
            }
            let us: f64 = theirs.iter().filter_map(|category| categories.get(*category)?.as_f64()).sum();
            let ours = kernels.iter().find(|row| row.kind == *kind).map_or(0, |row| row.ns);
            // Here fills that an op launches are memory; cuDNN begins convolutions with some.
            let is_near =
                near(ours, us) || (*kind == K::Convolution && (0.99..=1.0).contains(&(ours as f64 / us / 1e3)));
            assert!(is_near, "{name} {kind:?}: {ours} ns, not {us} us");
            n_compared += usize::from(us > 0.0);
        }
    }
    assert!(n_compared >= 8, "{n_compared}");
}
