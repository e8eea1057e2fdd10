//! The perceptron of the demo on the bundled digits: it learns, its graph survives export and import, its summaries
//! say what they should.

use engine::data::{Batches, digits};
use engine::models::MlpOptions;
use engine::training::{Mlp, mlp};
use engine::{Graph, NodeId, Output, Session, SessionOptions, Tensor};
use formats::proto::{Summary, summary::value::Value};
use prost::Message;

const BATCH: usize = 128;

fn name(g: &Graph, o: Output) -> String {
    format!("{}:{}", g.node(o.node).unwrap().name, o.port)
}

fn target(g: &Graph, id: NodeId) -> String {
    g.node(id).unwrap().name.to_string()
}

fn build() -> (Graph, Mlp) {
    let g = Graph::new();
    let m = mlp(&g, &MlpOptions { hidden: vec![128, 64], ..MlpOptions::default() }).unwrap();
    (g, m)
}

fn rows(x: &Tensor, y: &Tensor, chosen: &[usize]) -> [Tensor; 2] {
    let n = x.dims()[1];
    let values = x.slice::<f32>().unwrap();
    let batch: Vec<f32> = chosen.iter().flat_map(|r| values[r * n..(r + 1) * n].iter().copied()).collect();
    let labels: Vec<i64> = chosen.iter().map(|r| y.slice::<i64>().unwrap()[*r]).collect();
    [Tensor::from_vec([chosen.len(), n], batch).unwrap(), Tensor::vector(&labels)]
}

#[test]
fn digits_are_learned() {
    let (g, m) = build();
    let data = digits();
    let session = Session::new(&g, SessionOptions::default()).unwrap();
    session.run(&[], &[], &[&target(&g, m.init)]).unwrap();
    let names = [m.x, m.labels, m.loss, m.accuracy].map(|o| name(&g, o));
    let train = target(&g, m.train_op);
    let step = session.prepare(&[&names[0], &names[1]], &[&names[2]], &[&train]).unwrap();
    let mut losses = Vec::new();
    let mut batches = Batches::new(data.train_y.len(), BATCH, 7);
    for _ in 0..400 {
        let batch = rows(&data.train_x, &data.train_y, batches.draw());
        losses.push(step.run(&batch).unwrap()[0].item::<f32>().unwrap());
    }
    assert!((1.5..4.0).contains(&losses[0]), "{losses:?}");
    assert!(losses[399] < 0.2, "{losses:?}");
    let feeds = [(names[0].as_str(), data.test_x.clone()), (names[1].as_str(), data.test_y.clone())];
    let accuracy = session.run(&feeds, &[&names[3]], &[]).unwrap()[0].item::<f32>().unwrap();
    assert!(accuracy >= 0.95, "accuracy {accuracy}");
}

#[test]
fn summaries_name_their_nodes_and_tags() {
    let (g, m) = build();
    let data = digits();
    let session = Session::new(&g, SessionOptions::default()).unwrap();
    session.run(&[], &[], &[&target(&g, m.init)]).unwrap();
    let names = [m.x, m.labels, m.scalars, m.histograms, m.loss].map(|o| name(&g, o));
    let feeds = [(names[0].as_str(), data.test_x.clone()), (names[1].as_str(), data.test_y.clone())];
    let out = session.run(&feeds, &[&names[2], &names[3], &names[4]], &[]).unwrap();
    let decode = |t: &Tensor| Summary::decode(t.strings().unwrap()[0].as_slice()).unwrap().value;
    let scalars = decode(&out[0]);
    let tags: Vec<_> = scalars.iter().map(|v| (v.tag.as_str(), v.node_name.as_str())).collect();
    let expected =
        [("loss", "summaries/loss"), ("accuracy", "summaries/accuracy"), ("learning_rate", "summaries/learning_rate")];
    assert_eq!(tags, expected);
    assert_eq!(scalars[0].value, Some(Value::SimpleValue(out[2].item::<f32>().unwrap())));
    let histograms = decode(&out[1]);
    assert_eq!(histograms.len(), 12);
    assert_eq!((histograms[0].tag.as_str(), histograms[1].tag.as_str()), ("layer1/weights", "layer1/weights/gradient"));
    let Some(Value::Histo(h)) = &histograms[0].value else { panic!("no histogram") };
    assert_eq!(h.num, 64.0 * 128.0);
    let limit = 2.0 * (2.0f64 / 64.0).sqrt();
    assert!(h.min > -limit && h.max < limit && h.min < -0.9 * limit && h.max > 0.9 * limit, "{h:?}");
}

#[test]
fn an_exported_graph_imports_to_the_same_graph() {
    let (g, _) = build();
    let def = g.to_def();
    let again = Graph::new();
    again.import(&def, "").unwrap();
    let sorted = |mut def: formats::proto::GraphDef| {
        // Neither the order of nodes nor that of control inputs means anything.
        def.node.sort_by(|a, b| a.name.cmp(&b.name));
        def.node.iter_mut().for_each(|n| n.input.sort_by_key(|i| i.starts_with('^').then(|| i.clone())));
        def
    };
    assert_eq!(sorted(again.to_def()), sorted(def.clone()));
    let prefixed = Graph::new();
    prefixed.import(&def, "copy").unwrap();
    assert!(prefixed.nodes().find("copy/layer1/weights").is_some());
}
