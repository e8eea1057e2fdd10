//! State that outlives steps: containers of named objects, variables first (white paper, sections 4.7 and 3.1).

use std::any::Any;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;

use crate::tensor::Tensor;

/// The objects of a device, by container and name.
#[derive(Default)]
pub struct ResourceManager {
    containers: Mutex<FxHashMap<Arc<str>, Container>>,
}

type Container = FxHashMap<Arc<str>, Arc<dyn Any + Send + Sync>>;

/// The name is taken by an object of another type.
#[derive(Debug, Clone, thiserror::Error)]
#[error("resource {container}/{name} exists with another type")]
pub struct ResourceTypeError {
    /// The container.
    pub container: Arc<str>,
    /// The object's name there.
    pub name: Arc<str>,
}

impl ResourceManager {
    /// The container of objects that were not put into another one.
    pub const DEFAULT_CONTAINER: &'static str = "localhost";

    /// The object of this name, made by `make` when there is none.
    ///
    /// # Errors
    /// The name is taken by another type.
    pub fn find_or_create<T: Any + Send + Sync>(
        &self,
        container: &Arc<str>,
        name: &Arc<str>,
        make: impl FnOnce() -> T,
    ) -> Result<Arc<T>, ResourceTypeError> {
        let mut containers = self.containers.lock();
        let objects = containers.entry(container.clone()).or_default();
        let object = objects.entry(name.clone()).or_insert_with(|| Arc::new(make())).clone();
        object.downcast::<T>().map_err(|_| ResourceTypeError { container: container.clone(), name: name.clone() })
    }

    /// Drops all objects of all containers.
    pub(crate) fn clear_all(&mut self) {
        let containers = self.containers.get_mut();
        if !containers.is_empty() {
            containers.clear();
        }
    }

    /// Takes one object out; whether there was one. Steps that hold it keep it until they end.
    pub fn remove(&self, container: &str, name: &str) -> bool {
        self.containers.lock().get_mut(container).is_some_and(|objects| objects.remove(name).is_some())
    }

    /// Drops all objects of a container. Steps that hold one keep it until they end.
    pub fn clear(&self, container: &str) {
        self.containers.lock().remove(container);
    }
}

/// A tensor that outlives steps. Reading shares the value; updating in place needs it unshared, otherwise it copies.
#[derive(Default)]
pub struct Variable {
    /// The value, `None` before the first assignment.
    pub value: RwLock<Option<Tensor>>,
}
