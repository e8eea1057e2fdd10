//! The repository's rules as a test: the dependency table, module docs, file sizes, leftovers, layering inside
//! `dashboard`, and that every command the README shows exists.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use stepscope_tests::{root, stepscope_binary};

/// Which member may use which (ARCHITECTURE.md has the reasons). `tests`, `tests/bench` may use all.
const MAY_USE: &[(&str, &[&str])] = &[
    ("base/events", &[]),
    ("base/formats", &[]),
    ("base/net", &["threads"]),
    ("base/threads", &["events"]),
    ("engine", &["events", "formats", "threads"]),
    ("engine/distributed", &["events", "formats", "net", "threads", "engine"]),
    // `events` and `cupti` in its check of a GPU only.
    ("engine/cuda", &["events", "engine", "cupti"]),
    ("profiler", &["events", "formats"]),
    ("profiler/gather", &["events", "formats", "profiler"]),
    // `profiler` in its tests only.
    ("profiler/cupti", &["events", "profiler"]),
    // `profiler` in its tests only.
    ("profiler/inject", &["events", "cupti", "profiler"]),
    ("summaries", &["events", "formats"]),
    ("query", &["events", "formats", "profiler", "summaries"]),
    // `profiler` and `summaries` in its tests only.
    ("query/cluster", &["events", "formats", "profiler", "summaries", "query"]),
    ("dashboard", &["events", "formats", "profiler", "summaries"]),
    (
        "cli",
        &[
            "events",
            "formats",
            "net",
            "threads",
            "engine",
            "distributed",
            "cuda",
            "profiler",
            "gather",
            "cupti",
            "summaries",
            "query",
            "cluster",
            "dashboard",
        ],
    ),
    ("xtask", &[]),
];

/// Members with their Rust files, read once.
fn rust_files() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the repository is readable").flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() {
                if name != "target" && name != "runs" && !name.to_string_lossy().starts_with('.') {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let text = fs::read_to_string(&path).expect("Rust files are UTF-8");
                found.push((path.strip_prefix(root()).expect("below the root").to_path_buf(), text));
            }
        }
    }
    assert!(found.len() > 20, "the walk found only {} Rust files", found.len());
    found
}

fn fail_with(rule: &str, broken: &[String]) {
    assert!(broken.is_empty(), "{rule}:\n  {}", broken.join("\n  "));
}

#[test]
fn members_use_only_what_the_table_allows() {
    let in_house = [
        "events",
        "formats",
        "engine",
        "profiler",
        "gather",
        "cupti",
        "summaries",
        "dashboard",
        "net",
        "threads",
        "query",
        "cluster",
        "distributed",
        "cuda",
    ];
    let mut broken = Vec::new();
    for (member, allowed) in MAY_USE {
        let manifest = fs::read_to_string(root().join(member).join("Cargo.toml")).expect("each member has a manifest");
        for line in manifest.lines() {
            let name = line.split(['.', '=', ' ']).next().unwrap_or("").trim_matches('"');
            if in_house.contains(&name) && !allowed.contains(&name) {
                broken.push(format!("{member} uses {name}"));
            }
        }
    }
    fail_with("the dependency table", &broken);
}

#[test]
fn the_architecture_lists_each_member() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let missing: Vec<String> =
        MAY_USE.iter().map(|(member, _)| format!("`{member}`")).filter(|m| !text.contains(m.as_str())).collect();
    fail_with("members without a line in ARCHITECTURE.md", &missing);
}

#[test]
fn each_file_says_what_it_is() {
    let broken: Vec<String> = rust_files()
        .iter()
        .filter(|(_, text)| !text.lines().find(|l| !l.is_empty()).is_some_and(|l| l.starts_with("//!")))
        .map(|(path, _)| path.display().to_string())
        .collect();
    fail_with("files that do not begin with module docs (//!)", &broken);
}

#[test]
fn files_stay_below_800_lines() {
    let broken: Vec<String> = rust_files()
        .iter()
        .filter(|(_, text)| text.lines().count() > 800)
        .map(|(path, text)| format!("{} has {}", path.display(), text.lines().count()))
        .collect();
    fail_with("files over 800 lines", &broken);
}

/// What is simulated takes threads, waits and time from where a simulation can give them.
#[test]
fn what_is_simulated_waits_through_threads() {
    // The ticks of clock::now are stamps of traces: nobody waits by them.
    let clocks = ["clock::mono", "clock::wall", "clock::cpu", "Instant"];
    let words = ["std::thread", "parking_lot::Condvar", "{Condvar, Mutex}", "mpsc"].into_iter().chain(clocks);
    let mut broken = Vec::new();
    for (path, text) in rust_files() {
        let is_simulated = ["base/net/src", "engine/distributed/src"].iter().any(|folder| path.starts_with(folder));
        for word in words.clone().filter(|word| is_simulated && text.contains(word)) {
            broken.push(format!("{} has {word}: use base/threads", path.display()));
        }
    }
    fail_with("waits that a simulation does not know", &broken);
}

