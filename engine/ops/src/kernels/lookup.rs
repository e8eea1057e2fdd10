//! Kernels of lookup tables.
//!
//! A table maps keys (elements, or rows of a dense table) to values of one shape. One that is initialised is not changed
//! any more; a mutable one is, by inserts, removals and imports. Exports are in order of the keys' bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::resource::{Key, object};
use super::support::{Built, Computed, cheap, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::DType;
use engine_core::graph::{Attr, Node};
use engine_core::lookup::{Form, Table};
use engine_core::shape::{PartialShape, Shape};
use engine_core::tensor::{ResourceHandle, Tensor};

#[linkme::distributed_slice(KERNEL_TABLES)]
static TABLES: &[KernelDef] = &[
    cpu_any("HashTable", |n| make(n, false)),
    cpu_any("HashTableV2", |n| make(n, false)),
    cpu_any("MutableHashTable", |n| make(n, true)),
    cpu_any("MutableHashTableV2", |n| make(n, true)),
    cpu_any("MutableHashTableOfTensors", |n| make(n, true)),
    cpu_any("MutableHashTableOfTensorsV2", |n| make(n, true)),
    cpu_any("MutableDenseHashTable", |n| make(n, true)),
    cpu_any("MutableDenseHashTableV2", |n| make(n, true)),
    cpu_any("AnonymousHashTable", |n| make_anonymous(n, false)),
    cpu_any("AnonymousMutableHashTable", |n| make_anonymous(n, true)),
    cpu_any("AnonymousMutableHashTableOfTensors", |n| make_anonymous(n, true)),
    cpu_any("AnonymousMutableDenseHashTable", |n| make_anonymous(n, true)),
    cpu_any("LookupTableFind", |_| kernel(find)),
    cpu_any("LookupTableFindV2", |_| kernel(find)),
    cpu_any("LookupTableInsert", |_| kernel(insert)),
    cpu_any("LookupTableInsertV2", |_| kernel(insert)),
    cpu_any("LookupTableRemoveV2", |_| kernel(remove)),
    cpu_any("LookupTableSize", |_| cheap(size)),
    cpu_any("LookupTableSizeV2", |_| cheap(size)),
    cpu_any("LookupTableExport", |_| kernel(export)),
    cpu_any("LookupTableExportV2", |_| kernel(export)),
    cpu_any("LookupTableImport", |_| kernel(import)),
    cpu_any("LookupTableImportV2", |_| kernel(import)),
    cpu_any("InitializeTable", |_| kernel(initialize)),
    cpu_any("InitializeTableV2", |_| kernel(initialize)),
    cpu_any("InitializeTableFromTextFile", from_file),
    cpu_any("InitializeTableFromTextFileV2", from_file),
];

/// What the node says of its table.
fn form(node: &Node, is_mutable: bool) -> Result<Form, KernelError> {
    let value_shape = match node.attrs.get("value_shape") {
        Some(Attr::Shape(shape)) => {
            let known = |shape: &PartialShape| KernelError::invalid(format!("value_shape {shape} must be known"));
            shape.known().ok_or_else(|| known(shape))?
        }
        _ => Shape::scalar(),
    };
    let (key, value) = (*node.dtype("key_dtype")?, *node.dtype("value_dtype")?);
    for dtype in [key, value] {
        if dtype.size() == 0 && dtype != DType::String {
            return Err(KernelError::invalid(format!("a table cannot hold {dtype}")));
        }
    }
    Ok(Form { key, value, value_shape, is_mutable })
}

/// The two keys that a dense table's users must not use; its node's inputs.
fn reserved(c: &KernelContext<'_>) -> Option<[Tensor; 2]> {
    match (c.input(0), c.input(1)) {
        (Ok(empty), Ok(deleted)) => Some([empty.clone(), deleted.clone()]),
        _ => None,
    }
}

fn make(node: &Node, is_mutable: bool) -> Built {
    let (form, key) = (form(node, is_mutable)?, Key::of(node)?);
    cheap(move |c| {
        let table = Table::new(Arc::clone(&key.name), form.clone(), reserved(c))?;
        let handle = key.object(c, || table)?;
        let shared = object::<Table>(&handle)?;
        if *shared.form() != form {
            return Err(KernelError::invalid(format!("shared table {} is of other types", key.name)));
        }
        c.set(0, handle);
        Ok(())
    })
}

/// A table for whoever has the handle.
fn make_anonymous(node: &Node, is_mutable: bool) -> Built {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let form = form(node, is_mutable)?;
    cheap(move |c| {
        let name: Arc<str> = format!("anonymous_table_{}", NEXT.fetch_add(1, Ordering::Relaxed)).into();
        let table = Table::new(Arc::clone(&name), form.clone(), reserved(c))?;
        c.set(0, Tensor::resource(ResourceHandle { container: "".into(), name, object: Arc::new(table) }));
        Ok(())
    })
}

fn table(c: &KernelContext<'_>) -> Result<Arc<Table>, KernelError> {
    object::<Table>(c.input(0)?)
}

fn find(c: &mut KernelContext<'_>) -> Computed {
    let values = table(c)?.find(c.input(1)?, c.input(2)?, c.allocator)?;
    c.set(0, values);
    Ok(())
}

fn insert(c: &mut KernelContext<'_>) -> Computed {
    table(c)?.insert(c.input(1)?, c.input(2)?)
}

fn remove(c: &mut KernelContext<'_>) -> Computed {
    table(c)?.remove(c.input(1)?)
}

fn size(c: &mut KernelContext<'_>) -> Computed {
    let n = table(c)?.len() as i64;
    c.set(0, Tensor::scalar(n));
    Ok(())
}

fn export(c: &mut KernelContext<'_>) -> Computed {
    let (keys, values) = table(c)?.export(c.allocator)?;
    c.set(0, keys);
    c.set(1, values);
    Ok(())
}

fn import(c: &mut KernelContext<'_>) -> Computed {
    table(c)?.import(c.input(1)?, c.input(2)?)
}

fn initialize(c: &mut KernelContext<'_>) -> Computed {
    table(c)?.initialize(c.input(1)?, c.input(2)?)
}

/// What stands at an index of a line: the line's number, the entire line, or one of its columns.
#[derive(Clone, Copy)]
enum Column {
    Number,
    Whole,
    At(usize),
}

impl Column {
    fn of(node: &Node, name: &str) -> Result<Column, KernelError> {
        match *node.int(name)? {
            -1 => Ok(Column::Number),
            -2 => Ok(Column::Whole),
            i => {
                let bad = || KernelError::invalid(format!("{name} {i} must be -2, -1 or a column"));
                usize::try_from(i).map(Column::At).map_err(|_| bad())
            }
        }
    }

    fn text(self, number: i64, line: &str, delimiter: char) -> Result<String, KernelError> {
        Ok(match self {
            Column::Number => number.to_string(),
            Column::Whole => line.to_owned(),
            Column::At(i) => {
                let none = || KernelError::invalid(format!("line {number} has no column {i}: {line:?}"));
                line.split(delimiter).nth(i).ok_or_else(none)?.to_owned()
            }
        })
    }
}

/// Texts as a vector of `dtype`.
fn parsed(dtype: DType, texts: Vec<String>) -> Result<Tensor, KernelError> {
    fn all<T: std::str::FromStr>(texts: &[String]) -> Result<Vec<T>, KernelError> {
        let bad = |text: &str| KernelError::invalid(format!("{text:?} in the file is no number of the table's type"));
        texts.iter().map(|text| text.trim().parse::<T>().map_err(|_| bad(text))).collect()
    }
    let n = [texts.len()];
    Ok(match dtype {
        DType::String => Tensor::from_strings(n, texts.into_iter().map(String::into_bytes).collect())?,
        DType::I64 => Tensor::from_vec(n, all::<i64>(&texts)?)?,
        DType::I32 => Tensor::from_vec(n, all::<i32>(&texts)?)?,
        DType::F32 => Tensor::from_vec(n, all::<f32>(&texts)?)?,
        DType::F64 => Tensor::from_vec(n, all::<f64>(&texts)?)?,
        other => return Err(KernelError::invalid(format!("a file cannot fill a table of {other}"))),
    })
}

fn from_file(node: &Node) -> Built {
    let (key, value) = (Column::of(node, "key_index")?, Column::of(node, "value_index")?);
    let size = usize::try_from(*node.int("vocab_size")?).ok();
    // The first line's number.
    let offset = *node.int("offset")?;
    let delimiter = node.text("delimiter")?;
    let mut one = delimiter.chars();
    let (Some(delimiter), None) = (one.next(), one.next()) else {
        return Err(KernelError::invalid(format!("the delimiter must be one character, got {delimiter:?}")));
    };
    kernel(move |c| {
        let table = table(c)?;
        let [name] = c.input(1)?.strings()? else { return Err(KernelError::invalid("the file's name is one string")) };
        let name = String::from_utf8_lossy(name).into_owned();
        let text = std::fs::read_to_string(&name).map_err(|e| KernelError::File(name.as_str().into(), e))?;
        let lines: Vec<&str> = text.lines().take(size.unwrap_or(usize::MAX)).collect();
        if let Some(size) = size.filter(|size| lines.len() < *size) {
            return Err(KernelError::invalid(format!("{name} has {} lines, vocab_size is {size}", lines.len())));
        }
        let column = |of: Column| {
            let texts = (offset..).zip(&lines).map(|(number, line)| of.text(number, line, delimiter));
            texts.collect::<Result<Vec<_>, _>>()
        };
        let (keys, values) = (parsed(table.form().key, column(key)?)?, parsed(table.form().value, column(value)?)?);
        table.initialize(&keys, &values)
    })
}
