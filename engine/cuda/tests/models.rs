//! Models: which of their nodes a GPU takes, and that they learn there what they learn on the CPU.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod emulator;
mod networks;

use std::sync::Arc;

use engine::SessionOptions;

/// What has no kernel for a GPU yet, by model; it shall only become less.
const LEFT: &[(&str, &[&str])] = &[(
    "lstm, a loop",
    &[
        // The handle of an array that enters the loop.
        "Enter",
        "TensorArrayGatherV3",
        "TensorArrayGradV3",
        "TensorArrayReadV3",
        "TensorArrayScatterV3",
        "TensorArrayV3",
        "TensorArrayWriteV3",
    ],
)];

/// See [`LEFT`].
fn known_to_be_left(name: &str) -> &'static [&'static str] {
    LEFT.iter().find(|(of, _)| *of == name).map_or(&[], |(_, ops)| ops)
}

#[test]
fn models_learn_on_the_device_what_they_learn_on_the_cpu() {
    let mut wrong = Vec::new();
    for (name, network, size) in networks::all() {
        let Some(gpu) = emulator::device(1 << 30) else { return };
        let n = networks::n_steps(name, 4);
        let (expected, _) = networks::losses(&*network, size, n, &[], SessionOptions::default());
        let (got, left) = networks::losses(&*network, size, n, &["/device:GPU:0"], networks::options(Arc::clone(&gpu)));
        let stats = cuda::device::gpu_of(&gpu).unwrap().stats();
        assert!(stats.n_allocs > 100, "{name}: {stats:?}");
        wrong.extend(networks::differs(name, &expected, &got).map(|why| format!("{name}: {why}")));
        if left != known_to_be_left(name) {
            wrong.push(format!("{name}: {left:?} stay on the CPU"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
