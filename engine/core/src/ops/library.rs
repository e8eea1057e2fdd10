//! The functions of a graph, by name, and what inferring the shapes of their calls may cost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use formats::proto::{FunctionDef, FunctionDefLibrary, GradientDef, RegisteredGradient};

/// The functions of a graph, by name.
#[derive(Default, Clone)]
pub struct Library {
    functions: BTreeMap<Arc<str>, Arc<FunctionDef>>,
    /// The functions that compute the gradients of others.
    gradients: BTreeMap<Arc<str>, Arc<str>>,
    registered: Vec<RegisteredGradient>,
}

/// Why a function cannot be added to a library.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LibraryError {
    /// The definition has no name.
    #[error("a function of the library has no name")]
    NoName,
    /// Another function has the name.
    #[error("the library has another function named {function}")]
    Duplicate {
        /// The name.
        function: String,
    },
}

impl Library {
    /// The function of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<FunctionDef>> {
        self.functions.get(name)
    }

    /// All functions, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &FunctionDef)> {
        self.functions.iter().map(|(name, function)| (&**name, &**function))
    }

    /// The number of functions.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The function that the library says computes the gradient of `function`: from its inputs and the gradients of
    /// its outputs, those of its inputs.
    pub fn gradient_of(&self, function: &str) -> Option<&str> {
        self.gradients.get(function).map(|gradient| &**gradient)
    }

    /// Adds a function.
    ///
    /// # Errors
    /// It has no name, or another one has its name. The same function may come again.
    pub fn add(&mut self, function: FunctionDef) -> Result<(), LibraryError> {
        let name = function.signature.as_ref().map(|s| s.name.as_str()).filter(|name| !name.is_empty());
        let name: Arc<str> = name.ok_or(LibraryError::NoName)?.into();
        match self.functions.get(&name) {
            Some(old) if **old == function => {}
            Some(_) => return Err(LibraryError::Duplicate { function: name.to_string() }),
            None => {
                self.functions.insert(name, Arc::new(function));
            }
        }
        Ok(())
    }

    /// Adds the functions of a definition.
    pub fn import(&mut self, def: &FunctionDefLibrary) -> Result<(), LibraryError> {
        def.function.iter().try_for_each(|function| self.add(function.clone()))?;
        for GradientDef { function_name, gradient_func } in &def.gradient {
            self.gradients.insert(function_name.as_str().into(), gradient_func.as_str().into());
        }
        let new = def.registered_gradients.iter().filter(|r| !self.registered.contains(r)).cloned();
        let new: Vec<RegisteredGradient> = new.collect();
        self.registered.extend(new);
        Ok(())
    }

    /// The definition, where there is anything to define.
    pub fn to_def(&self) -> Option<FunctionDefLibrary> {
        let gradient = |(function, gradient): (&Arc<str>, &Arc<str>)| GradientDef {
            function_name: function.to_string(),
            gradient_func: gradient.to_string(),
        };
        let def = FunctionDefLibrary {
            function: self.functions.values().map(|function| (**function).clone()).collect(),
            gradient: self.gradients.iter().map(gradient).collect(),
            registered_gradients: self.registered.clone(),
        };
        (!self.is_empty() || !def.gradient.is_empty()).then_some(def)
    }
}

/// Nodes that shape inference visits for one call, nested calls included.
const MAX_NODES: usize = 20_000;

/// How many more nodes shape inference may visit.
#[derive(Clone, Debug)]
pub struct Budget(Arc<AtomicUsize>);

impl Default for Budget {
    fn default() -> Budget {
        Budget(Arc::new(AtomicUsize::new(MAX_NODES)))
    }
}

impl Budget {
    /// Takes `n` nodes off; whether so many are left.
    pub fn take(&self, n: usize) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(n)).is_ok()
    }
}
