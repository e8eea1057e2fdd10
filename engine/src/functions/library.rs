//! The functions of a graph, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use formats::proto::{FunctionDef, FunctionDefLibrary, GradientDef, RegisteredGradient};

use crate::graph::{GraphError, ImportError};

/// The functions of a graph, by name.
#[derive(Default, Clone)]
pub struct Library {
    functions: BTreeMap<Arc<str>, Arc<FunctionDef>>,
    /// The functions that compute the gradients of others.
    gradients: BTreeMap<Arc<str>, Arc<str>>,
    registered: Vec<RegisteredGradient>,
}

/// Why a function cannot be added, or a node cannot call one.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum FunctionError {
    /// The definition has no name.
    #[error("a function of the library has no name")]
    NoName,
    /// Another function has the name.
    #[error("the library has another function named {function}")]
    Duplicate {
        /// The name.
        function: String,
    },
    /// The library has no such function.
    #[error("node {node}: the library has no function {function}")]
    Missing {
        /// The node that calls it.
        node: String,
        /// The function.
        function: String,
    },
    /// The node does not fit what the function takes and gives.
    #[error("node {node}: function {function} {problem}")]
    Signature {
        /// The node that calls it.
        node: String,
        /// The function.
        function: String,
        /// What does not fit.
        problem: String,
    },
    /// The body means nothing.
    #[error("function {function}: {problem}")]
    Body {
        /// The function.
        function: String,
        /// What is wrong.
        problem: String,
    },
    /// With all bodies in their callers' places the graph is too large.
    #[error(
        "node {node}: with the bodies of functions in the place of their calls ({chain}) the graph has {n_nodes} nodes; \
         the limit is {limit}"
    )]
    TooLarge {
        /// The node at which it became so.
        node: String,
        /// The nodes so far, or all where they can be counted.
        n_nodes: usize,
        /// The limit.
        limit: usize,
        /// From the function that is called to where most nodes are.
        chain: String,
    },
    /// Functions that call functions that call functions.
    #[error("node {node}: calls are nested more than {limit} deep, at function {function}")]
    TooDeep {
        /// The node that begins it.
        node: String,
        /// The function that is one too many.
        function: String,
        /// The limit.
        limit: usize,
    },
    /// A node of the body does not fit.
    #[error("function {function}, called by node {node}: {source}")]
    Import {
        /// The node that calls it.
        node: String,
        /// The function.
        function: String,
        /// What is wrong.
        source: Box<ImportError>,
    },
    /// A node could not be added.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The gradient of a function could not be made.
    #[error("node {node}: {problem}")]
    Gradient {
        /// The node that asks for it.
        node: String,
        /// What is wrong.
        problem: String,
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
    pub fn add(&mut self, function: FunctionDef) -> Result<(), FunctionError> {
        let name = function.signature.as_ref().map(|s| s.name.as_str()).filter(|name| !name.is_empty());
        let name: Arc<str> = name.ok_or(FunctionError::NoName)?.into();
        match self.functions.get(&name) {
            Some(old) if **old == function => {}
            Some(_) => return Err(FunctionError::Duplicate { function: name.to_string() }),
            None => {
                self.functions.insert(name, Arc::new(function));
            }
        }
        Ok(())
    }

    /// Adds the functions of a definition.
    pub(crate) fn import(&mut self, def: &FunctionDefLibrary) -> Result<(), FunctionError> {
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
    pub(crate) fn to_def(&self) -> Option<FunctionDefLibrary> {
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
