//! The tools: their descriptions, and the commands that they run.

use std::path::Path;

use formats::FileKind;
use serde_json::{Value, json};

/// The points of a curve that are given where the client asks for no other number.
const DEFAULT_POINTS: usize = 200;
/// The rows of a query likewise.
const DEFAULT_ROWS: usize = 200;

/// A command of this program, and what of its output is part of the result.
pub struct ToolCommand {
    /// The arguments.
    pub args: Vec<String>,
    /// Shortens the output.
    pub shorten: Box<dyn Fn(&str) -> String + Send>,
}

/// The tools as clients list them.
pub fn list() -> Value {
    let path = ("path", "string", "A trace, a run, a logdir or a folder with such below it", true);
    let mut tools = vec![
        tool("open", "What is at a path: runs with their tags, or a trace with its slices, tracks and steps.", &[path]),
        tool(
            "findings",
            "Why a program was slow: findings with what each would save, where the time went, the critical path, ops by self \
             time, stalls by cause. Markdown.",
            &[path, ("step", "integer", "Only this step", false)],
        ),
        tool(
            "diff",
            "Two traces, step for step: which ops became slower or faster.",
            &[("a", "string", "The first trace", true), ("b", "string", "The second trace", true)],
        ),
        tool("tags", "The runs of a logdir: tags, kinds, numbers of points, last values, hyperparameters.", &[path]),
        tool(
            "points",
            "The points of a scalar tag as CSV (run,tag,step,wall_time,value), evenly thinned out.",
            &[
                path,
                ("tag", "string", "The tag", true),
                ("run", "string", "Only this run", false),
                ("max_points", "integer", "At most so many points of each run (200)", false),
            ],
        ),
    ];
    if cfg!(feature = "query") {
        let sql = "Tables: slices(ts_ns, dur_ns, track_id, lane, name, category, op, node, step, correlation, depth, arg), tracks, \
                   flows, counters, ops, stalls, steps, nodes, warnings, scalars(run, tag, step, wall_time, value). \
                   `DESCRIBE slices` shows the columns.";
        tools.push(tool(
            "query",
            &format!("SQL (SELECT only) over a trace or logdir, rows as CSV. {sql}"),
            &[path, ("sql", "string", "The query", true), ("limit", "integer", "At most so many rows (200)", false)],
        ));
    }
    Value::Array(tools)
}

fn tool(name: &str, about: &str, params: &[(&str, &str, &str, bool)]) -> Value {
    let properties = params.iter().map(|(name, kind, about, _)| {
        let property = json!({ "type": kind, "description": about });
        ((*name).to_owned(), property)
    });
    let required: Vec<&str> = params.iter().filter(|(.., is_required)| *is_required).map(|(name, ..)| *name).collect();
    json!({
        "name": name, "description": about,
        "inputSchema": {
            "type": "object", "properties": properties.collect::<serde_json::Map<_, _>>(), "required": required,
            "additionalProperties": false,
        },
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })
}

/// The commands of a tool.
///
/// # Errors
/// The tool is unknown, or an argument is missing, unknown or of another type.
pub fn commands(name: &str, args: &Value) -> Result<Vec<ToolCommand>, String> {
    let tools = list();
    let tool = tools.as_array().into_iter().flatten().find(|tool| tool["name"] == name);
    let schema = &tool.ok_or_else(|| format!("no tool '{name}'"))?["inputSchema"];
    check(schema, args)?;
    let text = |key: &str| args[key].as_str().unwrap_or_default().to_owned();
    let number = |key: &str, default: usize| args[key].as_u64().map_or(default, |number| number as usize);
    Ok(match name {
        "open" => open(&text("path")),
        "findings" => {
            let step = args["step"].as_i64().map(|step| format!("--step={step}"));
            let options = step.into_iter().chain(["--format=markdown".to_owned()]);
            vec![command("analyze", options, [text("path")], str::to_owned)]
        }
        "diff" => vec![command("diff", [], [text("a"), text("b")], str::to_owned)],
        "tags" => vec![command("runs", ["--json".to_owned()], [text("path")], str::to_owned)],
        "points" => {
            let exactly = |option: &str, name: &str| format!("--{option}=^{}$", regex::escape(name));
            let run = args["run"].as_str().map(|run| exactly("run", run));
            let options = run.into_iter().chain([exactly("tag", &text("tag")), "--format=csv".to_owned()]);
            let max_points = number("max_points", DEFAULT_POINTS);
            vec![command("export", options, [text("path")], move |csv| thinned(csv, max_points))]
        }
        // The only one left of those that are listed.
        _ => {
            let options = ["--format=csv".to_owned(), format!("--limit={}", number("limit", DEFAULT_ROWS))];
            vec![command("query", options, [text("path"), text("sql")], str::to_owned)]
        }
    })
}

