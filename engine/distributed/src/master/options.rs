//! What can be chosen for a master.

use std::time::Duration;

use engine::compile::partition::TransferOptions;
use engine::compile::placement::PlacementOptions;
use net::{Limits, Security};

/// What can be chosen for a master.
#[derive(Debug, Clone)]
pub struct MasterOptions {
    /// How long it tries to reach a worker that is not there yet.
    pub patience: Duration,
    /// How long a worker may take to compile a part.
    pub registration: Duration,
    /// What connections may take.
    pub limits: Limits,
    /// Encrypts connections over TCP; without it they stay within the host.
    pub security: Option<Security>,
    /// How nodes are placed.
    pub placement: PlacementOptions,
    /// How values get from device to device: 16-bit compression, late receives.
    pub transfers: TransferOptions,
}

impl Default for MasterOptions {
    fn default() -> MasterOptions {
        MasterOptions {
            patience: Duration::from_secs(10),
            registration: Duration::from_secs(300),
            limits: Limits::default(),
            security: None,
            placement: PlacementOptions::default(),
            transfers: TransferOptions::default(),
        }
    }
}
