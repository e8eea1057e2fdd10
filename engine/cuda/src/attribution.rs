//! Whom a launch is for: reported to whoever records what the device does, so that its records know the graph's node.

use std::sync::OnceLock;

use engine::kernels::KernelContext;

/// Is notified which node a thread works for, while steps are traced.
pub trait Listener: Send + Sync {
    /// What this thread gives to a device from now on is this node's, by its number in events.
    fn begins(&self, node: u32);
    /// No longer.
    fn ends(&self);
}

static LISTENER: OnceLock<Box<dyn Listener>> = OnceLock::new();

/// Notifies `listener` from now on. A process has one, the first: false for others.
pub fn listen(listener: Box<dyn Listener>) -> bool {
    LISTENER.set(listener).is_ok()
}

/// The node is worked for until this is dropped.
pub(crate) struct Working(Option<&'static dyn Listener>);

/// The thread works for the context's node.
pub(crate) fn working_for(ctx: &KernelContext<'_>) -> Working {
    if ctx.traced_step == 0 {
        return Working(None);
    }
    let listener = LISTENER.get().map(AsRef::as_ref);
    if let Some(listener) = listener {
        listener.begins(ctx.node.event_id);
    }
    Working(listener)
}

impl Drop for Working {
    fn drop(&mut self) {
        if let Some(listener) = self.0 {
            listener.ends();
        }
    }
}
