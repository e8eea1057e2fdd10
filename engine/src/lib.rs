//! The dataflow engine: graph, ops, kernels, gradients, plan, executor, session.
