//! The repository's rules as a test: the dependency table, module docs, file sizes, leftovers, layering inside
//! `dashboard`, colours, checks that are left out, and that every command the README shows exists; circles of imports
//! ([`circles`]), the floors of the engine ([`floors`]), banned words ([`words`]) and public items without a caller ([`unused`]).

mod circles;
mod floors;
mod modules;
mod source;
mod unused;
mod words;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use stepscope_tests::{root, stepscope_binary};

/// Which member may use which, as ARCHITECTURE.md's table has it with the reasons: what it is built of, and what its tests,
/// examples and benchmarks use besides. `tests`, `tests/bench` and `tests/support` are nobody's but the tests'.
const MAY_USE: &[(&str, &[&str], &[&str])] = &[
    ("base/c", &["events", "trace-record"], &["trace-store"]),
    ("base/events", &[], &[]),
    ("base/formats", &[], &[]),
    ("base/mpi", &["net", "threads"], &[]),
    ("base/net", &["threads"], &[]),
    ("base/palette", &[], &[]),
    ("base/text", &[], &[]),
    ("base/threads", &["events"], &[]),
    ("engine/core", &["events", "formats", "threads"], &["engine"]),
    ("engine/ops", &["engine-core", "events", "formats"], &[]),
    ("engine", &["engine-core", "engine-ops", "events", "formats", "threads"], &[]),
    ("engine/distributed", &["engine", "events", "formats", "net", "net-mpi", "threads"], &[]),
    ("engine/cuda", &["engine"], &["cupti", "events"]),
    (
        "engine/train",
        &[
            "cuda",
            "cupti",
            "distributed",
            "engine",
            "events",
            "formats",
            "gather",
            "net",
            "summaries",
            "text",
            "trace-record",
            "trace-store",
        ],
        &[],
    ),
    ("profiler/model", &["events"], &[]),
    ("profiler/store", &["events", "trace-model"], &["trace-record"]),
    ("profiler/record", &["events", "trace-model"], &["trace-analysis", "trace-store"]),
    ("profiler/formats", &["events", "formats", "trace-analysis", "trace-model", "trace-store"], &[]),
    ("profiler/analysis", &["text", "trace-model", "trace-store"], &["trace-store"]),
    (
        "profiler/gather",
        &["events", "formats", "trace-formats", "trace-model", "trace-store"],
        &["trace-record", "trace-store"],
    ),
    ("profiler/cupti", &["events"], &["trace-analysis", "trace-formats", "trace-model", "trace-record", "trace-store"]),
    ("profiler/dumps", &[], &[]),
    ("profiler/inject", &["cupti", "events"], &["trace-store"]),
    ("summaries", &["events", "formats", "palette", "trackers"], &[]),
    ("summaries/trackers", &[], &[]),
    ("python", &["events", "formats", "summaries", "trace-record", "trace-store"], &[]),
    ("query", &["formats", "summaries", "text", "trace-analysis", "trace-formats", "trace-model", "trace-store"], &[]),
    ("query/cluster", &["formats", "query"], &["summaries", "trace-formats", "trace-store"]),
    (
        "dashboard",
        &[
            "events",
            "formats",
            "palette",
            "summaries",
            "text",
            "torch-dumps",
            "trace-analysis",
            "trace-formats",
            "trace-model",
            "trace-store",
            "ui",
        ],
        &[],
    ),
    ("dashboard/ui", &["events", "palette", "text"], &[]),
    (
        "cli",
        &[
            "cluster",
            "cuda",
            "cupti",
            "dashboard",
            "distributed",
            "engine",
            "events",
            "formats",
            "gather",
            "net",
            "palette",
            "query",
            "summaries",
            "text",
            "torch-dumps",
            "trace-analysis",
            "trace-formats",
            "trace-model",
            "trace-record",
            "trace-store",
            "train",
        ],
        &[],
    ),
    ("xtask", &[], &[]),
];

/// The members of `section` that a manifest names, also under `[target.*]`; `test_support` is every test's.
fn in_house(manifest: &toml::Table, section: &str) -> Vec<String> {
    let platforms = manifest.get("target").and_then(toml::Value::as_table);
    let tables = std::iter::once(manifest)
        .chain(platforms.into_iter().flat_map(|t| t.values().filter_map(toml::Value::as_table)));
    let names = tables.filter_map(|table| table.get(section)?.as_table()).flat_map(toml::Table::keys);
    let members = workspace_members();
    let mut names: Vec<String> = names.filter(|name| members.contains(name)).cloned().collect();
    names.sort();
    names
}

/// The names under which members of this workspace are used, but for the tests' own.
fn workspace_members() -> Vec<String> {
    let manifest = manifest(".");
    let all = manifest["workspace"]["dependencies"].as_table().expect("a table").iter();
    let has_path = all.filter(|(_, value)| value.get("path").is_some()).map(|(name, _)| name.clone());
    has_path.filter(|name| name != "test-support").collect()
}

