//! What can be chosen for placement, and what it reports.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::cost_model::CostModel;

/// What can be chosen for placement.
#[derive(Debug, Clone, Default)]
pub struct PlacementOptions {
    /// Whether a request that no device fits, or that contradicts another one, gives way instead of being an error:
    /// TensorFlow's `allow_soft_placement`. What gave way is reported ([`RelaxedRequest`]).
    pub is_soft: bool,
    /// What was measured; without it costs are estimated.
    pub cost_model: Option<Arc<CostModel>>,
}

/// A request for a device that was not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelaxedRequest {
    /// The node.
    pub node: String,
    /// Its op.
    pub op: &'static str,
    /// The device that it asks for, as it writes it.
    pub asked: Arc<str>,
    /// The device that runs it.
    pub device: Arc<str>,
}

/// Where nodes with state are: by name, the number of the device.
pub type Pins = FxHashMap<Arc<str>, u32>;
