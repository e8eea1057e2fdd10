//! Places in a program as text.

use torch_dumps::{FrameId, StackId, Stacks};

/// What stands for a stack that was not recorded.
pub(super) const NO_STACK: &str = "(no stack)";

/// A frame as `forward (common.py:59)`.
pub(super) fn short(stacks: &Stacks, frame: Option<FrameId>) -> String {
    let Some(frame) = frame else { return NO_STACK.to_owned() };
    let frame = stacks.frame(frame);
    let file = frame.file.rsplit('/').next().unwrap_or_default();
    format!("{} ({file}:{})", frame.function, frame.line)
}

/// A frame with its full path.
pub(super) fn full(stacks: &Stacks, frame: FrameId) -> String {
    let frame = stacks.frame(frame);
    format!("{} ({}:{})", frame.function, frame.file, frame.line)
}

/// The frames of a stack, the innermost one first, from the user's code on, at most `most`.
pub(super) fn frames(stacks: &Stacks, stack: StackId, most: usize) -> Vec<FrameId> {
    let frames = stacks.frames(stack);
    let user = stacks.user_frame(stack);
    let first = frames.iter().position(|frame| Some(*frame) == user).unwrap_or(0);
    frames.iter().skip(first).take(most).copied().collect()
}
