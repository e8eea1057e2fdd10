//! Lookup tables: objects of a container that map keys to values, in TensorFlow's terms.
//!
//! Keys and values are kept as the bytes of their elements, so that one table serves all element types.

use std::sync::Arc;

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use crate::buffer::Allocator;
use crate::checkpoint::{CHECKPOINTED, CheckpointError, Checkpointed, Fields};
use crate::dtype::DType;
use crate::kernel::KernelError;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// What a table maps to what.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// The type of keys.
    pub key: DType,
    /// The type of values.
    pub value: DType,
    /// The shape of each value.
    pub value_shape: Shape,
    /// Whether it can be changed, rather than initialised once.
    pub is_mutable: bool,
}

/// A key or a value: bytes of numbers, or strings.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Cell {
    Bytes(Box<[u8]>),
    Strings(Box<[Vec<u8>]>),
}

/// A lookup table.
pub struct Table {
    name: Arc<str>,
    form: Form,
    /// The shape of each key: a scalar, but in dense tables the shape of the reserved keys.
    key_shape: Shape,
    reserved: Vec<Cell>,
    /// `None` until it is initialised; a mutable one is from the beginning.
    rows: RwLock<Option<FxHashMap<Cell, Cell>>>,
}

/// The rows of a tensor, `n` of them.
fn cells(t: &Tensor, n: usize) -> Result<Vec<Cell>, KernelError> {
    if t.dtype() == DType::String {
        let all = t.strings()?;
        let row = all.len().checked_div(n).unwrap_or(0);
        return Ok((0..n).map(|i| Cell::Strings(all[i * row..][..row].into())).collect());
    }
    let bytes = t.bytes();
    let row = bytes.len().checked_div(n).unwrap_or(0);
    Ok((0..n).map(|i| Cell::Bytes(bytes[i * row..][..row].into())).collect())
}

/// A tensor of rows.
fn joined<'a>(
    dtype: DType,
    shape: Shape,
    rows: impl Iterator<Item = &'a Cell>,
    allocator: &Allocator,
) -> Result<Tensor, KernelError> {
    let (mut strings, mut bytes) = (Vec::new(), Vec::new());
    for row in rows {
        match row {
            Cell::Strings(row) => strings.extend_from_slice(row),
            Cell::Bytes(row) => bytes.extend_from_slice(row),
        }
    }
    Ok(match dtype {
        DType::String => Tensor::from_strings(shape, strings)?,
        DType::Bool => Tensor::from_vec(shape, bytes.iter().map(|b| *b != 0).collect())?,
        _ => Tensor::from_bytes(dtype, shape, &bytes, allocator)?,
    })
}

impl Table {
    /// An empty table. `reserved`: keys that must not be used (those of a dense table).
    ///
    /// # Errors
    /// The reserved keys are of another type, or equal.
    pub fn new(name: Arc<str>, form: Form, reserved: Option<[Tensor; 2]>) -> Result<Table, KernelError> {
        let rows = RwLock::new(form.is_mutable.then(FxHashMap::default));
        let mut table = Table { name, form, key_shape: Shape::scalar(), reserved: Vec::new(), rows };
        if let Some([empty, deleted]) = reserved {
            table.check("key", empty.dtype(), table.form.key)?;
            table.key_shape = empty.shape().clone();
            if empty.shape() != deleted.shape() {
                return Err(KernelError::invalid("the empty and the deleted key have different shapes"));
            }
            table.reserved = vec![cells(&empty, 1)?.remove(0), cells(&deleted, 1)?.remove(0)];
            if table.reserved[0] == table.reserved[1] {
                return Err(KernelError::invalid("the empty and the deleted key cannot be the same"));
            }
        }
        Ok(table)
    }

    /// What it maps to what.
    pub fn form(&self) -> &Form {
        &self.form
    }

    /// How many keys it has.
    pub fn len(&self) -> usize {
        self.rows.read().as_ref().map_or(0, FxHashMap::len)
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn check(&self, what: &str, got: DType, expected: DType) -> Result<(), KernelError> {
        match got == expected {
            true => Ok(()),
            false => {
                Err(KernelError::invalid(format!("table {}: {what}s are of type {expected}, got {got}", self.name)))
            }
        }
    }

    fn not_initialized(&self) -> KernelError {
        KernelError::invalid(format!("table {} is not initialized", self.name))
    }

    /// The dimensions of a batch of keys, and the keys.
    fn keys<'t>(&self, keys: &'t Tensor) -> Result<(&'t [usize], Vec<Cell>), KernelError> {
        self.check("key", keys.dtype(), self.form.key)?;
        let (dims, own) = (keys.dims(), self.key_shape.dims());
        let Some(batch) = dims.strip_suffix(own) else {
            let text = format!(
                "table {}: keys of shape {} end in no key of shape {}",
                self.name,
                keys.shape(),
                self.key_shape
            );
            return Err(KernelError::invalid(text));
        };
        let found = cells(keys, batch.iter().product())?;
        if found.iter().any(|key| self.reserved.contains(key)) {
            return Err(KernelError::invalid(format!(
                "table {}: the empty or the deleted key is used as a key",
                self.name
            )));
        }
        Ok((batch, found))
    }

    /// Keys with their values.
    fn pairs(&self, keys: &Tensor, values: &Tensor) -> Result<Vec<(Cell, Cell)>, KernelError> {
        let (batch, keys) = self.keys(keys)?;
        self.check("value", values.dtype(), self.form.value)?;
        let expected = Shape::new(&[batch, self.form.value_shape.dims()].concat());
        if *values.shape() != expected {
            let got = values.shape();
            return Err(KernelError::invalid(format!(
                "table {}: expected values of shape {expected}, got {got}",
                self.name
            )));
        }
        let values = cells(values, keys.len())?;
        Ok(keys.into_iter().zip(values).collect())
    }

