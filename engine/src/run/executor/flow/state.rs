//! Frames and iterations of a step while it runs, and those that wait to be used again.
//!
//! What keeps an iteration is counted in one word, [`Iteration::holds`]: its ready and running executions, the frames
//! entered from it, and either the `Enter`s that have not arrived (iteration 0) or its predecessor. Whoever brings the
//! word to zero retires the iteration; nobody refers to it any more. The lock of a frame is taken to begin and to retire
//! iterations and for loop invariants, the lock of the pool for memory.

use std::collections::VecDeque;
use std::ops::Deref;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::compile::plan::Plan;
use crate::compile::plan::frames::FlowPlan;
use crate::run::executor::slots::Slots;
use crate::run::executor::workers::Workers;
use engine_core::kernel::Slot;

/// One iteration of a frame's instance.
pub(crate) struct Iteration {
    /// What keeps it; see the module's text.
    pub holds: AtomicU32,
    /// The node and slot with which the tables begin.
    pub first_node: u32,
    pub first_slot: u32,
    spec: u32,
    /// By node of the frame: see `counts`.
    pub counts: Box<[AtomicU32]>,
    /// As `FlatState::ready`.
    pub ready: Box<[AtomicU64]>,
    pub slots: Slots,
    /// Its number in its frame.
    pub number: AtomicU64,
    /// Null: the root's.
    pub frame: AtomicPtr<Frame>,
    /// The next iteration, once it began.
    pub next: AtomicPtr<Iteration>,
    /// Instances of the frames that its nodes enter.
    pub children: Box<[AtomicPtr<Frame>]>,
}

/// An instance of a frame.
pub(crate) struct Frame {
    pub spec: u32,
    /// Identifies the instance in the step, the same on all devices.
    pub id: AtomicU64,
    /// The iteration that entered it.
    pub parent: AtomicPtr<Iteration>,
    /// Iteration 0, while `Enter`s are missing.
    pub first: AtomicPtr<Iteration>,
    /// By exit of the frame: whether a value left there.
    pub live_exits: Box<[AtomicBool]>,
    pub control: Mutex<FrameControl>,
}

/// What changes when iterations begin and end.
#[derive(Default)]
pub(crate) struct FrameControl {
    /// Those that have not ended, the oldest first.
    pub iterations: VecDeque<IterationRef>,
    pub n_started: u64,
    /// Nodes whose values wait for the next iteration, until one has ended.
    pub deferred: Vec<(u32, Slot)>,
    /// Constant `Enter`s and their values.
    pub invariants: Vec<(u32, Slot)>,
}

