//! `stepscope completions` and `stepscope man`: generated from the definitions that parse the command line.

use std::fs;
use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;

use crate::args::{Args, Completions, Man};
use crate::out;
use crate::outcome::Outcome;

/// The name of the program in completions and man pages.
const NAME: &str = "stepscope";

/// Prints the completions of a shell, or writes them into a folder.
pub fn completions(args: &Completions) -> Outcome {
    let mut command = Args::command();
    match &args.out {
        Some(folder) => {
            create_folder(folder)?;
            let path = clap_complete::generate_to(args.shell, &mut command, NAME, folder);
            out::line(path.with_context(|| format!("writing into {}", folder.display()))?.display());
        }
        None => {
            // Into memory first: the generators end the program when writing fails.
            let mut text = Vec::new();
            clap_complete::generate(args.shell, &mut command, NAME, &mut text);
            out::rows(|out| std::io::Write::write_all(out, &text))?;
        }
    }
    Ok(())
}

/// Writes a page for the program and one for each command.
pub fn man(args: &Man) -> Outcome {
    create_folder(&args.out)?;
    clap_mangen::generate_to(Args::command(), &args.out)
        .with_context(|| format!("writing into {}", args.out.display()))?;
    out::line(args.out.join(format!("{NAME}.1")).display());
    Ok(())
}

fn create_folder(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))
}
