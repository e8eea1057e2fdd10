//! One pass over the host's tracks, which finds for each op, launch and allocation the module and the op that it is in.
//!
//! The gradient of an op is computed on another thread, or later on the same one. Its slice has the op's number, by
//! which it is the op's module's. Since either may be visited first, the costs of gradients are summed by number, and
//! given to the modules at the end.

use super::args::OpArgs;
use super::device_time::DeviceTimes;
use super::modules::{ModuleCost, ModuleRow, Modules, module_of_site};
use super::shapes::{OpCost, OpShapeRow, OpShapes};
use crate::activity::{Activities, Activity};
use crate::kernels::Launchers;
use crate::nesting::{self, Visit, inside_ns};
use rustc_hash::FxHashMap;
use std::ops::Range;
use trace_model::{ArgsReader, Category, NO_ARGS, SiteInfo, SliceRef, TrackId};
use trace_store::{Store, Track};

/// What one pass finds.
pub(crate) struct TorchTables {
    /// The modules, each followed by those that it contains.
    pub modules: Vec<ModuleRow>,
    /// The ops by the shapes of their inputs, the most time on devices first, then on the host.
    pub op_shapes: Vec<OpShapeRow>,
    /// The ops that launched a device's work.
    pub launchers: Launchers,
}

/// The part that the slices of a site have.
#[derive(Clone, Debug, PartialEq)]
enum Role {
    /// The forward pass of a module.
    Forward(String),
    /// The gradients of a module, as `stepscope.torch` records them.
    Backward(String),
    Op,
    Other,
}

impl Role {
    fn new(site: &SiteInfo) -> Role {
        if let Some(name) = module_of_site(site) {
            return Role::Forward(name.to_owned());
        }
        match site.category_name.as_str() {
            "module.backward" => Role::Backward(site.name.trim_end_matches(" backward").to_owned()),
            _ if site.category == Category::Op => Role::Op,
            _ => Role::Other,
        }
    }
}

/// Whose cost something is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Owner {
    Outside,
    Forward(u32),
    Backward(u32),
    /// A row of [`Scan::gradients`].
    Gradient(u32),
}

/// An open slice.
struct Open {
    site: u32,
    is_op: bool,
    /// What the op has cost so far.
    cost: OpCost,
    /// The ops that are directly in it, and the last of them.
    n_ops: u32,
    op: Option<(u32, u32, OpCost)>,
    /// Whose cost is what happens inside it.
    owner: Owner,
    /// The row of its op, and whether its operations are counted.
    row: Option<u32>,
    is_counted: bool,
}

pub(super) struct Scan<'a> {
    store: &'a Store,
    range: &'a Range<i64>,
    roles: Vec<Role>,
    /// Whether the slices of a site have an op's arguments, from the first one: reading them takes time.
    has_args: FxHashMap<u32, bool>,
    args: ArgsReader<'a>,
    activities: Activities<'a>,
    device_times: DeviceTimes,
    modules: Modules,
    shapes: OpShapes,
    outside: ModuleCost,
    /// Costs by process and number of the op whose gradient it is.
    gradients: Vec<((u32, i64), ModuleCost)>,
    gradient_rows: FxHashMap<(u32, i64), u32>,
    /// The op that launched each piece of a device's work, by process and correlation of the call.
    launchers: Launchers,
    /// The last op of each number: begin and owner.
    ops: FxHashMap<(u32, i64), (i64, Owner)>,
}

