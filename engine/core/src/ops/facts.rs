//! What an op is to those that do not compute it: to passes, placement, the executors, gradients and freezing.
//!
//! They ask the definition, never the name: an op that another crate registers as `MyRecvThing` is an op like any other
//! unless its line says more.

/// The part that an op plays in a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OpKind {
    /// It computes its outputs from its inputs.
    #[default]
    Compute,
    /// Its value is an attribute.
    Const,
    /// Its value is fed.
    Placeholder,
    /// Its value may be fed.
    PlaceholderWithDefault,
    /// It only orders others.
    NoOp,
    /// It forwards its input.
    Identity,
    /// It forwards each of its inputs.
    IdentityN,
    /// A variable whose output is a reference.
    Variable,
    /// The handle of a variable.
    VarHandle,
    /// The value of a variable, by its handle.
    ReadVariable,
    /// It forwards its first input to one of its two outputs; the other one is dead.
    Switch,
    /// As `Switch`, with many outputs.
    SwitchN,
    /// It forwards whichever of its inputs is alive.
    Merge,
    /// It forwards a value into a frame.
    Enter,
    /// It forwards a value out of a frame.
    Exit,
    /// It forwards a value to the next iteration.
    NextIteration,
    /// It decides whether a loop goes on.
    LoopCond,
    /// It runs even where what it waits for is dead.
    ControlTrigger,
    /// It gives a value to a rendezvous.
    Send,
    /// It takes a value from a rendezvous, and is dead where that is.
    Recv,
    /// It computes with the other members of a group.
    Collective,
    /// A stack of the step.
    Stack,
    /// It pushes on a stack.
    StackPush,
    /// It pops from a stack.
    StackPop,
    /// It calls a function.
    Call,
    /// It calls one of two functions.
    If,
    /// It calls one of many functions.
    Case,
    /// It calls a function again and again.
    While,
    /// It is the gradient of a function.
    SymbolicGradient,
}

impl OpKind {
    /// Whether its outputs are alive or dead one by one, so that having run says nothing of a value.
    pub fn is_switch(self) -> bool {
        matches!(self, OpKind::Switch | OpKind::SwitchN)
    }

    /// Whether it steers where values go rather than computing them.
    pub fn is_control_flow(self) -> bool {
        use OpKind as K;
        self.is_switch()
            || matches!(self, K::Merge | K::Enter | K::Exit | K::NextIteration | K::LoopCond | K::ControlTrigger)
    }

    /// Whether an edge from a node of this kind into one of kind `to` closes a loop.
    pub fn closes_loop(self, to: OpKind) -> bool {
        self == OpKind::NextIteration && to == OpKind::Merge
    }

    /// Whether it calls functions of the graph's library.
    pub fn is_functional(self) -> bool {
        matches!(self, OpKind::Call | OpKind::If | OpKind::Case | OpKind::While | OpKind::SymbolicGradient)
    }

    /// Whether it moves values between partitions.
    pub fn is_transfer(self) -> bool {
        matches!(self, OpKind::Send | OpKind::Recv)
    }

    /// Whether it holds a variable.
    pub fn is_variable(self) -> bool {
        matches!(self, OpKind::Variable | OpKind::VarHandle)
    }
}

/// What an op does besides computing its outputs from its inputs. Nodes of ops with an effect are never merged or folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Effect {
    /// Nothing.
    #[default]
    None,
    /// It draws random numbers.
    Random,
    /// It names, reads or writes what lives as long as a step and is reached by its handle alone: stacks, tensor arrays.
    Step,
    /// It names or reads what outlives the step, and leaves it as it is.
    Reads,
    /// It fails unless something holds.
    Checks,
    /// It changes what others see, or waits for them.
    Writes,
}

/// The facts of a line of an op table.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Facts {
    pub kind: OpKind,
    pub effect: Effect,
    pub commutes: bool,
    pub view: bool,
}

impl Facts {
    pub(super) const fn of(effect: Effect) -> Facts {
        Facts { kind: OpKind::Compute, effect, commutes: false, view: false }
    }
}
