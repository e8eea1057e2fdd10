//! Replicas that each have the variables: gradients are averaged by collectives, and every replica moves its own.

use crate::slices::{IndexedSlices, known_shape};
use engine_core::dtype::DType;
use engine_core::graph::{Attr, Graph, GraphError, NodeId, Output, Value, Var};
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

/// Gradients of more elements travel alone, as soon as they are there; smaller ones together, up to as many.
const BUCKET: usize = 256 << 10;

/// Numbers of collectives in a graph.
struct Keys {
    size: i64,
    next: i64,
}

impl Keys {
    fn next(&mut self) -> i64 {
        self.next += 1;
        self.next
    }
}

/// A member of a group for each replica.
fn members(replicas: &[Graph], keys: &mut Keys, op: &str, values: &[Output], attrs: &[(&str, Attr)]) -> Vec<Output> {
    let instance = keys.next();
    let member = |(g, value): (&Graph, &Output)| {
        let scope = g.scope("collective");
        let node = scope.add_node(op).input(*value);
        let node = node.attr("group_size", keys.size).attr("group_key", 1i64).attr("instance_key", instance);
        attrs.iter().fold(node, |node, (name, value)| node.attr(name, value.clone())).value().output()
    };
    replicas.iter().zip(values).map(member).collect()
}

/// The mean of each gradient at each replica, from `gradients` of each in the variables' order. Slices stay slices.
///
/// # Errors
/// The gradients do not fit to each other, or a variable's shape is not known.
pub(super) fn average(
    replicas: &[Graph],
    gradients: &[&[Output]],
    variables: &[Var],
) -> Result<Vec<Vec<Output>>, GraphError> {
    let shapes = variables.iter().map(|var| known_shape(&replicas[0], *var)).collect::<Result<Vec<_>, _>>()?;
    let mut keys = Keys { size: replicas.len() as i64, next: 0 };
    let mut means: Vec<Vec<Option<Output>>> = vec![vec![None; shapes.len()]; replicas.len()];
    let mut put = |i: usize, of_replicas: Vec<Output>| {
        means.iter_mut().zip(of_replicas).for_each(|(means, mean)| means[i] = Some(mean));
    };
    let (mut bucket, mut filled) = (Vec::new(), 0);
    // The last gradients are there first.
    for i in (0..shapes.len()).rev() {
        let of_variable: Vec<Output> = gradients.iter().map(|of_replica| of_replica[i]).collect();
        if let Some(sliced) = sliced(replicas, &mut keys, &of_variable, variables[i])? {
            put(i, sliced);
            continue;
        }
        let n = shapes[i].n_elements();
        if n > BUCKET {
            put(i, reduced(replicas, &mut keys, &of_variable));
            continue;
        }
        if filled + n > BUCKET {
            together(replicas, &mut keys, gradients, &shapes, &std::mem::take(&mut bucket), &mut put);
            filled = 0;
        }
        bucket.push(i);
        filled += n;
    }
    together(replicas, &mut keys, gradients, &shapes, &bucket, &mut put);
    Ok(means.into_iter().map(|means| means.into_iter().flatten().collect()).collect())
}

fn reduced(replicas: &[Graph], keys: &mut Keys, values: &[Output]) -> Vec<Output> {
    members(replicas, keys, "CollectiveReduce", values, &[("merge_op", "Add".into()), ("final_op", "Div".into())])
}

/// The gradients of these variables as one vector.
fn together(
    replicas: &[Graph],
    keys: &mut Keys,
    gradients: &[&[Output]],
    shapes: &[Shape],
    bucket: &[usize],
    put: &mut impl FnMut(usize, Vec<Output>),
) {
    if let [one] = bucket {
        return put(*one, reduced(replicas, keys, &gradients.iter().map(|all| all[*one]).collect::<Vec<_>>()));
    }
    if bucket.is_empty() {
        return;
    }
    let joined = |(g, gradients): (&Graph, &&[Output])| {
        let g = g.scope("bucket");
        let flat = g.ints(&[-1]);
        let parts: Vec<Value<'_>> = bucket.iter().map(|i| g.value(gradients[*i]).reshape(flat)).collect();
        g.concat(&parts, 0).output()
    };
    let joined: Vec<Output> = replicas.iter().zip(gradients).map(joined).collect();
    let means = reduced(replicas, keys, &joined);
    let lengths: Vec<i32> = bucket.iter().map(|i| i32::try_from(shapes[*i].n_elements()).unwrap_or(i32::MAX)).collect();
    let mut parts: Vec<Vec<Output>> = vec![Vec::new(); bucket.len()];
    for (g, mean) in replicas.iter().zip(means) {
        let g = g.scope("bucket");
        let (lengths, axis) = (g.ints(&lengths), g.constant(Tensor::scalar(0i32)));
        let split = g.add_node("SplitV").input(mean).input(lengths).input(axis);
        let split = split.attr("num_split", bucket.len() as i64).attr("Tlen", DType::I32).value();
        for (port, (i, part)) in bucket.iter().zip(&mut parts).enumerate() {
            part.push(split.port(port as u32).reshape(shapes[*i].dims()).output());
        }
    }
    bucket.iter().zip(parts).for_each(|(i, part)| put(*i, part));
}

/// The mean of gradients of some rows: all replicas' rows; `None` where one is dense.
fn sliced(
    replicas: &[Graph],
    keys: &mut Keys,
    gradients: &[Output],
    var: Var,
) -> Result<Option<Vec<Output>>, GraphError> {
    let slices = |(g, gradient): (&Graph, &Output)| IndexedSlices::of(g, *gradient, var);
    let slices = replicas.iter().zip(gradients).map(slices).collect::<Result<Option<Vec<_>>, _>>()?;
    let Some(slices) = slices else { return Ok(None) };
    let any_shape = [("shape", Attr::Shape(engine_core::shape::PartialShape::unknown()))];
    let mut gathered = |of: fn(&IndexedSlices) -> Output| {
        let own: Vec<Output> = slices.iter().map(of).collect();
        members(replicas, keys, "CollectiveGather", &own, &any_shape)
    };
    let (values, indices) = (gathered(|s| s.values), gathered(|s| s.indices));
    let mean = |(i, g): (usize, &Graph)| {
        let all = IndexedSlices { values: values[i], indices: indices[i], n_rows: slices[i].n_rows };
        all.scaled(g, 1.0 / replicas.len() as f64).to_dense(g).output()
    };
    Ok(Some(replicas.iter().enumerate().map(mean).collect()))
}

/// Gives the variables of all replicas the values of the first one's: `variables` of each, in the same order.
pub(super) fn alike(replicas: &[Graph], variables: &[Vec<Var>]) -> NodeId {
    let mut assigned = Vec::new();
    let Some((first, others)) = variables.split_first() else { return replicas[0].group("alike", &[]) };
    for (k, (g, own)) in replicas[1..].iter().zip(others).enumerate() {
        let g = g.scope(&format!("alike{k}"));
        for (from, to) in first.iter().zip(own) {
            assigned.push(g.add_node("AssignVariableOp").input(to.handle).input(from.value).value().node());
        }
    }
    replicas[0].group("alike", &assigned)
}