impl<'a> Scan<'a> {
    pub(super) fn new(store: &'a Store, range: &'a Range<i64>) -> Scan<'a> {
        Scan {
            store,
            range,
            roles: store.sites().iter().map(Role::new).collect(),
            has_args: FxHashMap::default(),
            args: store.args().reader(),
            activities: Activities::new(store),
            device_times: DeviceTimes::new(store, range),
            modules: Modules::default(),
            shapes: OpShapes::default(),
            outside: ModuleCost::default(),
            gradients: Vec::new(),
            gradient_rows: FxHashMap::default(),
            launchers: Launchers::default(),
            ops: FxHashMap::default(),
        }
    }

    /// Visits all tracks of hosts. The rows of modules are empty where the trace names none.
    pub(super) fn run(mut self) -> TorchTables {
        let mut memory: FxHashMap<TrackId, Vec<(i64, i64)>> = FxHashMap::default();
        for event in self.store.memory().iter().filter(|event| self.range.contains(&event.time)) {
            memory.entry(event.track).or_default().push((event.time, event.bytes));
        }
        for (track, id) in self.store.tracks().iter().zip(0..) {
            if track.device.is_empty() {
                let mut events = memory.remove(&TrackId(id)).unwrap_or_default();
                events.sort_unstable();
                self.visit(track, &events);
            }
        }
        self.finish()
    }

    fn visit(&mut self, track: &Track, memory: &[(i64, i64)]) {
        let (mut open, mut next) = (Vec::<Open>::new(), 0);
        nesting::visit(track, &self.range.clone(), |step| {
            let (time, owner) = match step {
                Visit::Enter(slice) => (slice.start, owner_of(&open)),
                Visit::Leave(slice, _) => (slice.end, owner_of(&open)),
            };
            while let Some((_, bytes)) = memory.get(next).filter(|(at, _)| *at < time) {
                let cost = self.cost(owner);
                cost.allocated_bytes += bytes.max(&0);
                cost.net_bytes += bytes;
                next += 1;
            }
            match step {
                Visit::Enter(slice) => {
                    let entered = self.enter(track.process, slice, &open);
                    open.push(entered);
                    self.launch(track.process, slice, &mut open);
                }
                Visit::Leave(slice, self_ns) => {
                    if let Some(left) = open.pop() {
                        self.leave(slice, self_ns, left, open.last_mut());
                    }
                }
            }
        });
    }

    fn enter(&mut self, process: u32, slice: &SliceRef, open: &[Open]) -> Open {
        let outer = owner_of(open);
        let is_counted = open.last().is_some_and(|open| open.is_counted);
        let is_op = self.roles.get(slice.site as usize) == Some(&Role::Op);
        let mut entered = Open {
            site: slice.site,
            is_op,
            cost: OpCost::default(),
            n_ops: 0,
            op: None,
            owner: outer,
            row: None,
            is_counted,
        };
        match self.roles.get(slice.site as usize) {
            Some(Role::Forward(name)) => {
                entered.owner = match outer {
                    Owner::Outside => Owner::Forward(self.modules.row(None, name)),
                    Owner::Forward(parent) => Owner::Forward(self.modules.row(Some(parent), name)),
                    // A forward pass that is repeated for the gradients.
                    Owner::Backward(_) | Owner::Gradient(_) => Owner::Backward(self.modules.named(name)),
                };
                if let (Owner::Forward(row), true) = (entered.owner, slice.start >= self.range.start) {
                    self.modules.rows[row as usize].calls += 1;
                }
            }
            Some(Role::Backward(name)) => entered.owner = Owner::Backward(self.modules.named(name)),
            Some(Role::Op) => self.enter_op(process, slice, &mut entered),
            _ => {}
        }
        entered
    }

    fn enter_op(&mut self, process: u32, slice: &SliceRef, entered: &mut Open) {
        if slice.args == NO_ARGS || self.has_args.get(&slice.site) == Some(&false) {
            return;
        }
        let args = self.args.get(slice.args).and_then(OpArgs::parse);
        self.has_args.entry(slice.site).or_insert(args.is_some());
        let Some(args) = args else { return };
        if let Some(number) = args.sequence {
            let key = (process, number);
            if !args.is_gradient() {
                let last = self.ops.entry(key).or_insert((slice.start, entered.owner));
                if slice.start >= last.0 {
                    *last = (slice.start, entered.owner);
                }
            } else if entered.owner == Owner::Outside {
                entered.owner = Owner::Gradient(*self.gradient_rows.entry(key).or_insert_with(|| {
                    self.gradients.push((key, ModuleCost::default()));
                    self.gradients.len() as u32 - 1
                }));
            }
        }
        let Some((row, flop)) = self.shapes.row(self.store, slice.site, &args) else { return };
        entered.row = Some(row);
        let counted = flop.filter(|_| !entered.is_counted && slice.start >= self.range.start);
        entered.is_counted |= flop.is_some();
        entered.cost.count = u64::from(slice.start >= self.range.start);
        entered.cost.total_ns = inside_ns(slice, self.range);
        if let Some(flop) = counted {
            entered.cost.flop += flop;
            self.cost(entered.owner).flop += flop;
        }
    }

    /// Gives the work that a call enqueues to all that it is in.
    fn launch(&mut self, process: u32, slice: &SliceRef, open: &mut [Open]) {
        if !matches!(self.activities.get(slice), Activity::Launch | Activity::Call | Activity::Memory) {
            return;
        }
        let ns = self.device_times.of_call(process, slice);
        if ns == 0 {
            return;
        }
        if let Some(op) = open.iter().rev().find(|open| open.is_op) {
            self.launchers.insert((process, slice.correlation), op.site);
        }
        self.cost(owner_of(open)).device_ns += ns;
        let mut self_ns = ns;
        for op in open.iter_mut().rev().filter(|open| open.row.is_some()) {
            op.cost.device_ns += ns;
            op.cost.self_device_ns += std::mem::take(&mut self_ns);
        }
    }

    fn leave(&mut self, slice: &SliceRef, self_ns: i64, mut left: Open, outer: Option<&mut Open>) {
        if let Some(row) = left.row {
            left.cost.self_ns = self_ns;
            // An op that only calls its overload is one execution, as in PyTorch's own tables.
            if let Some((_, overload, cost)) = left.op.filter(|(site, ..)| left.n_ops == 1 && *site == left.site) {
                self.shapes.rows[overload as usize].add(&cost, -1);
                left.cost.self_ns += cost.self_ns;
                left.cost.self_device_ns += cost.self_device_ns;
            }
            self.shapes.rows[row as usize].add(&left.cost, 1);
        }
        if let Some(outer) = outer.filter(|_| left.is_op) {
            outer.n_ops += 1;
            outer.op = left.row.map(|row| (left.site, row, left.cost));
        }
        // Outside modules, functions say nothing of a model.
        let is_work = !matches!(self.activities.get(slice), Activity::Host | Activity::Frame);
        if left.owner != Owner::Outside || is_work {
            self.cost(left.owner).host_ns += self_ns;
        }
    }

    fn cost(&mut self, owner: Owner) -> &mut ModuleCost {
        match owner {
            Owner::Outside => &mut self.outside,
            Owner::Forward(row) => &mut self.modules.rows[row as usize].own_forward,
            Owner::Backward(row) => &mut self.modules.rows[row as usize].own_backward,
            Owner::Gradient(row) => &mut self.gradients[row as usize].1,
        }
    }

    fn finish(mut self) -> TorchTables {
        let mut outside_backward = ModuleCost::default();
        for (key, cost) in std::mem::take(&mut self.gradients) {
            match self.ops.get(&key) {
                Some((_, Owner::Forward(row) | Owner::Backward(row))) => {
                    self.modules.rows[*row as usize].own_backward.add(&cost);
                }
                _ => outside_backward.add(&cost),
            }
        }
        if !self.modules.rows.is_empty() {
            let row = self.modules.row(None, "");
            let row = &mut self.modules.rows[row as usize];
            (row.own_forward, row.own_backward) = (self.outside, outside_backward);
        }
        TorchTables { modules: self.modules.into_rows(), op_shapes: self.shapes.into_rows(), launchers: self.launchers }
    }
}

fn owner_of(open: &[Open]) -> Owner {
    open.last().map_or(Owner::Outside, |open| open.owner)
}
