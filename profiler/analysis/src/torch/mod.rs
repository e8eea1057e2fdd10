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

pub use modules::{ModuleCost, ModuleRow, module_of_site};
pub(crate) use scan::TorchTables;
pub use shapes::OpShapeRow;

use std::ops::Range;
use trace_store::Store;

/// The modules in a range, the ops by the shapes of their inputs, and who launched what. All are empty where the trace
/// does not report them.
pub(crate) fn torch_tables(store: &Store, range: &Range<i64>) -> TorchTables {
    scan::Scan::new(store, range).run()
}

/// The modules in a range, each followed by those that it contains, and the ops by the shapes of their inputs, the most
/// time on devices first, then on the host. Both are empty where the trace does not report them.
#[must_use]
pub fn modules_and_shapes(store: &Store, range: &Range<i64>) -> (Vec<ModuleRow>, Vec<OpShapeRow>) {
    let tables = torch_tables(store, range);
    (tables.modules, tables.op_shapes)
}
