//! Graphs that once failed here, with TensorFlow's answers: `data/found/NAME` has the graph, feeds and fetches, tolerances.

use std::fs;
use std::path::{Path, PathBuf};

use engine::compile::placement::PlacementOptions;
use engine::device::DeviceName;
use engine::{DType, Graph, Session, SessionOptions, Tensor};
use formats::npy::{Array, decode_npz};
use serde_json::Value;

struct Case {
    graph: Graph,
    meta: Value,
    arrays: Vec<(String, Array)>,
}

fn case(name: &str) -> Case {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/found").join(name);
    let graph = Graph::new();
    graph.import(&formats::graph_file::read(&folder.join("graph.pb.gz")).unwrap(), "").unwrap();
    let meta = serde_json::from_slice(&fs::read(folder.join("meta.json")).unwrap()).unwrap();
    Case { graph, meta, arrays: decode_npz(&fs::read(folder.join("io.npz")).unwrap()).unwrap() }
}

fn floats(value: &Tensor) -> Vec<f64> {
    match value.dtype() {
        DType::F32 => value.slice::<f32>().unwrap().iter().map(|v| f64::from(*v)).collect(),
        _ => value.slice::<f64>().unwrap().to_vec(),
    }
}

impl Case {
    fn array(&self, name: &str) -> Tensor {
        Tensor::from_npy(&self.arrays.iter().find(|(n, _)| n == name).unwrap().1).unwrap()
    }

    fn texts(&self, key: &str) -> Vec<&str> {
        self.meta[key].as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect()
    }

    fn session(&self, devices: usize, is_soft: bool) -> Session {
        let placement = PlacementOptions { is_soft, ..PlacementOptions::default() };
        Session::new(&self.graph, SessionOptions { placement, ..SessionOptions::devices(devices) }).unwrap()
    }

    fn run(&self, session: &Session) -> Result<Vec<Tensor>, String> {
        let feeds: Vec<(&str, Tensor)> =
            self.texts("feeds").into_iter().map(|name| (name, self.array(&format!("feed/{name}")))).collect();
        session.run(&feeds, &self.texts("fetches"), &[]).map_err(|e| e.to_string())
    }

    fn check(&self, session: &Session) {
        let values = self.run(session).unwrap_or_else(|e| panic!("{e}"));
        for ((got, name), tolerance) in
            values.iter().zip(self.texts("fetches")).zip(self.meta["tolerance"].as_array().unwrap())
        {
            let want = self.array(&format!("fetch/{name}"));
            assert_eq!((got.dtype(), got.dims()), (want.dtype(), want.dims()), "{name}");
            let (rtol, atol) = (tolerance[0].as_f64().unwrap(), tolerance[1].as_f64().unwrap());
            for (a, b) in floats(got).iter().zip(floats(&want)) {
                assert!((a - b).abs() <= atol + rtol * b.abs(), "{name}: {a} instead of {b}");
            }
        }
    }
}

#[test]
fn cases_in_loops_and_calls_run() {
    for name in ["case_in_loops", "case_call_gradients"] {
        let case = case(name);
        for devices in [1, 2] {
            case.check(&case.session(devices, false));
        }
    }
}

/// Gradients colocated with nodes on two devices: TensorFlow refuses them, and runs them with soft placement.
#[test]
fn colocation_across_devices_gives_way_where_it_may() {
    let case = case("colocated_in_loops");
    let error = case.run(&case.session(2, false)).unwrap_err();
    assert!(error.contains("must be on one device (they are colocated)"), "{error}");
    for devices in [1, 2] {
        let session = case.session(devices, true);
        case.check(&session);
        let relaxed = session.relaxed_requests();
        assert!(!relaxed.is_empty());
        for one in relaxed {
            let (asked, device): (DeviceName, DeviceName) = (one.asked.parse().unwrap(), one.device.parse().unwrap());
            assert!(!asked.admits(&device), "{one:?}");
        }
    }
}

/// A loop that never runs leaves an array unwritten, of which only the op that gathers it knows the elements' shape: zeros.
#[test]
fn what_was_never_written_has_the_shape_that_gather_asks_for() {
    let case = case("gather_of_unwritten");
    for devices in [1, 2] {
        case.check(&case.session(devices, false));
    }
}
