//! The ops that there are: tables of link time, and what is registered at run time.

use std::sync::LazyLock;

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use super::aliases;
use super::def::OpDef;
use super::facts::OpKind;
use super::spec::{OpSpec, SpecError};

/// Ops registered at link time.
#[linkme::distributed_slice]
pub static OP_TABLES: [&'static [OpSpec]];

static REGISTRY: LazyLock<RwLock<FxHashMap<&'static str, &'static OpDef>>> = LazyLock::new(|| {
    let mut table = FxHashMap::default();
    for spec in OP_TABLES.iter().flat_map(|t| t.iter()) {
        // A line that does not parse leaves its op unknown; a test parses them all.
        if let Ok(def) = spec.parse() {
            table.insert(spec.name, &*Box::leak(Box::new(def)));
        }
    }
    RwLock::new(table)
});

/// The op of this name, or of the one that the white paper's name stands for ([`aliases`]).
pub fn lookup(name: &str) -> Option<&'static OpDef> {
    let registry = REGISTRY.read();
    registry.get(name).or_else(|| registry.get(aliases::resolve(name)?)).copied()
}

/// The kind of the op of this name; [`OpKind::Compute`] where there is none.
pub fn kind(name: &str) -> OpKind {
    lookup(name).map_or(OpKind::Compute, |def| def.kind)
}

/// All ops, by name.
pub fn all() -> Vec<&'static OpDef> {
    let mut all: Vec<_> = REGISTRY.read().values().copied().collect();
    all.sort_unstable_by_key(|def| def.name);
    all
}

/// Registers an op at run time; it replaces one of the same name for graphs built afterwards.
///
/// # Errors
/// The line cannot be parsed.
pub fn register(spec: &OpSpec) -> Result<(), SpecError> {
    let def = &*Box::leak(Box::new(spec.parse()?));
    REGISTRY.write().insert(spec.name, def);
    Ok(())
}
