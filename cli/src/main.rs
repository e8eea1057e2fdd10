//! The `stepscope` command. Exit codes: 0 done; 1 the work failed; 2 wrong use or bad input; 128 + n ended by signal n.
//! A command that runs another program passes on that program's code.

// First: the other modules use its macros.
#[macro_use]
mod out;

mod analyze;
mod args;
mod certify;
mod collect;
mod compare;
mod convert;
mod demo;
mod diff;
mod display;
mod doctor;
mod dumps;
mod dynamic_library;
mod exit;
mod export;
mod freeze;
mod graph;
mod import;
mod logdir;
mod manual;
mod master;
mod mcp;
mod ops;
mod outcome;
mod params;
mod progress;
#[cfg_attr(not(feature = "query"), path = "no_query.rs")]
mod query;
mod record;
mod remote;
mod report;
mod run;
mod runs;
mod serve;
mod signals;
mod source;
#[cfg(feature = "query")]
mod sql;
mod summary;
mod trace_file;
mod training;
mod view;
mod watch;
#[cfg(not(feature = "query"))]
mod with_sql;

use std::process::ExitCode;

use clap::FromArgMatches;

use args::{Args, Command};
use outcome::Outcome;

fn main() -> ExitCode {
    #[cfg(not(feature = "query"))]
    with_sql::run_instead();
    let args = Args::from_arg_matches(&args::command().get_matches()).unwrap_or_else(|error| error.exit());
    if let Err(error) = events::start_from_env() {
        note!("warning: {error}");
    }
    let verbosity = args.verbosity();
    let progress = progress::begin(args.command.activity(), verbosity);
    let outcome: Outcome = match args.command {
        Command::Demo(demo) => demo::run(&demo, verbosity),
        Command::Train(train) => training::run(&train, verbosity),
        Command::Worker(worker) => training::run_worker(&worker, verbosity),
        Command::Master(master) => master::run(&master, verbosity),
        Command::Certify(certify) => certify::run(&certify),
        Command::View(view) => view::run(view),
        Command::Record(record) => record::run(&record, verbosity),
        Command::Collect(collect) => collect::run(&collect, verbosity),
        Command::Serve(serve) => serve::run(&serve, verbosity),
        Command::Run(run) => run::run(&run),
        Command::Params(params) => params::run(&params),
        Command::Compare(compare) => compare::run(&compare),
        Command::Freeze(freeze) => freeze::run(&freeze),
        Command::Analyze(analyze) => analyze::run(&analyze),
        Command::Diff(diff) => diff::run(&diff),
        Command::Dumps(dumps) => dumps::run(&dumps),
        Command::Report(report) => report::run(&report),
        Command::Runs(runs) => runs::run(&runs),
        Command::Import(import) => import::run(&import, verbosity),
        Command::Mcp(_) => mcp::run(),
        Command::Watch(watch) => watch::run(&watch),
        Command::Convert(convert) => convert::run(&convert),
        Command::Export(export) => export::run(&export, verbosity),
        Command::Query(query) => query::run(&query, verbosity),
        Command::Ops(ops) => ops::run(&ops),
        Command::Doctor(doctor) => doctor::run(&doctor),
        Command::Completions(completions) => manual::completions(&completions),
        Command::Man(man) => manual::man(&man),
    };
    drop(progress);
    exit::exit_code(outcome)
}
