//! All sources compile by NVRTC, which needs no device, for the machine code of the devices that it knows.
//!
//! Looked for as the crate does (`STEPSCOPE_CUDA_LIBRARIES`, a toolkit, the system's folders); skipped aloud where it is absent.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use cuda::driver::{Compiler, Target};
use cuda::kernels::UNITS;
use cuda::kernels::reduce::{Join, SOURCE, reduce_macros};
use cuda::kernels::support::{FLOATS, NUMBERS, PRELUDE, c_type, c_wide, macros};
use engine::DType;

fn compiler() -> Option<Compiler> {
    let advice = "pip install nvidia-cuda-nvrtc, STEPSCOPE_CUDA_LIBRARIES=its lib folder";
    Compiler::load().map_err(|error| test_support::left_out(format_args!("NVRTC: {error} ({advice})"))).ok()
}

/// Volta where it is known, Turing, Ampere, Hopper, and the newest.
fn targets(compiler: &Compiler) -> Vec<Target> {
    let known = compiler.known();
    let newest = known.last().copied();
    let wanted =
        [70, 75, 80, 90].into_iter().filter(|arch| known.contains(arch)).chain(newest.filter(|arch| *arch > 90));
    let targets: Vec<Target> = wanted.map(Target::Machine).collect();
    assert!(targets.len() >= 3, "{known:?}");
    targets
}

#[test]
fn units_compile_for_all_their_types() {
    let Some(compiler) = compiler() else { return };
    let target = Target::Machine(90);
    for unit in UNITS {
        for dtype in unit.dtypes {
            let source = format!("{PRELUDE}{}", unit.text);
            let image = compiler.compile(&source, &macros(*dtype), target);
            let image = image.unwrap_or_else(|e| panic!("{} for {dtype}: {e}", unit.name));
            for kernel in unit.kernels {
                let name = kernel.as_bytes();
                assert!(image.windows(name.len()).any(|w| w == name), "{} has no kernel {kernel}", unit.name);
            }
        }
    }
}

#[test]
fn units_compile_for_all_targets() {
    let Some(compiler) = compiler() else { return };
    for target in targets(&compiler) {
        for unit in UNITS {
            let source = format!("{PRELUDE}{}", unit.text);
            compiler.compile(&source, &macros(unit.dtypes[0]), target).unwrap_or_else(|e| panic!("{}: {e}", unit.name));
        }
    }
}

#[test]
fn reductions_compile() {
    let Some(compiler) = compiler() else { return };
    let compile = |join: Join, dtype: DType, from: &str, to: &str| {
        let macros = reduce_macros(join, dtype, from, to);
        let done = compiler.compile(&format!("{PRELUDE}{SOURCE}"), &macros, Target::Machine(90));
        done.unwrap_or_else(|e| panic!("{join:?} of {dtype} from {from} to {to}: {e}"));
    };
    for join in [Join::Sum, Join::Product, Join::Max, Join::Min] {
        for dtype in NUMBERS {
            let own = c_type(*dtype).unwrap();
            compile(join, *dtype, own, own);
        }
    }
    // Made in parts: to and from the type between.
    for dtype in FLOATS {
        compile(Join::Sum, *dtype, c_type(*dtype).unwrap(), c_wide(*dtype));
        compile(Join::Sum, *dtype, c_wide(*dtype), c_type(*dtype).unwrap());
    }
    compile(Join::All, DType::Bool, "bool", "bool");
    compile(Join::Any, DType::Bool, "bool", "bool");
}
