//! Systems other than Unix, where no process records: the handlers are never needed.

/// Whether a process can record on this system.
pub(crate) const CAN_RECORD: bool = false;

/// The system's id of the calling thread; 0: unknown.
pub(crate) fn thread_id() -> u32 {
    0
}

/// This machine's name, as Windows gives it to programs; empty where it has none.
pub(crate) fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// Without `fork` nothing calls the handlers.
pub(crate) fn on_fork(_before: extern "C" fn(), _in_parent: extern "C" fn(), _in_child: extern "C" fn()) {}

/// Without a session nothing has to be done at the exit.
pub(crate) fn at_exit(_handler: extern "C" fn()) {}
