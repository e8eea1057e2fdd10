//! `stepscope mcp`: traces and logdirs for agents, by the Model Context Protocol (modelcontextprotocol.io, version 2025-06-18) over
//! standard input and output: JSON-RPC 2.0, a message a line.
//!
//! A tool is a command of this program, in a process of its own: it has the command's limits and errors, it can be
//! cancelled, and where it fails the server goes on.

mod call;
mod tools;

use std::collections::HashMap;
use std::io::{self, BufRead};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::out;
use crate::outcome::Outcome;
use call::Call;

/// The versions of the protocol that are spoken, the newest first.
const VERSIONS: [&str; 3] = ["2025-06-18", "2025-03-26", "2024-11-05"];
/// What a model reads about the server.
const INSTRUCTIONS: &str = "\
Reads traces (stepscope, PyTorch/Kineto, Chrome, Perfetto, XPlane, Nsight Systems), TensorBoard logdirs and the logs of Weights & Biases, \
MLflow, trackio, Lightning and Hugging Face on this machine. Begin with `open`. For slow training: `findings`, then `query`. For curves: \
`tags`, then `points`. Nothing is changed.";

// Error codes of JSON-RPC 2.0.
const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;
const METHOD_NOT_FOUND: i32 = -32_601;
const INVALID_PARAMS: i32 = -32_602;

/// The calls under way, by the text of their request's id.
type Calls = Arc<Mutex<HashMap<String, Call>>>;

/// Serves until standard input ends.
pub fn run() -> Outcome {
    let calls = Calls::default();
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if line.trim().is_empty() {
            continue;
        }
        threads.retain(|thread| !thread.is_finished());
        match serde_json::from_str::<Value>(&line) {
            Ok(message) => threads.extend(handle(&message, &calls)),
            Err(error) => reply_error(&Value::Null, PARSE_ERROR, &error.to_string()),
        }
    }
    // The client has gone: nobody reads the results.
    calls.lock().values().for_each(Call::cancel);
    for thread in threads {
        // The panic hook has reported a panic.
        let _ = thread.join();
    }
    Ok(())
}

/// Handles a message; returns the thread of a call that takes longer.
fn handle(message: &Value, calls: &Calls) -> Option<JoinHandle<()>> {
    let params = &message["params"];
    let Some(method) = message["method"].as_str() else {
        // A reply to a request, of which this server makes none, has no method.
        if message.get("result").is_none() && message.get("error").is_none() {
            reply_error(message.get("id").unwrap_or(&Value::Null), INVALID_REQUEST, "no method");
        }
        return None;
    };
    let Some(id) = message.get("id") else {
        if method == "notifications/cancelled"
            && let Some(call) = calls.lock().get(&params["requestId"].to_string())
        {
            call.cancel();
        }
        return None;
    };
    match method {
        "initialize" => reply(id, &initialized(params)),
        "ping" => reply(id, &json!({})),
        "tools/list" => reply(id, &json!({ "tools": tools::list() })),
        "tools/call" => return call_tool(id, params, calls),
        _ => reply_error(id, METHOD_NOT_FOUND, &format!("no method '{method}'")),
    }
    None
}

fn initialized(params: &Value) -> Value {
    let version = params["protocolVersion"].as_str().filter(|version| VERSIONS.contains(version));
    json!({
        "protocolVersion": version.unwrap_or(VERSIONS[0]),
        "capabilities": { "tools": { "listChanged": false } },
        "serverInfo": { "name": "stepscope", "title": "stepscope", "version": env!("CARGO_PKG_VERSION") },
        "instructions": INSTRUCTIONS,
    })
}

fn call_tool(id: &Value, params: &Value, calls: &Calls) -> Option<JoinHandle<()>> {
    let name = params["name"].as_str().unwrap_or_default();
    let commands = match tools::commands(name, &params["arguments"]) {
        Ok(commands) => commands,
        Err(why) => {
            reply_error(id, INVALID_PARAMS, &why);
            return None;
        }
    };
    let call = Call::default();
    calls.lock().insert(id.to_string(), call.clone());
    let (thread_id, thread_calls) = (id.clone(), calls.clone());
    let run = move || {
        let result = call.run(&commands);
        thread_calls.lock().remove(&thread_id.to_string());
        match result {
            _ if call.is_cancelled() => {}
            Ok(text) => reply(&thread_id, &content(&text, false)),
            Err(text) => reply(&thread_id, &content(&text, true)),
        }
    };
    match thread::Builder::new().name("call".to_owned()).spawn(run) {
        Ok(thread) => Some(thread),
        Err(error) => {
            calls.lock().remove(&id.to_string());
            reply(id, &content(&error.to_string(), true));
            None
        }
    }
}

/// The result of a tool.
fn content(text: &str, is_error: bool) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "isError": is_error })
}

fn reply(id: &Value, result: &Value) {
    out::line(json!({ "jsonrpc": "2.0", "id": id, "result": result }));
}

fn reply_error(id: &Value, code: i32, message: &str) {
    out::line(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }));
}
