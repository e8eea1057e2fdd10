//! `stepscope._native`: what the Python package does in Rust.
//!
//! - [`event_writer`]: event files, for `stepscope.SummaryWriter`;
//! - [`recording`]: a process that records itself, and its children;
//! - [`slices`]: slices, marks, counters and flows; [`sites`] finds their names' ids, [`calls`] takes the calls that must be quick.

mod calls;
mod event_writer;
mod recording;
mod sites;
mod slices;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::event_writer::{EventWriter, png};
    #[pymodule_export]
    use super::recording::{Recording, after_fork_in_child, begin_step, end_step, is_recording, join_recording};
    #[pymodule_export]
    use super::slices::{Slice, begin, counter, flow_in, flow_out, mark, next_flow_id};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        super::calls::add(module)
    }
}
