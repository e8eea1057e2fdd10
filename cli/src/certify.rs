//! `stepscope certify`: certificates for the hosts of a cluster.

use net::SecurityError;

use crate::args;
use crate::out;
use crate::outcome::{Failure, Outcome};

/// Creates the certificates, and prints what to do with them.
pub fn run(args: &args::Certify) -> Outcome {
    let files = net::certify(&args.out, &args.job, &args.hosts).map_err(|error| match error {
        SecurityError::Invalid(_) => Failure::wrong_use(format_args!("a host's name: {error}")),
        SecurityError::File { .. } => Failure::wrong_use(error),
    })?;
    if args.json {
        out::object(
            1,
            serde_json::json!({ "files": files.iter().map(|f| f.display().to_string()).collect::<Vec<_>>() }),
        );
        return Ok(());
    }
    files.iter().for_each(|file| out::line(file.display()));
    note!(
        "Give each host ca.pem and its own two files (keep the keys private), and the cluster's file:\n\n[tls]\nauthority = \"{0}/ca.pem\"\n\
         certificate = \"{0}/{{host}}.pem\"\nkey = \"{0}/{{host}}.key\"",
        args.out.display()
    );
    Ok(())
}