#[test]
fn nothing_is_left_over() {
    // Spelled in parts, so that this file does not find itself.
    let words =
        [["TO", "DO"], ["FIX", "ME"], ["XX", "X:"], ["HA", "CK:"], ["dbg", "!("], ["#[ig", "nore"]].map(|w| w.concat());
    let mut broken = Vec::new();
    for (path, text) in rust_files() {
        for (number, line) in text.lines().enumerate() {
            if let Some(word) = words.iter().find(|w| line.contains(w.as_str())) {
                broken.push(format!("{}:{}: {word}", path.display(), number + 1));
            }
        }
    }
    fail_with("leftovers", &broken);
}

/// Lines of code (comments cut) of the files that `select` picks, with the words found in them.
fn lines_with(files: &[(PathBuf, String)], select: impl Fn(&Path) -> bool, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| select(path)) {
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            if let Some(word) = words.iter().find(|w| code.contains(**w)) {
                found.push(format!("{}:{}: {word}", path.display(), number + 1));
            }
        }
    }
    found
}

#[test]
fn only_the_clock_reads_a_clock() {
    let words = ["_rdtsc", "clock_gettime", "cntvct", "Instant::now", "SystemTime::now"];
    let select = |path: &Path| {
        let shown = path.to_string_lossy();
        // xtask links nothing of the workspace; the tests and benches time from outside.
        !shown.starts_with("base/events/src/clock") && !shown.starts_with("xtask") && !shown.starts_with("tests/")
    };
    fail_with("clocks read outside events::clock", &lines_with(&rust_files(), select, &words));
}

#[test]
fn models_and_layouts_know_no_egui() {
    let select = |path: &Path| {
        path.starts_with("dashboard/src")
            && path.file_name().is_some_and(|name| name == "model.rs" || name == "layout.rs")
    };
    let files = rust_files();
    assert!(files.iter().any(|(path, _)| select(path)), "dashboard has no model.rs");
    fail_with("egui in a model or layout", &lines_with(&files, select, &["egui"]));
}

#[test]
fn colours_come_from_the_theme() {
    let words = [
        "from_rgb",
        "from_gray",
        "from_rgba",
        "from_black_alpha",
        "from_white_alpha",
        "Color32::RED",
        "Color32::WHITE",
        "Color32::BLACK",
    ];
    let select = |path: &Path| path.starts_with("dashboard/src") && !path.starts_with("dashboard/src/theme");
    fail_with("colours outside dashboard/src/theme", &lines_with(&rust_files(), select, &words));
}

/// The commands in the README's code blocks: words after `stepscope`, `cargo run --release --` and `cargo xtask`.
fn readme_commands() -> BTreeMap<String, Vec<String>> {
    let text = fs::read_to_string(root().join("README.md")).expect("README.md");
    let mut commands: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
            continue;
        }
        let line = line.trim().trim_start_matches("$ ");
        for (prefix, program) in
            [("stepscope ", "stepscope"), ("cargo run --release -- ", "stepscope"), ("cargo xtask ", "xtask")]
        {
            if let Some(rest) = line.strip_prefix(prefix).filter(|_| in_block) {
                let word = rest.split_whitespace().next().unwrap_or("").to_owned();
                commands.entry(program.to_owned()).or_default().push(word);
            }
        }
    }
    commands
}

#[test]
fn the_readmes_commands_exist() {
    let commands = readme_commands();
    let xtask = fs::read_to_string(root().join("xtask/src/main.rs")).expect("xtask");
    assert!(commands.contains_key("xtask") && commands.contains_key("stepscope"), "the README shows {commands:?}");
    let unknown: Vec<String> =
        commands["xtask"].iter().filter(|c| !xtask.contains(&format!("Some(\"{c}\")"))).cloned().collect();
    fail_with("xtask commands in the README that do not exist", &unknown);
    let Some(binary) = stepscope_binary("the check of the README's stepscope commands") else { return };
    for command in &commands["stepscope"] {
        let help = Command::new(&binary).args([command.as_str(), "--help"]).output().expect("the binary runs");
        assert!(help.status.success(), "README shows 'stepscope {command}', which does not exist");
        assert!(String::from_utf8_lossy(&help.stdout).contains("Example"), "stepscope {command} --help has no example");
    }
}
