//! Kernels of stacks, which live in their step's container: what a loop keeps for the loop that goes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::support::{Built, Computed, cheap, cpu_any};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::DType;
use engine_core::graph::Node;
use engine_core::memory::{self, Charge};
use engine_core::resources::ResourceManager;
use engine_core::tensor::{ResourceHandle, Tensor};

#[linkme::distributed_slice(KERNEL_TABLES)]
static STACK: &[KernelDef] = &[
    cpu_any("Stack", |n| create(n, false)),
    cpu_any("StackPush", |_| cheap(push)),
    cpu_any("StackPop", pop),
    cpu_any("StackClose", |_| cheap(close)),
    cpu_any("StackV2", |n| create(n, true)),
    cpu_any("StackPushV2", |_| cheap(push)),
    cpu_any("StackPopV2", pop),
    cpu_any("StackCloseV2", |_| cheap(close)),
];

/// Values of one element type; the last in is the first out.
struct Stack {
    name: Arc<str>,
    dtype: DType,
    max_size: usize,
    /// `None` once it is closed.
    values: Mutex<Option<(Vec<Tensor>, Charge)>>,
}

const CONTAINER: &str = "_stacks";
/// Objects of a step are made by nodes in loops too: each has its own name.
static NEXT: AtomicU64 = AtomicU64::new(0);

fn create(node: &Node, has_size: bool) -> Built {
    let dtype = *node.dtype("elem_type")?;
    let prefix = match node.text("stack_name")? {
        name if name.is_empty() => node.name.to_string(),
        name => name,
    };
    cheap(move |c| {
        // A negative size is none.
        let max_size = if has_size { usize::try_from(c.item::<i32>(0)?).unwrap_or(usize::MAX) } else { usize::MAX };
        let name: Arc<str> = format!("{prefix}_{}", NEXT.fetch_add(1, Ordering::Relaxed)).into();
        let stack = Stack { name: Arc::clone(&name), dtype, max_size, values: Mutex::new(Some(Default::default())) };
        let handle = register(c.step_resources, CONTAINER, name, stack, has_size)?;
        c.set(0, handle);
        Ok(())
    })
}

/// Puts an object into the step's container; gives its handle: a resource, or for the first versions of ops a pair of
/// strings.
pub(super) fn register<T: std::any::Any + Send + Sync>(
    resources: &ResourceManager,
    container: &str,
    name: Arc<str>,
    object: T,
    is_resource: bool,
) -> Result<Tensor, KernelError> {
    let container: Arc<str> = container.into();
    let object = resources.find_or_create(&container, &name, || object)?;
    Ok(match is_resource {
        true => Tensor::resource(ResourceHandle { container, name, object }),
        false => Tensor::from_strings([2], vec![container.as_bytes().to_vec(), name.as_bytes().to_vec()])?,
    })
}

/// The object whose handle is input 0: a resource, or the name of one in the step's container.
pub(super) fn object<T: std::any::Any + Send + Sync>(
    ctx: &KernelContext<'_>,
    kind: &str,
) -> Result<Arc<T>, KernelError> {
    let input = ctx.input(0)?;
    if input.dtype() != DType::String {
        let handle = input.handle()?;
        let object = Arc::clone(&handle.object).downcast::<T>();
        return object.map_err(|_| KernelError::invalid(format!("{} is not a {kind}", handle.name)));
    }
    let text = |bytes: &Vec<u8>| Arc::<str>::from(String::from_utf8_lossy(bytes));
    match input.strings()? {
        [container, name] => {
            let (container, name) = (text(container), text(name));
            let found = ctx.step_resources.find::<T>(&container, &name)?;
            found.ok_or_else(|| KernelError::invalid(format!("there is no {kind} {name} in this step")))
        }
        other => Err(KernelError::invalid(format!("a handle has 2 strings, got {}", other.len()))),
    }
}

impl Stack {
    fn closed(&self) -> KernelError {
        KernelError::invalid(format!("Stack[{}] has already been closed.", self.name))
    }
}

fn push(c: &mut KernelContext<'_>) -> Computed {
    let stack = object::<Stack>(c, "stack")?;
    let value = c.take(1)?;
    if value.dtype() != stack.dtype {
        let (got, expected) = (value.dtype(), stack.dtype);
        return Err(KernelError::invalid(format!("Stack[{}] holds {expected}, got {got}", stack.name)));
    }
    {
        let mut values = stack.values.lock();
        let (values, charge) = values.as_mut().ok_or_else(|| stack.closed())?;
        if values.len() >= stack.max_size {
            let text = format!("Stack[{}] overflowed its max_size ({})", stack.name, stack.max_size);
            return Err(KernelError::invalid(text));
        }
        memory::grow(values, charge, 1)?;
        values.push(value.clone());
    }
    c.set(0, value);
    Ok(())
}

fn pop(node: &Node) -> Built {
    let dtype = *node.dtype("elem_type")?;
    cheap(move |c| {
        let stack = object::<Stack>(c, "stack")?;
        if dtype != stack.dtype {
            let held = stack.dtype;
            return Err(KernelError::invalid(format!("Stack[{}] holds {held}, expected {dtype}", stack.name)));
        }
        let value = stack.values.lock().as_mut().ok_or_else(|| stack.closed())?.0.pop();
        let empty = || KernelError::invalid(format!("Stack[{}] is empty when calling Pop().", stack.name));
        c.set(0, value.ok_or_else(empty)?);
        Ok(())
    })
}

fn close(c: &mut KernelContext<'_>) -> Computed {
    let stack = object::<Stack>(c, "stack")?;
    let values = stack.values.lock().take();
    drop(values);
    Ok(())
}
