//! What kernels of stateful ops share: an object's container and name, its handle, the object behind a handle.

use std::any::Any;
use std::sync::Arc;

use super::{KernelContext, KernelError};
use engine_core::graph::Node;
use engine_core::resources::ResourceManager;
use engine_core::tensor::{ResourceHandle, Tensor};

/// Where the object of a node lives.
#[derive(Debug, Clone)]
pub struct Key {
    /// The container: attribute `container`, or the default one.
    pub container: Arc<str>,
    /// The name there: attribute `shared_name`, or the node's own.
    pub name: Arc<str>,
}

impl Key {
    /// As the attributes `container` and `shared_name` of the node say.
    ///
    /// # Errors
    /// The op has no such attributes.
    pub fn of(node: &Node) -> Result<Key, KernelError> {
        let or = |text: String, otherwise: Arc<str>| if text.is_empty() { otherwise } else { text.into() };
        Ok(Key {
            container: or(node.text("container")?, ResourceManager::DEFAULT_CONTAINER.into()),
            name: or(node.text("shared_name")?, Arc::clone(&node.name)),
        })
    }

    /// A handle to the object, made where there is none.
    ///
    /// # Errors
    /// The name is taken by an object of another type.
    pub fn object<T: Any + Send + Sync>(
        &self,
        ctx: &KernelContext<'_>,
        make: impl FnOnce() -> T,
    ) -> Result<Tensor, KernelError> {
        let object = ctx.resources.find_or_create(&self.container, &self.name, make)?;
        let (container, name) = (Arc::clone(&self.container), Arc::clone(&self.name));
        Ok(Tensor::resource(ResourceHandle { container, name, object }))
    }
}

/// The object behind a handle.
///
/// # Errors
/// It is of another type.
pub fn object<T: Any + Send + Sync>(handle: &Tensor) -> Result<Arc<T>, KernelError> {
    let handle = handle.handle()?;
    handle.object.clone().downcast::<T>().map_err(|_| {
        let kind = std::any::type_name::<T>().rsplit("::").next().unwrap_or_default().to_lowercase();
        KernelError::invalid(format!("{} is not a {kind}", handle.name))
    })
}
