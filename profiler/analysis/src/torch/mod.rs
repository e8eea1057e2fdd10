//! What traces of PyTorch say of models: modules, and ops by the shapes of their inputs. Traces of `stepscope.torch`
//! have the modules too.
//!
//! 1. [`args`]: the arguments of ops; [`flop`]: the operations that follow from them.
//! 2. [`device_time`]: the device's work by the call that enqueued it.
//! 3. [`modules`], [`shapes`]: the two tables; [`scan`] fills them in one pass.

mod args;
mod device_time;
mod flop;
mod modules;
mod scan;
mod shapes;

pub use modules::{ModuleCost, ModuleRow};
pub(crate) use scan::TorchTables;
pub use shapes::OpShapeRow;

use std::ops::Range;
use trace_store::Store;

/// The modules in a range, the ops by the shapes of their inputs, and who launched what. All are empty where the trace
/// does not report them.
pub(crate) fn torch_tables(store: &Store, range: &Range<i64>) -> TorchTables {
    scan::Scan::new(store, range).run()
}
