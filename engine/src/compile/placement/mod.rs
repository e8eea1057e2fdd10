//! Placement: which device runs which node (white paper sections 3.2.1 and 4.3).
//!
//! [`constraints`] finds the nodes that must be together and the devices where they can be, [`cost_model`] and [`estimate`] give
//! each node's cost, [`simulate`] decides by a simulated execution. TensorFlow as published never did the last step: it takes
//! the first device by priority, a GPU where there is one. Here the simulation decides.
//!
//! Nodes with state are placed once per session, from the whole graph, and stay: the plan that initialises a variable and the
//! one that trains it must mean the same device.

mod constraints;
pub mod cost_model;
mod costs;
pub mod device_set;
mod error;
pub mod estimate;
mod options;
mod place;
pub mod simulate;

pub use cost_model::CostModel;
pub(crate) use costs::{Costs, fixed_simulation};
pub use device_set::MAX_DEVICES;
pub use error::PlacementError;
pub use options::{Pins, PlacementOptions, RelaxedRequest};
pub use place::place;
pub(crate) use place::{check_requests, holds_state};