macro_rules! reference {
    ($(#[$doc:meta])* $name:ident, $to:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub(crate) struct $name(NonNull<$to>);

        // SAFETY: what it refers to is `Sync`.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}

        impl Deref for $name {
            type Target = $to;

            #[inline(always)]
            fn deref(&self) -> &$to {
                // SAFETY: made by `Memory` only, which frees nothing before the step's state ends, and shared only.
                unsafe { self.0.as_ref() }
            }
        }

        impl $name {
            #[inline(always)]
            pub fn as_ptr(self) -> *mut $to {
                self.0.as_ptr()
            }
        }
    };
}

reference!(
    /// An iteration in the memory of a step's state.
    IterationRef,
    Iteration
);
reference!(
    /// A frame's instance in the memory of a step's state.
    FrameRef,
    Frame
);

impl IterationRef {
    /// The iteration, as long as the state that it is of.
    #[inline(always)]
    pub fn within(self, _: &FlowState) -> &Iteration {
        // SAFETY: the state's memory frees nothing before the state ends.
        unsafe { self.0.as_ref() }
    }

    /// What an atomic pointer of this module, or [`IterationRef::as_ptr`] of the same step, gave.
    ///
    /// # Safety
    /// The pointer is null or comes from there.
    #[inline(always)]
    pub unsafe fn from_ptr(pointer: *mut Iteration) -> Option<IterationRef> {
        NonNull::new(pointer).map(IterationRef)
    }

    /// The next iteration, if it began.
    #[inline]
    pub fn next(self) -> Option<IterationRef> {
        // SAFETY: only references are stored there.
        unsafe { IterationRef::from_ptr(self.next.load(Ordering::Acquire)) }
    }

    /// The frame's instance; `None` for the root.
    #[inline]
    pub fn frame(self) -> Option<FrameRef> {
        NonNull::new(self.frame.load(Ordering::Relaxed)).map(FrameRef)
    }

    /// The instance of a child frame, if it was entered.
    #[inline]
    pub fn child(self, child_idx: u32) -> Option<FrameRef> {
        NonNull::new(self.children[child_idx as usize].load(Ordering::Acquire)).map(FrameRef)
    }
}

impl FrameRef {
    #[inline]
    pub fn parent(self) -> Option<IterationRef> {
        // SAFETY: only references are stored there.
        unsafe { IterationRef::from_ptr(self.parent.load(Ordering::Relaxed)) }
    }

    #[inline]
    pub fn first(self) -> Option<IterationRef> {
        // SAFETY: only references are stored there.
        unsafe { IterationRef::from_ptr(self.first.load(Ordering::Relaxed)) }
    }
}

/// A ready execution.
#[derive(Clone, Copy)]
pub(crate) struct Ready {
    pub iteration: IterationRef,
    pub node: u32,
    pub is_dead: bool,
}

/// The control-flow part of a step's state.
pub(crate) struct FlowState {
    pub root: IterationRef,
    pub workers: Workers<Ready>,
    memory: Mutex<Memory>,
}

/// All iterations and frames of a state, and by static frame those that are free.
struct Memory {
    iterations: Vec<IterationRef>,
    frames: Vec<FrameRef>,
    free_iterations: Vec<Vec<IterationRef>>,
    free_frames: Vec<Vec<FrameRef>>,
}

impl FlowState {
    pub fn new(plan: &Plan, flow: &FlowPlan, n_workers: usize) -> FlowState {
        let n_frames = flow.frames.len();
        let mut memory = Memory {
            iterations: Vec::new(),
            frames: Vec::new(),
            free_iterations: vec![Vec::new(); n_frames],
            free_frames: vec![Vec::new(); n_frames],
        };
        // The sink and the fetches are numbered after all frames' nodes: the root has the tables of the whole plan.
        let n_children = flow.frames[0].n_children as usize;
        let root = memory.add_iteration(Iteration::new(0, (0, plan.pending.len()), (0, plan.n_slots), n_children));
        let state = FlowState { root, workers: Workers::new(plan, n_workers), memory: Mutex::new(memory) };
        state.reset(plan);
        state
    }

    /// Whether all that began in the step also ended: nothing keeps the root.
    pub fn is_clean(&self) -> bool {
        self.root.holds.load(Ordering::Relaxed) == 0
    }

    /// Makes the root ready for a step.
    pub fn reset(&self, plan: &Plan) {
        let root = self.root;
        for (count, initial) in root.counts.iter().zip(&plan.pending) {
            count.store(*initial, Ordering::Relaxed);
        }
        root.holds.store(plan.roots.len() as u32, Ordering::Relaxed);
        root.children.iter().for_each(|child| child.store(null_mut(), Ordering::Relaxed));
    }

    /// Drops what a step that ended early left behind. Nobody runs nodes.
    pub fn clear(&mut self) {
        self.workers.clear();
        let memory = self.memory.get_mut();
        memory.free_iterations.iter_mut().for_each(Vec::clear);
        memory.free_frames.iter_mut().for_each(Vec::clear);
        for iteration in &memory.iterations {
            // SAFETY: no thread runs nodes.
            unsafe { iteration.slots.inputs(0, iteration.slots.len()) }.fill_with(|| None);
            iteration.children.iter().for_each(|child| child.store(null_mut(), Ordering::Relaxed));
            if *iteration != self.root {
                memory.free_iterations[iteration.spec as usize].push(*iteration);
            }
        }
        for frame in &memory.frames {
            *frame.control.lock() = FrameControl::default();
            frame.live_exits.iter().for_each(|exit| exit.store(false, Ordering::Relaxed));
            memory.free_frames[frame.spec as usize].push(*frame);
        }
    }

    /// Iteration `number` of an instance of a frame: counts fresh, slots empty, kept by `holds`.
    pub fn take_iteration(
        &self,
        plan: &Plan,
        flow: &FlowPlan,
        frame: FrameRef,
        number: u64,
        holds: u32,
    ) -> IterationRef {
        self.memory.lock().take_iteration(plan, flow, frame, number, holds)
    }

    /// Takes back an iteration that nothing keeps.
    pub fn give_iteration(&self, flow: &FlowPlan, iteration: IterationRef) {
        if flow.frames[iteration.spec as usize].leaves_values {
            // SAFETY: nothing keeps the iteration, so nobody uses its slots.
            unsafe { iteration.slots.inputs(0, iteration.slots.len()) }.fill_with(|| None);
        }
        self.memory.lock().free_iterations[iteration.spec as usize].push(iteration);
    }

    /// The instance of static frame `spec` that `parent` enters, made where it is the first to enter; it keeps `parent`
    /// then.
    pub fn enter(&self, plan: &Plan, flow: &FlowPlan, parent: IterationRef, spec: u32) -> FrameRef {
        let child_idx = flow.frames[spec as usize].child_idx;
        if let Some(frame) = parent.child(child_idx) {
            return frame;
        }
        let mut memory = self.memory.lock();
        if let Some(frame) = parent.child(child_idx) {
            return frame;
        }
        let of = &flow.frames[spec as usize];
        let frame = match memory.free_frames[spec as usize].pop() {
            Some(frame) => frame,
            None => memory.add_frame(Frame::new(spec, of.exits.len())),
        };
        let parent_id = parent.frame().map_or(0, |frame| frame.id.load(Ordering::Relaxed));
        let id = crate::compile::plan::frames::frame_id(parent_id, parent.number.load(Ordering::Relaxed), of.name_hash);
        frame.id.store(id, Ordering::Relaxed);
        frame.parent.store(parent.as_ptr(), Ordering::Relaxed);
        let first = memory.take_iteration(plan, flow, frame, 0, of.n_enters);
        frame.first.store(first.as_ptr(), Ordering::Relaxed);
        // Nobody else knows the frame yet, so this lock is free.
        let mut control = frame.control.lock();
        control.iterations.push_back(first);
        control.n_started = 1;
        drop(control);
        parent.holds.fetch_add(1, Ordering::Relaxed);
        parent.children[child_idx as usize].store(frame.as_ptr(), Ordering::Release);
        frame
    }

    /// Takes back a frame that ended.
    pub fn give_frame(&self, frame: FrameRef) {
        self.memory.lock().free_frames[frame.spec as usize].push(frame);
    }
}

impl Memory {
    fn add_iteration(&mut self, iteration: Iteration) -> IterationRef {
        let iteration = IterationRef(NonNull::from(Box::leak(Box::new(iteration))));
        self.iterations.push(iteration);
        iteration
    }

    fn take_iteration(
        &mut self,
        plan: &Plan,
        flow: &FlowPlan,
        frame: FrameRef,
        number: u64,
        holds: u32,
    ) -> IterationRef {
        let spec = &flow.frames[frame.spec as usize];
        let nodes = (spec.first_node, spec.n_nodes as usize);
        let iteration = match self.free_iterations[frame.spec as usize].pop() {
            Some(iteration) => iteration,
            None => {
                let slots = (spec.first_slot, spec.n_slots as usize);
                self.add_iteration(Iteration::new(frame.spec, nodes, slots, spec.n_children as usize))
            }
        };
        let initial = &plan.pending[nodes.0 as usize..][..nodes.1];
        for (count, initial) in iteration.counts.iter().zip(initial) {
            count.store(*initial, Ordering::Relaxed);
        }
        iteration.holds.store(holds, Ordering::Relaxed);
        iteration.number.store(number, Ordering::Relaxed);
        iteration.frame.store(frame.as_ptr(), Ordering::Relaxed);
        iteration.next.store(null_mut(), Ordering::Relaxed);
        iteration
    }

    fn add_frame(&mut self, frame: Frame) -> FrameRef {
        let frame = FrameRef(NonNull::from(Box::leak(Box::new(frame))));
        self.frames.push(frame);
        frame
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for iteration in &self.iterations {
            // SAFETY: leaked by `add_iteration`, once; the state that handed out references ends here.
            drop(unsafe { Box::from_raw(iteration.as_ptr()) });
        }
        for frame in &self.frames {
            // SAFETY: as above, by `add_frame`.
            drop(unsafe { Box::from_raw(frame.as_ptr()) });
        }
    }
}

impl Iteration {
    fn new(spec: u32, nodes: (u32, usize), slots: (u32, usize), n_children: usize) -> Iteration {
        Iteration {
            holds: AtomicU32::new(0),
            first_node: nodes.0,
            first_slot: slots.0,
            spec,
            counts: std::iter::repeat_with(|| AtomicU32::new(0)).take(nodes.1).collect(),
            ready: std::iter::repeat_with(|| AtomicU64::new(0)).take(nodes.1).collect(),
            slots: Slots::new(slots.1),
            number: AtomicU64::new(0),
            frame: AtomicPtr::new(null_mut()),
            next: AtomicPtr::new(null_mut()),
            children: std::iter::repeat_with(|| AtomicPtr::new(null_mut())).take(n_children).collect(),
        }
    }
}

impl Frame {
    fn new(spec: u32, n_exits: usize) -> Frame {
        Frame {
            spec,
            id: AtomicU64::new(0),
            parent: AtomicPtr::new(null_mut()),
            first: AtomicPtr::new(null_mut()),
            live_exits: std::iter::repeat_with(|| AtomicBool::new(false)).take(n_exits).collect(),
            control: Mutex::default(),
        }
    }
}
