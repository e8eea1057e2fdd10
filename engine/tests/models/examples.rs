//! Every program in `examples` runs, and prints what `docs/use/training.md` says it does. `cargo test` builds them; where only this
//! test was built, that is said.

use std::path::PathBuf;
use std::process::Command;

/// The lines that an example prints; nothing where it was not built.
fn run(name: &str, args: &[&str]) -> Option<String> {
    let deps = std::env::current_exe().unwrap();
    let folder: PathBuf = deps.parent().and_then(|deps| deps.parent()).unwrap().join("examples");
    let program = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if !program.exists() {
        test_support::left_out(format_args!("{name} was not built: cargo build -p engine --examples"));
        return None;
    }
    let output = Command::new(program).args(args).output().unwrap();
    let (output_text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name}: {output_text}{errors}");
    Some(output_text.into_owned())
}

/// The numbers in a line.
fn numbers(line: &str) -> Vec<f64> {
    let is_number = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
    line.split(|c: char| !is_number(c)).filter_map(|word| word.trim_end_matches('.').parse().ok()).collect()
}

#[test]
fn gradient_accumulation_takes_the_path_of_the_whole_batch() {
    let Some(output_text) = run("gradient_accumulation", &[]) else { return };
    let steps: Vec<Vec<f64>> = output_text.lines().skip(1).map(numbers).collect();
    assert_eq!(steps.iter().map(|s| s[0]).collect::<Vec<_>>(), [10.0, 20.0, 30.0, 40.0, 50.0], "{output_text}");
    assert!(steps.iter().all(|s| (s[1] - s[2]).abs() < 1e-3) && steps[4][1] < steps[0][1], "{output_text}");
}

#[test]
fn the_lstm_over_three_devices_is_the_one_of_one_device() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let Some(output_text) = run("model_parallel_lstm", &[trace.to_str().unwrap()]) else { return };
    let steps: Vec<Vec<f64>> = output_text.lines().map(numbers).collect();
    assert!(steps.len() == 2 && steps.iter().all(|s| s[0] > 0.0 && s[1] > 0.0), "{output_text}");
    assert!(trace.join("control").exists(), "{output_text}");
}

#[test]
fn concurrent_steps_learn_as_one_after_the_other() {
    let Some(output_text) = run("concurrent_steps", &["100"]) else { return };
    let accuracies: Vec<f64> = output_text.lines().map(|line| numbers(line)[2]).collect();
    assert!(accuracies.len() == 3 && accuracies.iter().all(|a| *a > 70.0), "{output_text}");
}

#[test]
fn buckets_halve_the_padding() {
    let Some(output_text) = run("length_buckets", &[]) else { return };
    let [own, any] = numbers(output_text.lines().last().unwrap())[..] else { panic!("{output_text}") };
    assert!(own < any / 2.0, "{output_text}");
}