fn command(
    name: &str,
    options: impl IntoIterator<Item = String>,
    values: impl IntoIterator<Item = String>,
    shorten: impl Fn(&str) -> String + Send + 'static,
) -> ToolCommand {
    // Behind `--` nothing is taken for an option.
    let args = std::iter::once(name.to_owned()).chain(options).chain(["--".to_owned()]).chain(values).collect();
    ToolCommand { args, shorten: Box::new(shorten) }
}

/// What a path holds; of a run's folder both parts.
fn open(path: &str) -> Vec<ToolCommand> {
    let runs = || command("runs", ["--json".to_owned()], [path.to_owned()], str::to_owned);
    // The head of the analysis: counts and findings.
    let head = |text: &str| text.lines().take(20).fold(String::new(), |head, line| head + line + "\n");
    let trace = || command("analyze", ["--format=markdown".to_owned()], [path.to_owned()], head);
    match formats::sniff(Path::new(path)) {
        Ok(FileKind::EventFile | FileKind::Logdir | FileKind::RunLog) => vec![runs()],
        Ok(FileKind::RunFolder) => vec![runs(), trace()],
        Ok(FileKind::GraphDef | FileKind::GraphDefText) => {
            vec![command("params", [], [path.to_owned()], str::to_owned)]
        }
        // The command says what is wrong with anything else.
        _ => vec![trace()],
    }
}

/// Checks arguments against a tool's schema.
fn check(schema: &Value, args: &Value) -> Result<(), String> {
    let empty = serde_json::Map::new();
    let args = match args {
        Value::Null => &empty,
        Value::Object(args) => args,
        _ => return Err("the arguments are no object".to_owned()),
    };
    for (name, value) in args {
        let kind = schema["properties"][name]["type"].as_str().ok_or_else(|| format!("no argument '{name}'"))?;
        let is_of_kind = if kind == "integer" { value.is_i64() || value.is_u64() } else { value.is_string() };
        if !is_of_kind {
            return Err(format!("'{name}' must be of type {kind}"));
        }
    }
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    match required.into_iter().find(|name| !args.contains_key(*name)) {
        Some(name) => Err(format!("the argument '{name}' is missing")),
        None => Ok(()),
    }
}

/// At most `max_points` lines of each run, the first and the last included, and the header.
fn thinned(csv: &str, max_points: usize) -> String {
    let mut lines = csv.lines();
    let header = lines.next().unwrap_or_default();
    let mut runs: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in lines {
        let run = run_of(line);
        match runs.last_mut().filter(|(name, _)| *name == run) {
            Some((_, lines)) => lines.push(line),
            None => runs.push((run, vec![line])),
        }
    }
    let mut text = format!("{header}\n");
    for (run, lines) in &runs {
        let n = lines.len().min(max_points.max(1));
        // With one line it is the last.
        let row = |i: usize| if n == 1 { lines.len() - 1 } else { i * (lines.len() - 1) / (n - 1) };
        (0..n).for_each(|i| text.extend([lines[row(i)], "\n"]));
        if n < lines.len() {
            text.push_str(&format!("# {n} of {} points of {run}\n", lines.len()));
        }
    }
    text
}

/// The run of a line, which is quoted where it has a comma.
fn run_of(line: &str) -> &str {
    let end = match line.strip_prefix('"') {
        Some(rest) => rest.find("\",").map_or(line.len(), |at| at + 2),
        None => line.find(',').unwrap_or(line.len()),
    };
    &line[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_thinned_run_by_run() {
        let lines: String = (0..100).map(|i| format!("a,loss,{i},0,1\n")).collect();
        let csv = format!("run,tag,step,wall_time,value\n{lines}\"b, c\",loss,7,0,1\n");
        let thinned = thinned(&csv, 3);
        let expected = "run,tag,step,wall_time,value\na,loss,0,0,1\na,loss,49,0,1\na,loss,99,0,1\n# 3 of 100 points of a\n\"b, c\",loss,7,0,1\n";
        assert_eq!(thinned, expected);
    }

    #[test]
    fn wrong_arguments_are_named() {
        let fault = |name: &str, args: Value| commands(name, &args).map(|_| ()).unwrap_err();
        assert_eq!(fault("nothing", json!({})), "no tool 'nothing'");
        assert_eq!(fault("points", json!({ "path": "x" })), "the argument 'tag' is missing");
        assert_eq!(fault("open", json!({ "path": 3 })), "'path' must be of type string");
        assert_eq!(fault("open", json!({ "path": "x", "force": true })), "no argument 'force'");
        assert_eq!(
            commands("open", &json!({ "path": "-x" })).unwrap()[0].args,
            ["analyze", "--format=markdown", "--", "-x"]
        );
    }
}