fn manifest(member: &str) -> toml::Table {
    let text = fs::read_to_string(root().join(member).join("Cargo.toml")).expect("each member has a manifest");
    text.parse().expect("cargo reads it")
}

/// The members of the workspace, the deepest folders first.
fn members() -> &'static [String] {
    static MEMBERS: OnceLock<Vec<String>> = OnceLock::new();
    MEMBERS.get_or_init(|| {
        let manifest = manifest(".");
        let all = manifest["workspace"]["members"].as_array().expect("a list").iter().filter_map(toml::Value::as_str);
        let mut all: Vec<String> = all.map(str::to_owned).collect();
        all.sort_by_key(|member| std::cmp::Reverse(member.len()));
        all
    })
}

/// The member that a file belongs to; `docs` for what belongs to none.
fn member_of(path: &Path) -> String {
    members().iter().find(|member| path.starts_with(member)).map_or("docs", String::as_str).to_owned()
}

/// Rust files.
fn rust_files() -> Vec<(PathBuf, String)> {
    files_of(&["rs"])
}

/// Rust files and the documents, but for the history.
fn text_files() -> Vec<(PathBuf, String)> {
    let mut files = files_of(&["rs", "md"]);
    files.retain(|(path, _)| path != Path::new("CHANGELOG.md") && !path.starts_with("tests/data"));
    files
}

fn files_of(extensions: &[&str]) -> Vec<(PathBuf, String)> {
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
            } else if path.extension().is_some_and(|ext| extensions.iter().any(|own| ext == *own)) {
                let text = fs::read_to_string(&path).expect("text files are UTF-8");
                found.push((path.strip_prefix(root()).expect("below the root").to_path_buf(), text));
            }
        }
    }
    assert!(found.len() > 20, "the walk found only {} files", found.len());
    found.sort();
    found
}

fn fail_with(rule: &str, broken: &[String]) {
    assert!(broken.is_empty(), "{rule}:\n  {}", broken.join("\n  "));
}

/// Fails if a member has lines that break a rule.
fn fail_by_member(rule: &str, found: &BTreeMap<String, Vec<String>>) {
    let broken = found.iter().filter(|(_, lines)| !lines.is_empty());
    let broken: Vec<String> =
        broken.map(|(member, lines)| format!("{member}: {}\n    {}", lines.len(), lines.join("\n    "))).collect();
    fail_with(rule, &broken);
}

#[test]
fn members_use_what_the_table_says() {
    let mut broken = Vec::new();
    for (member, uses, tests_use) in MAY_USE {
        let manifest = manifest(member);
        for (section, allowed) in
            [("dependencies", *uses), ("build-dependencies", &[]), ("dev-dependencies", *tests_use)]
        {
            let used = in_house(&manifest, section);
            if used != allowed {
                broken.push(format!("{member} [{section}] uses {used:?}, the table has {allowed:?}"));
            }
        }
        let helps = |section: &str| manifest.get(section).is_some_and(|table| table.get("test-support").is_some());
        if helps("dependencies") || helps("build-dependencies") {
            broken.push(format!("{member} is built with test_support, which is for tests only"));
        }
    }
    fail_with("the dependency table", &broken);
    let listed: Vec<&str> =
        MAY_USE.iter().map(|(member, ..)| *member).chain(["tests", "tests/bench", "tests/support"]).collect();
    let unlisted: Vec<String> = members().iter().filter(|member| !listed.contains(&member.as_str())).cloned().collect();
    fail_with("members that the dependency table lacks", &unlisted);
}

/// The table of ARCHITECTURE.md has a row for each member, whose last column is what the table above allows.
#[test]
fn the_architecture_says_who_uses_whom() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let members = workspace_members();
    let mut broken = Vec::new();
    for (member, uses, tests_use) in MAY_USE {
        let row = text.lines().find(|line| line.starts_with(&format!("| `{member}` |")));
        let list = |names: &[&str]| if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        let others: Vec<String> = members.iter().filter(|name| !uses.contains(&name.as_str())).cloned().collect();
        let mut expected = if others.len() < 8 { format!("all but {}", others.join(", ")) } else { list(uses) };
        if !tests_use.is_empty() {
            expected += &format!(" (its tests: {})", list(tests_use));
        }
        let found = row.and_then(|row| row.trim_end_matches([' ', '|']).rsplit('|').next()).map(str::trim);
        if found != Some(expected.as_str()) {
            broken.push(format!("{member}: {found:?}, not {expected:?}"));
        }
    }
    fail_with("rows of ARCHITECTURE.md's table of members", &broken);
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
        let is_simulated =
            ["base/mpi/src", "base/net/src", "engine/distributed/src"].iter().any(|folder| path.starts_with(folder));
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