    /// The values of `keys`; of those that are missing `default`, one value or one for each key.
    ///
    /// # Errors
    /// Types or shapes do not fit, or the table is not initialised.
    pub fn find(&self, keys: &Tensor, default: &Tensor, allocator: &Allocator) -> Result<Tensor, KernelError> {
        let (batch, keys) = self.keys(keys)?;
        self.check("value", default.dtype(), self.form.value)?;
        let shape = Shape::new(&[batch, self.form.value_shape.dims()].concat());
        let is_each = self.form.is_mutable && *default.shape() == shape;
        if !is_each && *default.shape() != self.form.value_shape {
            let (got, expected) = (default.shape(), &self.form.value_shape);
            let text = format!("table {}: expected a default value of shape {expected}, got {got}", self.name);
            return Err(KernelError::invalid(text));
        }
        let defaults = cells(default, if is_each { keys.len() } else { 1 })?;
        let rows = self.rows.read();
        let rows = rows.as_ref().ok_or_else(|| self.not_initialized())?;
        let value = |(i, key)| rows.get(key).unwrap_or(&defaults[if is_each { i } else { 0 }]);
        joined(self.form.value, shape, keys.iter().enumerate().map(value), allocator)
    }

    /// Changes the rows of a mutable table.
    fn change(&self, f: impl FnOnce(&mut FxHashMap<Cell, Cell>)) -> Result<(), KernelError> {
        if !self.form.is_mutable {
            return Err(KernelError::invalid(format!("table {} cannot be changed: it is not mutable", self.name)));
        }
        f(self.rows.write().get_or_insert_default());
        Ok(())
    }

    /// Puts values under keys, in the place of those that are there.
    ///
    /// # Errors
    /// Types or shapes do not fit, or the table is not mutable.
    pub fn insert(&self, keys: &Tensor, values: &Tensor) -> Result<(), KernelError> {
        let pairs = self.pairs(keys, values)?;
        self.change(|rows| rows.extend(pairs))
    }

    /// Removes keys; those that are not there are nothing to remove.
    ///
    /// # Errors
    /// The type does not fit, or the table is not mutable.
    pub fn remove(&self, keys: &Tensor) -> Result<(), KernelError> {
        let (_, keys) = self.keys(keys)?;
        self.change(|rows| keys.iter().for_each(|key| drop(rows.remove(key))))
    }

    /// Puts keys and values in the place of all that is there.
    ///
    /// # Errors
    /// Types or shapes do not fit, or the table is not mutable.
    pub fn import(&self, keys: &Tensor, values: &Tensor) -> Result<(), KernelError> {
        let pairs = self.pairs(keys, values)?;
        self.change(|rows| *rows = pairs.into_iter().collect())
    }

    /// Fills a table that is filled once. Again with as many keys is nothing new.
    ///
    /// # Errors
    /// Types or shapes do not fit, a key has two values, or the table has other keys already.
    pub fn initialize(&self, keys: &Tensor, values: &Tensor) -> Result<(), KernelError> {
        if self.form.is_mutable {
            return Err(KernelError::invalid(format!("table {} is mutable: it is not initialized", self.name)));
        }
        let mut new = FxHashMap::default();
        for (key, value) in self.pairs(keys, values)? {
            if let Some(before) = new.insert(key, value.clone())
                && before != value
            {
                return Err(KernelError::invalid(format!("table {} has different values for the same key", self.name)));
            }
        }
        let mut rows = self.rows.write();
        match &*rows {
            None => *rows = Some(new),
            Some(old) if old.len() == new.len() => {}
            Some(_) => {
                let text = format!("table {} was already initialized with different data", self.name);
                return Err(KernelError::invalid(text));
            }
        }
        Ok(())
    }

    /// All keys and their values, in order of the keys' bytes.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn export(&self, allocator: &Allocator) -> Result<(Tensor, Tensor), KernelError> {
        let rows = self.rows.read();
        let mut pairs: Vec<(&Cell, &Cell)> = rows.iter().flatten().collect();
        pairs.sort_unstable();
        let shape = |of: &Shape| Shape::new(&[&[pairs.len()], of.dims()].concat());
        let (keys, values) = (shape(&self.key_shape), shape(&self.form.value_shape));
        let keys = joined(self.form.key, keys, pairs.iter().map(|pair| pair.0), allocator)?;
        Ok((keys, joined(self.form.value, values, pairs.iter().map(|pair| pair.1), allocator)?))
    }
}

#[linkme::distributed_slice(CHECKPOINTED)]
static TABLE: crate::checkpoint::AsCheckpointed =
    |object| object.downcast_ref::<Table>().map(|table| table as &dyn Checkpointed);

/// Mutable tables go to checkpoints; the others are filled from what fills them.
impl Checkpointed for Table {
    fn kind(&self) -> &'static str {
        "table"
    }

    fn save(&self) -> Fields {
        let mut fields = Fields::new();
        // Without memory for a copy there is nothing to save; the checkpoint says what it has.
        if let Some((keys, values)) = self.form.is_mutable.then(|| self.export(Allocator::host()).ok()).flatten() {
            fields.insert("keys".into(), keys);
            fields.insert("values".into(), values);
        }
        fields
    }

    fn restore(&self, fields: &Fields) -> Result<(), CheckpointError> {
        let bad = |problem: &str| CheckpointError::state(&self.name, problem);
        let field = |name: &str| fields.get(name).ok_or_else(|| bad(&format!("the saved table has no {name}")));
        self.import(field("keys")?, field("values")?).map_err(|e| bad(&e.to_string()))
    }
}
