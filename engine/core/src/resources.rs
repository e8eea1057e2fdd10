//! State that outlives steps: containers of named objects, variables first (white paper, sections 4.7 and 3.1).

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;

use crate::checkpoint::{AsCheckpointed, CHECKPOINTED, CheckpointError, Checkpointed, Fields, as_checkpointed};
use crate::tensor::Tensor;

/// The objects of a device, by container and name.
#[derive(Default)]
pub struct ResourceManager {
    containers: Mutex<FxHashMap<Arc<str>, Container>>,
    /// State of objects that are yet to be made.
    pending: Mutex<Option<Pending>>,
}

/// Restored state that waits for its objects, shared by the devices of a session.
pub(crate) type Pending = Arc<Mutex<FxHashMap<StateKey, Fields>>>;

/// Identifies saved state: the kind of object, its container, its name there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateKey {
    /// The kind of object, for example `Variable`.
    pub kind: Arc<str>,
    /// The container that the object is in.
    pub container: Arc<str>,
    /// The object's name there.
    pub name: Arc<str>,
}

type Object = Arc<dyn Any + Send + Sync>;
type Container = FxHashMap<Arc<str>, Object>;

/// An object of a container cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ResourceError {
    /// The name is taken by an object of another type.
    #[error("resource {container}/{name} exists with another type")]
    Type {
        /// The container.
        container: Arc<str>,
        /// The object's name there.
        name: Arc<str>,
    },
    /// The state that was restored for it does not fit.
    #[error(transparent)]
    State(Box<CheckpointError>),
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
    ) -> Result<Arc<T>, ResourceError> {
        let mut containers = self.containers.lock();
        let objects = containers.entry(container.clone()).or_default();
        let object = match objects.get(name) {
            Some(object) => object.clone(),
            None => {
                let object: Object = Arc::new(make());
                self.restore_pending(container, name, &*object)?;
                objects.insert(name.clone(), object.clone());
                object
            }
        };
        object.downcast::<T>().map_err(|_| ResourceError::Type { container: container.clone(), name: name.clone() })
    }

    /// Gives a new object the state that was restored for it.
    fn restore_pending(
        &self,
        container: &Arc<str>,
        name: &Arc<str>,
        object: &(dyn Any + Send + Sync),
    ) -> Result<(), ResourceError> {
        let Some(pending) = self.pending.lock().clone() else { return Ok(()) };
        let Some(object) = as_checkpointed(object) else { return Ok(()) };
        let key = StateKey { kind: object.kind().into(), container: container.clone(), name: name.clone() };
        let fields = pending.lock().remove(&key);
        fields.map_or(Ok(()), |fields| object.restore(&fields)).map_err(|e| ResourceError::State(Box::new(e)))
    }

    /// The state of all objects that belong into a checkpoint.
    pub fn save(&self) -> BTreeMap<StateKey, Fields> {
        let mut all = BTreeMap::new();
        for (container, name, object) in self.objects() {
            if let Some(object) = as_checkpointed(&*object) {
                let fields = object.save();
                if !fields.is_empty() {
                    all.insert(StateKey { kind: object.kind().into(), container, name }, fields);
                }
            }
        }
        all
    }

    /// Gives their state to the objects that there are, taking it out of `state`; those that are made later find theirs
    /// in `pending`.
    pub fn restore(&self, state: &mut BTreeMap<StateKey, Fields>, pending: &Pending) -> Result<(), CheckpointError> {
        *self.pending.lock() = Some(Arc::clone(pending));
        for (container, name, object) in self.objects() {
            if let Some(object) = as_checkpointed(&*object) {
                let key = StateKey { kind: object.kind().into(), container, name };
                if let Some(fields) = state.remove(&key) {
                    object.restore(&fields)?;
                }
            }
        }
        Ok(())
    }

    /// All objects, with their containers and names.
    fn objects(&self) -> Vec<(Arc<str>, Arc<str>, Object)> {
        let containers = self.containers.lock();
        let of = |(container, objects): (&Arc<str>, &Container)| {
            let container = container.clone();
            objects.iter().map(move |(name, o)| (container.clone(), name.clone(), o.clone())).collect::<Vec<_>>()
        };
        containers.iter().flat_map(of).collect()
    }

    /// The object of this name, if there is one.
    ///
    /// # Errors
    /// It is of another type.
    pub fn find<T: Any + Send + Sync>(
        &self,
        container: &Arc<str>,
        name: &Arc<str>,
    ) -> Result<Option<Arc<T>>, ResourceError> {
        let object = self.containers.lock().get(container).and_then(|objects| objects.get(name)).cloned();
        let wrong = || ResourceError::Type { container: container.clone(), name: name.clone() };
        object.map(|object| object.downcast::<T>().map_err(|_| wrong())).transpose()
    }

    /// Drops all objects of all containers.
    pub fn clear_all(&mut self) {
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

#[linkme::distributed_slice(CHECKPOINTED)]
static VARIABLE: AsCheckpointed = |object| object.downcast_ref::<Variable>().map(|v| v as &dyn Checkpointed);

impl Checkpointed for Variable {
    fn kind(&self) -> &'static str {
        "variable"
    }

    /// The value, shared: the next update in place copies.
    fn save(&self) -> Fields {
        self.value.read().iter().map(|value| ("value".to_owned(), value.clone())).collect()
    }

    fn restore(&self, fields: &Fields) -> Result<(), CheckpointError> {
        *self.value.write() = fields.get("value").cloned();
        Ok(())
    }
}
