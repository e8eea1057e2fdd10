//! `stepscope master`: runs the graphs of clients on the tasks of a cluster, until Ctrl-C or SIGTERM.

use distributed::grpc::ServeError;
use distributed::{Cluster, Master, MasterOptions, Server};

use crate::args::{self, Verbosity};
use crate::out;
use crate::outcome::{Failure, Outcome};
use crate::signals;

/// Serves clients until Ctrl-C or SIGTERM.
///
/// # Errors
/// `Failure::Usage` when the cluster's file or the address is wrong.
pub fn run(args: &args::Master, verbosity: Verbosity) -> Outcome {
    let cluster = Cluster::read(&args.cluster).map_err(Failure::wrong_use)?;
    let address = match &args.listen {
        Some(text) => Some(text.parse().map_err(Failure::wrong_use)?),
        None => cluster.master.clone(),
    };
    let Some(address) = address else {
        let file = args.cluster.display();
        return Err(Failure::wrong_use(format_args!(
            "{file} has no `master = \"HOST:PORT\"`: add it, or give --listen"
        )));
    };
    let n_tasks = cluster.tasks.len();
    let security = cluster.security(cluster.master.as_ref()).map_err(Failure::wrong_use)?;
    let options = MasterOptions { security, ..MasterOptions::default() };
    let stopped = signals::stop_signals()?;
    let server = Server::start(Master::new(cluster, options), &address).map_err(|error| match error {
        ServeError::Listen(..) => Failure::Work(error.into()),
        _ => Failure::wrong_use(error),
    })?;
    let address = server.address();
    if args.json {
        out::announce(1, serde_json::json!({ "address": address.to_string(), "tasks": n_tasks }))?;
    }
    if verbosity > Verbosity::Quiet {
        note!("stepscope: master of {n_tasks} tasks at grpc://{address}; Ctrl-C ends it");
    }
    // Fails only if the thread that handles signals has ended.
    let _ = stopped.recv();
    Ok(())
}