/// Whether a file of `dashboard` is of a model or a layout: `model.rs`, or any file of a folder `model`.
fn is_model_or_layout(path: &Path) -> bool {
    let parts = ["model", "layout"];
    let of_dashboard = path.strip_prefix("dashboard/src").ok();
    of_dashboard
        .is_some_and(|path| path.iter().any(|part| parts.contains(&part.to_string_lossy().trim_end_matches(".rs"))))
}

#[test]
fn models_and_layouts_know_no_egui() {
    let files = rust_files();
    let n = files.iter().filter(|(path, _)| is_model_or_layout(path)).count();
    assert!(n > 10, "dashboard has only {n} files of models and layouts");
    fail_with("egui in a model or layout", &lines_with(&files, is_model_or_layout, &["egui"]));
}

/// Where a colour may be made: the palette, and where it becomes egui's and that of plotters.
const PALETTES: &[&str] = &["base/palette", "dashboard/ui/src/theme", "summaries/src/charts/paint.rs"];

/// Whether there is a colour in a line of code: one that is made of numbers, one of egui's own, or `#rgb` of HTML.
fn has_color(code: &str) -> bool {
    let made = [
        "from_rgb",
        "from_gray",
        "from_rgba",
        "from_black_alpha",
        "from_white_alpha",
        "Color32::from_hex",
        "RGBColor(",
    ];
    let is_made = made.iter().any(|word| code.contains(word));
    // Transparent is none, and the placeholder is filled in by the theme.
    let own = code.split("Color32::").skip(1).any(|rest| {
        let name: String = rest.chars().take_while(|c| c.is_ascii_uppercase() || *c == '_').collect();
        name.len() > 2 && name != "TRANSPARENT" && name != "PLACEHOLDER"
    });
    let html = code.split('#').skip(1).any(|rest| {
        let n = rest.chars().take_while(char::is_ascii_hexdigit).count();
        let ends = !rest[n..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        [3, 6, 8].contains(&n) && ends
    });
    is_made || own || html
}

#[test]
fn colors_come_from_the_palettes() {
    assert!(has_color("Color32::from_rgb(1, 2, 3)") && has_color("Color32::RED") && has_color("fill=\"#fa0\""));
    assert!(!has_color("Color32::TRANSPARENT") && !has_color("#[test]") && !has_color("r#\"x\"#"));
    let product = |path: &Path| {
        let is_product =
            ["cli", "dashboard", "profiler", "query", "summaries"].iter().any(|member| path.starts_with(member));
        let is_test = path.iter().any(|part| part == "tests" || part == "examples" || part == "tests.rs");
        is_product && !is_test && !PALETTES.iter().any(|palette| path.starts_with(palette))
    };
    let mut broken = Vec::new();
    for (path, text) in rust_files().iter().filter(|(path, _)| product(path)) {
        for (number, line) in text.lines().enumerate() {
            if has_color(line.split("//").next().unwrap_or("")) {
                broken.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    fail_with("colours outside the palettes", &broken);
}

/// A test that lacks something from outside says so where it is counted (`tests/support`).
#[test]
fn tests_leave_nothing_out_in_silence() {
    // In two parts, so that this file does not find itself.
    let words = [["SKIP", "PED"], ["\"skip", "ped:"]].map(|parts| parts.concat());
    // Switches of how much is tried, and of what the product itself does.
    let switches = [
        "SOAK",
        "SEED",
        "SHOTS",
        "TEST_",
        "GATHER_KILLS",
        "PROGRAMS\"",
        "HISTOGRAM_MIB",
        "NODE",
        "ONNX",
        "CUDA_LIBRARIES",
        "MPI\"",
    ];
    let of_tests =
        |path: &Path| path.iter().any(|part| part == "tests" || part == "tests.rs") && !path.starts_with("tests/bench");
    let mut broken = Vec::new();
    for (path, text) in rust_files().iter().filter(|(path, _)| of_tests(path) && !path.starts_with("tests/support")) {
        for (number, line) in text.lines().enumerate() {
            let asks = ["var(\"STEPSCOPE_", "var_os(\"STEPSCOPE_"].iter().find_map(|word| line.split_once(word));
            let is_asked = asks.is_some_and(|(_, name)| !switches.iter().any(|switch| name.starts_with(switch)));
            if is_asked || words.iter().any(|word| line.contains(word.as_str())) {
                broken.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    fail_with("tests that do not go by test_support", &broken);
}

/// The commands in the code blocks of the README and its page of commands: words after `stepscope`,
/// `cargo run --release --` and `cargo xtask`.
fn readme_commands() -> BTreeMap<String, Vec<String>> {
    let pages = ["README.md", "docs/use/commands.md"].map(|page| fs::read_to_string(root().join(page)));
    let text = pages.map(|page| page.expect("the page")).join("\n");
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
