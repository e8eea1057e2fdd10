//! `stepscope import`: converts other tools' traces to a sealed trace.

use anyhow::Context;

use crate::args::{Import, Verbosity};
use crate::outcome::{Failure, Outcome};
use crate::{out, progress, trace_file};

/// Reads, seals, reports.
pub fn run(args: &Import, verbosity: Verbosity) -> Outcome {
    let is_taken = args.out.exists() && !args.out.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    if is_taken && !(args.force && trace_store::seal::is_sealed(&args.out)) {
        let remedy =
            if trace_store::seal::is_sealed(&args.out) { "--force writes over it" } else { "give another folder" };
        return Err(Failure::wrong_use(format_args!("{} exists; {remedy}", args.out.display())));
    }
    let store = trace_file::open_all(&args.files)?;
    progress::set_activity("writing");
    let sealed =
        trace_store::seal::write(&store, &args.out).with_context(|| format!("writing {}", args.out.display()))?;
    for warning in store.warnings() {
        note!("warning: {}: {}", warning.source, warning.text);
    }
    let bytes = sealed.parquet_bytes + sealed.sidecar_bytes;
    if args.json {
        out::object(
            1,
            serde_json::json!({
                "trace": args.out, "slices": sealed.slices, "tracks": store.tracks().len(), "bytes": bytes,
                "warnings": store.warnings().iter().map(|w| &w.text).collect::<Vec<_>>(),
            }),
        );
    } else if verbosity > Verbosity::Quiet {
        let (slices, tracks) = (text::count(sealed.slices), text::count(store.tracks().len() as u64));
        note!("stepscope: {}: {slices} slices on {tracks} tracks, {}", args.out.display(), text::bytes(bytes));
    }
    Ok(())
}
