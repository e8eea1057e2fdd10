"""Slices of the forward and backward passes of the modules of a PyTorch model.

The open slices of a thread form one stack, for forward and backward passes alike, since a slice must end before those
that enclose it. A *call* is one forward pass of a module; it knows the call that encloses it. The backward pass of a
call is seen through hooks on tensors:

- a hook on each output that needs a gradient begins it, after those of the enclosing calls that have not begun;
- a hook on the inputs that need gradients ends it, once all have one;
- a call without such inputs, such as the first layer's, ends when the backward pass of a call outside it begins, or
  with the whole backward pass.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from stepscope import _native


class ModuleSlices:
    """Hooks on all modules of a model.

    Args:
        model: The model.
        on_call: Is called with the model before each of its forward passes.

    Attributes:
        compiled: Paths of the modules that were left alone because they are compiled.
        root_is_compiled: Whether the model itself is one of them.
    """

    def __init__(self, model: torch.nn.Module, on_call: Callable[[torch.nn.Module], None]) -> None:
        self.on_call = on_call
        self.active = True
        self.thread = _Thread()
        self.compiled: list[str] = []
        self.root_is_compiled = _is_compiled(model)
        self._hooks: list[torch.utils.hooks.RemovableHandle] = []
        for path, module in self._watched(model):
            hooks = _ModuleHooks(self, path or type(model).__name__, type(module).__name__, is_root=module is model)
            self._hooks += [
                module.register_forward_pre_hook(hooks.before, prepend=True, with_kwargs=True),
                # Also called when `forward` raises.
                module.register_forward_hook(hooks.after, with_kwargs=True, always_call=True),
            ]

    def remove(self) -> None:
        """Removes the hooks and ends the slices that are open on this thread."""
        self.active = False
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self.thread.close(0)

    def _watched(self, model: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module]]:
        modules = list(model.named_modules())
        inside_compiled: set[torch.nn.Module] = set()
        for path, module in modules:
            if module not in inside_compiled and _is_compiled(module):
                self.compiled.append(path or type(model).__name__)
                inside_compiled.update(module.modules())
        return ((path, module) for path, module in modules if module not in inside_compiled)


def _is_compiled(module: torch.nn.Module) -> bool:
    # A module compiled by `torch.compile` exists only if this was imported, which takes seconds.
    eval_frame = sys.modules.get("torch._dynamo.eval_frame")
    return (
        (eval_frame is not None and isinstance(module, eval_frame.OptimizedModule))
        or getattr(module, "_compiled_call_impl", None) is not None
        or isinstance(module, torch.jit.ScriptModule)
    )


class _Call:
    """One forward pass of a module, and what its backward pass is called."""

    __slots__ = ("hooks", "parent")

    def __init__(self, hooks: _ModuleHooks, parent: _Call | None) -> None:
        self.hooks = hooks
        self.parent = parent


class _Open:
    """An open slice of a call.

    `inputs` are those of a forward pass, by identity and by the version that in-place operations increase: an output
    that is an unchanged input has no backward pass in this call.
    """

    __slots__ = ("call", "inputs", "is_backward", "slice")

    def __init__(self, call: _Call, is_backward: bool, inputs: Sequence[torch.Tensor] = ()) -> None:
        self.call = call
        self.is_backward = is_backward
        self.inputs = {(id(tensor), tensor._version) for tensor in inputs}
        hooks = call.hooks
        # Tables show names without their categories.
        name, category = (hooks.backward_name, "module.backward") if is_backward else (hooks.name, "module.forward")
        self.slice = _native.begin(name, category, module=hooks.class_name)


class _Thread(threading.local):
    """The open slices of the current thread, outermost first."""

    def __init__(self) -> None:
        self.open: list[_Open] = []
        self.backward_id = -1

    def close(self, depth: int) -> None:
        """Ends the innermost slices until `depth` are left."""
        while len(self.open) > depth:
            self.open.pop().slice.end()


class _ModuleHooks:
    """The forward hooks of one module."""

    def __init__(self, slices: ModuleSlices | None, name: str, class_name: str, is_root: bool) -> None:
        self.slices = slices
        self.name = name
        self.backward_name = f"{name} backward"
        self.class_name = class_name
        self.is_root = is_root

    def __deepcopy__(self, memo: object) -> _ModuleHooks:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # A pickled model is loaded elsewhere, where nothing watches it.
        return _ModuleHooks, (None, self.name, self.class_name, self.is_root)

    def before(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Begins the forward slice, and prepares the end of the backward slice."""
        slices = self.slices
        if slices is None or not slices.active or torch.compiler.is_compiling():
            return
        if self.is_root:
            slices.on_call(module)
        if not _native.is_recording():
            return
        thread = slices.thread
        if self.is_root and not _in_backward():
            thread.close(0)  # what an exception such as KeyboardInterrupt left open, for which hooks are not called
        call = _Call(self, thread.open[-1].call if thread.open else None)
        inputs = _differentiable((args, kwargs))
        if len(inputs) == 1:  # the usual case, for which the cheaper hook will do
            inputs[0].register_hook(lambda grad: _end_backward(slices, call))
        elif inputs:
            torch.autograd.graph.register_multi_grad_hook(inputs, lambda grads: _end_backward(slices, call))
        thread.open.append(_Open(call, is_backward=False, inputs=inputs))

    def after(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """Ends the forward slice, and prepares the begin of the backward slice."""
        slices = self.slices
        if slices is None or torch.compiler.is_compiling():
            return
        opened = slices.thread.open
        depth = len(opened) - 1
        while depth >= 0 and (opened[depth].is_backward or opened[depth].call.hooks is not self):
            depth -= 1
        if depth < 0:
            return  # not recording, or an earlier hook raised before `before` was called
        call, inputs = opened[depth].call, opened[depth].inputs
        slices.thread.close(depth)
        for tensor in _differentiable(output):
            if (id(tensor), tensor._version) not in inputs:
                tensor.register_hook(lambda grad: _begin_backward(slices, call))


def _begin_backward(slices: ModuleSlices, call: _Call) -> None:
    if not slices.active or not _native.is_recording():
        return
    thread = slices.thread
    if any(entry.call is call and entry.is_backward for entry in thread.open):
        return  # another output of it, or a call within it, was first
    chain = [call]
    while chain[-1].parent is not None:
        chain.append(chain[-1].parent)
    # Ends the backward passes of other calls; a forward pass that runs this backward pass inside stays open.
    depth = len(thread.open)
    while depth and thread.open[depth - 1].is_backward and thread.open[depth - 1].call not in chain:
        depth -= 1
    thread.close(depth)
    _close_with_backward(thread)
    already_open = [entry.call for entry in thread.open]
    for missing in reversed(chain):
        if missing not in already_open:
            thread.open.append(_Open(missing, is_backward=True))


def _end_backward(slices: ModuleSlices, call: _Call) -> None:
    opened = slices.thread.open
    for depth in range(len(opened) - 1, -1, -1):
        if not opened[depth].is_backward:
            return
        if opened[depth].call is call:
            slices.thread.close(depth)
            return


def _close_with_backward(thread: _Thread) -> None:
    """Has the slices that are opened from here on ended when the running backward pass ends."""
    backward_id = torch._C._current_graph_task_id()
    if backward_id == thread.backward_id:
        return
    thread.backward_id = backward_id
    depth = len(thread.open)
    thread_id = threading.get_ident()

    def close() -> None:
        # With several devices another one's thread may finish last. The slices then end with this thread's next ones.
        if threading.get_ident() == thread_id:
            thread.close(depth)

    torch.autograd.Variable._execution_engine.queue_callback(close)


def _in_backward() -> bool:
    return torch._C._current_graph_task_id() != -1


def _differentiable(value: Any) -> list[torch.Tensor]:
    """Returns the tensors in nested tuples, lists and dictionaries that were computed and get a gradient.

    Leaves are left out: hooks on a tensor that lives on, such as a parameter, would pile up.
    """
    found: list[torch.Tensor] = []
    if not torch.is_grad_enabled():
        return found
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, torch.Tensor):
            if item.grad_fn is not None:
                found.append(item)
        elif isinstance(item, (tuple, list)):
            pending.extend(item)
        elif isinstance(item, dict):
            pending.extend(item.values())
    return found
