//! Ops by the shapes of their inputs.

use super::args::OpArgs;
use super::flop;
use rustc_hash::FxHashMap;
use trace_store::Store;

/// The executions of one op with inputs of the same dimensions and types.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpShapeRow {
    /// The op: `aten::addmm`.
    pub name: String,
    /// Dimensions of each input as JSON, as they were recorded: `[[256], [32, 64], [64, 256], [], []]`.
    pub dims: String,
    /// Type of each input as JSON: `["float", "float", "float", "Scalar", "Scalar"]`.
    pub types: String,
    /// Executions that began in the range.
    pub count: u64,
    /// Time on the host, ns, nested ops included.
    pub total_ns: i64,
    /// Time on the host without what is nested in it, ns.
    pub self_ns: i64,
    /// Time of the device's work that it enqueued, ns, nested ops included.
    pub device_ns: i64,
    /// Time of the device's work that it enqueued itself, ns.
    pub self_device_ns: i64,
    /// Floating-point operations; 0 where they are not counted (docs/use/analysis.md).
    pub flop: f64,
}

/// What one execution of an op cost: the figures of its row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OpCost {
    pub(super) count: u64,
    pub(super) total_ns: i64,
    pub(super) self_ns: i64,
    pub(super) device_ns: i64,
    pub(super) self_device_ns: i64,
    pub(super) flop: f64,
}

impl OpShapeRow {
    /// Adds an execution `times` times: 1, or -1 to take it back.
    pub(super) fn add(&mut self, cost: &OpCost, times: i64) {
        self.count = self.count.wrapping_add_signed(times * cost.count.cast_signed());
        self.total_ns += times * cost.total_ns;
        self.self_ns += times * cost.self_ns;
        self.device_ns += times * cost.device_ns;
        self.self_device_ns += times * cost.self_device_ns;
        self.flop += times as f64 * cost.flop;
    }
}

/// Rows, by site, dimensions and types.
#[derive(Default)]
pub(super) struct OpShapes {
    pub(super) rows: Vec<OpShapeRow>,
    by_key: FxHashMap<(u32, String), u32>,
    /// Operations by row, or by row and values of the inputs that are no tensors.
    flop: FxHashMap<(u32, String), Option<f64>>,
}

impl OpShapes {
    /// The row of an execution, and its operations if they are counted. `None` where no dimensions were recorded.
    pub(super) fn row(&mut self, store: &Store, site: u32, args: &OpArgs<'_>) -> Option<(u32, Option<f64>)> {
        let (dims, types) = (args.dims?.get(), args.types.map_or("[]", |types| types.get()));
        let name = &store.sites().get(site as usize)?.name;
        let row = *self.by_key.entry((site, format!("{dims}{types}"))).or_insert_with(|| {
            let (name, dims, types) = (name.clone(), dims.to_owned(), types.to_owned());
            self.rows.push(OpShapeRow { name, dims, types, ..OpShapeRow::default() });
            self.rows.len() as u32 - 1
        });
        let values = args.values.filter(|_| flop::depends_on_values(name)).map_or("", |values| values.get());
        let flop = *self.flop.entry((row, values.to_owned())).or_insert_with(|| flop::flop(name, args));
        Some((row, flop))
    }

    /// The rows, the most time on devices first, then on the host.
    pub(super) fn into_rows(mut self) -> Vec<OpShapeRow> {
        // Of an overload nothing is left where each execution is its caller's.
        self.rows.retain(|row| row.count > 0 || row.total_ns > 0);
        self.rows.sort_by(|a, b| {
            (b.self_device_ns, b.self_ns).cmp(&(a.self_device_ns, a.self_ns)).then_with(|| a.name.cmp(&b.name))
        });
        self.rows
    }
}
