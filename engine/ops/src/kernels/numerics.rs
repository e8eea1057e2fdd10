//! Numbers that are none: the op that looks for them, and the session's option that looks at every op's results.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use events::SiteId;

use super::support::{Built, cpu_any, kernel};
use super::{AnyKernel, KERNEL_TABLES, Kernel, KernelContext, KernelDef, KernelError, Slot};
use engine_core::checkpoint::Checkpointed;
use engine_core::dtype::{DType, bf16, f16};
use engine_core::graph::Node;
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static NUMERICS: &[KernelDef] = &[cpu_any("CheckNumerics", check), cpu_any("CheckNumericsV2", check)];

/// How many elements of a tensor are no finite numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NonFinite {
    nan: usize,
    positive: usize,
    negative: usize,
}

impl NonFinite {
    /// Those of a tensor; none of types that have none.
    pub fn of(t: &Tensor) -> NonFinite {
        if t.device_memory().is_some() {
            // What a device cannot give is reported by whoever uses it.
            return t.to_host().map(|here| NonFinite::of(&here)).unwrap_or_default();
        }
        match t.dtype() {
            DType::F32 => count(t.slice::<f32>().unwrap_or_default(), |v| f64::from(*v)),
            DType::F64 => count(t.slice::<f64>().unwrap_or_default(), |v| *v),
            DType::F16 => count(t.slice::<f16>().unwrap_or_default(), |v| v.to_f64()),
            DType::BF16 => count(t.slice::<bf16>().unwrap_or_default(), |v| v.to_f64()),
            _ => NonFinite::default(),
        }
    }

    /// Of types that have values that are no finite numbers.
    fn can_be_of(dtype: DType) -> bool {
        matches!(dtype, DType::F32 | DType::F64 | DType::F16 | DType::BF16)
    }

    /// Which kinds there are, as events encode them: 1 NaN, 2 infinity, 4 minus infinity.
    fn kinds(self) -> u8 {
        u8::from(self.nan > 0) | u8::from(self.positive > 0) << 1 | u8::from(self.negative > 0) << 2
    }

    /// Whether all are finite.
    pub fn is_none(self) -> bool {
        self == NonFinite::default()
    }
}

fn count<T>(values: &[T], wide: impl Fn(&T) -> f64) -> NonFinite {
    let mut found = NonFinite::default();
    // Blocks that are finite as a whole take one pass without branches.
    for block in values.chunks(1024) {
        if block.iter().all(|v| wide(v).is_finite()) {
            continue;
        }
        for v in block.iter().map(&wide) {
            found.nan += usize::from(v.is_nan());
            found.positive += usize::from(v == f64::INFINITY);
            found.negative += usize::from(v == f64::NEG_INFINITY);
        }
    }
    found
}

impl std::fmt::Display for NonFinite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [(self.nan, "NaN"), (self.positive, "Inf"), (self.negative, "-Inf")];
        let parts: Vec<String> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
        f.write_str(&parts.join(", "))
    }
}

fn check(node: &Node) -> Built {
    let message = node.text("message")?;
    kernel(move |c| {
        let x = c.take(0)?;
        let found = NonFinite::of(&x);
        if !found.is_none() {
            return Err(KernelError::Numerics(format!("{message}: tensor had {found} values").into()));
        }
        c.set(0, x);
        Ok(())
    })
}

/// A kernel whose outputs are looked at: the first op that makes something that is no number fails its step, which
/// names the node.
struct Checked {
    kernel: Arc<dyn Kernel>,
}

/// The kernel, its outputs looked at.
pub fn checked(kernel: AnyKernel) -> AnyKernel {
    match kernel {
        AnyKernel::Sync(kernel) => AnyKernel::Sync(Arc::new(Checked { kernel })),
        // They hand on what others made.
        other => other,
    }
}

impl Kernel for Checked {
    fn compute(&self, ctx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        // Before: the kernel may take its inputs.
        let mut inputs = String::new();
        let mut from_outside = false;
        for input in ctx.inputs.iter().flatten() {
            // Writing to a string cannot fail.
            let _ = write!(inputs, " {}{}", input.dtype(), input.shape());
            from_outside |= !NonFinite::of(input).is_none();
        }
        self.kernel.compute(ctx)?;
        for (port, output) in ctx.outputs.iter().enumerate() {
            let found = output.as_ref().map(NonFinite::of).unwrap_or_default();
            if !found.is_none() {
                let origin = if from_outside { " (they came in with its inputs)" } else { "" };
                let text =
                    format!("output {port} has {found} of {} elements{origin}, from{inputs}", output_len(output));
                return Err(KernelError::Numerics(text.into()));
            }
        }
        Ok(())
    }

    fn is_expensive(&self) -> bool {
        self.kernel.is_expensive()
    }

    fn state(&self) -> Option<&dyn Checkpointed> {
        self.kernel.state()
    }
}

/// A kernel of which the trace says whether its outputs are finite: once, and whenever that changes. So a run whose values
/// are all lost costs no more events than one that is well.
struct Traced {
    kernel: Arc<dyn Kernel>,
    /// Category `numerics`, the node's name.
    site: SiteId,
    /// [`NonFinite::kinds`] of what was reported last; [`UNREPORTED`] before.
    reported: AtomicU8,
}

const UNREPORTED: u8 = u8::MAX;

/// The kernel of the node of this name, which traces what is not finite in its outputs.
pub fn traced(kernel: AnyKernel, name: &str) -> AnyKernel {
    match kernel {
        AnyKernel::Sync(kernel) => {
            let (site, reported) = (events::site("numerics", name), AtomicU8::new(UNREPORTED));
            AnyKernel::Sync(Arc::new(Traced { kernel, site, reported }))
        }
        // They hand on what others made.
        other => other,
    }
}

impl Traced {
    fn report(&self, outputs: &[Slot]) {
        let (mut kinds, mut text) = (None, String::new());
        for (port, output) in outputs.iter().enumerate() {
            let Some(output) = output.as_ref().filter(|output| NonFinite::can_be_of(output.dtype())) else { continue };
            let found = NonFinite::of(output);
            kinds = Some(kinds.unwrap_or(0) | found.kinds());
            if !found.is_none() {
                let join = if text.is_empty() { "" } else { "; " };
                // Writing to a string cannot fail.
                let _ = write!(text, "{join}output {port} has {found} of {} elements", output.len());
            }
        }
        let Some(kinds) = kinds else { return };
        let before = self.reported.swap(kinds, Ordering::Relaxed);
        if before != kinds {
            let text = if text.is_empty() { "finite".to_owned() } else { text };
            events::log_value(self.site, u64::from(kinds), &text);
        }
    }
}

impl Kernel for Traced {
    fn compute(&self, ctx: &mut KernelContext<'_>) -> Result<(), KernelError> {
        self.kernel.compute(ctx)?;
        if events::is_on() {
            self.report(ctx.outputs);
        }
        Ok(())
    }

    fn is_expensive(&self) -> bool {
        self.kernel.is_expensive()
    }

    fn state(&self) -> Option<&dyn Checkpointed> {
        self.kernel.state()
    }
}

fn output_len(output: &Option<Tensor>) -> usize {
    output.as_ref().map_or(0, Tensor::len)
}
