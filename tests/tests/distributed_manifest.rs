//! The manifest for Kubernetes that is shipped: sound by Kubernetes' own schemas, its commands are ones that the binary takes, and its
//! hosts those that JobSet makes.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use stepscope_tests::{from_env, root, stepscope_binary};

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().expect("a list").iter().map(|text| text.as_str().expect("text")).collect()
}

fn printed(python: &Path) -> Value {
    let mut command = Command::new(python);
    command.arg(root().join("tests/scripts/jobset.py")).arg(root().join("docs/use/jobset.yaml"));
    let out = command.output().expect("python starts");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("JSON")
}

#[test]
fn the_jobset_is_one_and_its_commands_work() {
    let Some(python) = from_env("STEPSCOPE_PYTHON", "the manifest for Kubernetes") else { return };
    let Some(binary) = stepscope_binary("the manifest for Kubernetes") else { return };
    let printed = printed(&python);
    let folder = tempfile::tempdir().expect("a scratch folder");
    let cluster = printed["cluster"].as_str().expect("the cluster's file");
    // Each task's address is its pod's.
    for host in strings(&printed["jobs"]["worker"]["hosts"]) {
        assert!(cluster.contains(&format!("\"{host}:4001\"")), "{host} in {cluster}");
    }
    let client = strings(&printed["jobs"]["client"]["hosts"])[0];
    assert!(cluster.contains(&format!("master = \"{client}:4000\"")), "{client} in {cluster}");
    // Here the certificates are in another place, and the pods are nowhere.
    let here = cluster.replace("/etc/stepscope/certificates", &folder.path().join("c").display().to_string());
    let file = folder.path().join("cluster.toml");
    std::fs::write(&file, here).expect("our folder");
    let mut hosts = strings(&printed["jobs"]["worker"]["hosts"]);
    hosts.push(client);
    let certified =
        Command::new(&binary).args(["certify", "--quiet", "-o"]).arg(folder.path().join("c")).args(hosts).output();
    assert!(certified.is_ok_and(|out| out.status.success()));
    for (job, expected) in [
        ("worker", "train-worker-0-1.train"),
        ("client", "/job:worker/task:0 at train-worker-0-0.train:4001 cannot be reached"),
    ] {
        let words = strings(&printed["jobs"][job]["command"]);
        assert_eq!(words[0], "stepscope");
        let mounted = "/etc/stepscope/cluster/cluster.toml";
        assert!(words.iter().any(|word| word.ends_with(mounted)), "{words:?}");
        let mut command = Command::new(&binary);
        for word in &words[1..] {
            let word = word.replace(mounted, &file.display().to_string()).replace("$(JOB_COMPLETION_INDEX)", "1");
            let word = word.replace("=/checkpoints", &format!("={}", folder.path().join("checkpoints").display()));
            command
                .arg(word.replace("--patience=300", "--patience=1").replace("--max-restarts=100", "--max-restarts=0"));
        }
        let out = command.current_dir(folder.path()).output().expect("the binary starts");
        let said = String::from_utf8_lossy(&out.stderr);
        // Every option is taken; then it is the network that is missing.
        assert!(said.contains(expected), "{job}: {said}");
    }
}
