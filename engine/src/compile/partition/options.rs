//! What can be chosen for transfers between devices.

/// What can be chosen for transfers between devices.
#[derive(Debug, Clone)]
pub struct TransferOptions {
    /// Whether all `float` values travel as their upper 16 bits (section 5.5). A single edge is chosen with the attribute
    /// `_lossy_outputs` of the node that it comes from: a list of the ports whose values travel so.
    pub is_lossy: bool,
    /// Whether receives are delayed until their values are needed (section 5.2).
    pub delays_receives: bool,
}

impl Default for TransferOptions {
    fn default() -> TransferOptions {
        TransferOptions { is_lossy: false, delays_receives: true }
    }
}
