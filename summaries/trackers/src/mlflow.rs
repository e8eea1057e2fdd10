//! MLflow: runs in its folder `mlruns`, and in its database.

pub(crate) mod database;
pub(crate) mod folder;
mod images;
pub(crate) mod run_folder;
