//! Updates of variables by gradients, as far as all devices do them alike: what an op's inputs are, the locks, the
//! checks.

use std::sync::Arc;

use parking_lot::RwLockWriteGuard;
use smallvec::SmallVec;

use super::{KernelContext, KernelError};
use engine_core::ops::OpDef;
use engine_core::resources::Variable;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

/// The variable whose handle is input `i`, and its name.
///
/// # Errors
/// The input is no handle, or that of something else.
pub fn variable(c: &KernelContext<'_>, i: usize) -> Result<(Arc<Variable>, Arc<str>), KernelError> {
    let handle = c.input(i)?.handle()?;
    match handle.object.clone().downcast::<Variable>() {
        Ok(variable) => Ok((variable, handle.name.clone())),
        Err(_) => Err(KernelError::invalid(format!("{} is not a variable", handle.name))),
    }
}

/// Which inputs of an update are what, by their names in the op's signature: first the variable and its slots, then, in
/// an order of the op's own, the gradient, the indices of rows, and the numbers of the rule.
#[derive(Debug, Clone)]
pub struct UpdateSpec {
    /// The gradient.
    pub gradient: usize,
    /// Where the update is of rows: their indices.
    pub indices: Option<usize>,
    /// The numbers of the rule, in the order of the signature.
    pub numbers: Vec<usize>,
}

impl UpdateSpec {
    /// That of an op whose first `n_variables` inputs are the variable and its slots.
    ///
    /// # Errors
    /// The op has no gradient among its inputs.
    pub fn new(op: &OpDef, n_variables: usize) -> Result<UpdateSpec, KernelError> {
        let (mut gradient, mut indices, mut numbers) = (None, None, Vec::new());
        for (i, input) in op.inputs.iter().enumerate().skip(n_variables) {
            match input.name {
                "grad" | "delta" | "updates" | "value" => gradient = Some(i),
                "indices" => indices = Some(i),
                _ => numbers.push(i),
            }
        }
        let gradient = gradient.ok_or_else(|| KernelError::invalid(format!("op {} has no gradient", op.name)))?;
        Ok(UpdateSpec { gradient, indices, numbers })
    }

    /// Calls `f` with the values of the variable and its slots, locked for writing; all are of one shape and element
    /// type, which the gradient (and the indices) fit.
    ///
    /// Variables are locked in the order of their addresses, so that updates which share slots in different roles do
    /// not wait for each other.
    ///
    /// # Errors
    /// A variable is missing, has no value, or is there twice; shapes or types do not fit; `f` fails.
    pub fn with_variables<const N: usize>(
        &self,
        c: &KernelContext<'_>,
        f: impl FnOnce([&mut Tensor; N]) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let gradient = c.input(self.gradient)?;
        let indices = self.indices.map(|i| c.input(i)).transpose()?;
        let mut variables: SmallVec<[(Arc<Variable>, Arc<str>); 4]> = SmallVec::new();
        for i in 0..N {
            variables.push(variable(c, i)?);
        }
        let mut order: [usize; N] = std::array::from_fn(|i| i);
        order.sort_by_key(|i| Arc::as_ptr(&variables[*i].0));
        if order.windows(2).any(|w| Arc::ptr_eq(&variables[w[0]].0, &variables[w[1]].0)) {
            return Err(KernelError::invalid("the variable and its slots must be different variables"));
        }
        let mut guards: [Option<RwLockWriteGuard<'_, Option<Tensor>>>; N] = std::array::from_fn(|_| None);
        for i in order {
            guards[i] = Some(variables[i].0.value.write());
        }
        let mut first: Option<&Tensor> = None;
        for ((_, name), guard) in variables.iter().zip(&guards) {
            let value = guard.as_deref().and_then(Option::as_ref);
            let value = value.ok_or_else(|| KernelError::Uninitialised(name.clone()))?;
            check(name, value, gradient, indices)?;
            let (slot, shape, var) = (value.shape(), first.get_or_insert(value).shape(), &variables[0].1);
            if slot != shape {
                return Err(KernelError::invalid(format!("{name} has shape {slot}, the variable {var} {shape}")));
            }
        }
        f(guards.each_mut().map(|guard| {
            let value = guard.as_deref_mut().and_then(Option::as_mut);
            value.expect("each variable was found to have a value")
        }))
    }
}

/// That a gradient fits a variable: is as the variable, or has a row like the variable's for each of the indices.
fn check(name: &str, value: &Tensor, gradient: &Tensor, indices: Option<&Tensor>) -> Result<(), KernelError> {
    let fits = match (indices, value.dims()) {
        (None, _) => value.shape() == gradient.shape(),
        (Some(_), []) => return Err(KernelError::invalid("rows of a scalar cannot be updated")),
        (Some(indices), [_, row @ ..]) => gradient.shape() == &Shape::new(&[indices.dims(), row].concat()),
    };
    if fits && value.dtype() == gradient.dtype() {
        return Ok(());
    }
    let rows = indices.map_or(String::new(), |indices| format!(" for rows of indices {}", indices.shape()));
    let (is, got) = (value.shape(), gradient.shape());
    let text = format!("variable {name} is {}{is}, the update {}{got}{rows}", value.dtype(), gradient.dtype());
    Err(KernelError::invalid(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine_core::ops::lookup;

    #[test]
    fn inputs_are_known_by_their_names() {
        let of = |op: &str, n_variables| {
            let spec = UpdateSpec::new(lookup(op).unwrap(), n_variables).unwrap();
            (spec.gradient, spec.indices, spec.numbers)
        };
        assert_eq!(of("ApplyGradientDescent", 1), (2, None, vec![1]));
        assert_eq!(of("ResourceApplyMomentum", 2), (3, None, vec![2, 4]));
        assert_eq!(of("ResourceSparseApplyMomentum", 2), (3, Some(4), vec![2, 5]));
        assert_eq!(of("SparseApplyFtrlV2", 3), (3, Some(4), vec![5, 6, 7, 8, 9]));
        assert_eq!(of("ResourceScatterAdd", 1), (2, Some(1), vec![]));
        assert_eq!(of("AssignAddVariableOp", 1), (1, None, vec![]));
        assert!(UpdateSpec::new(lookup("ReadVariableOp").unwrap(), 1).is_err());
    }
}
