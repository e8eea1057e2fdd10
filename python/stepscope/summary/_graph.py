"""Graphs of models, as GraphDefs: PyTorch modules, ONNX and OpenVINO files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from . import _messages as messages
from ._protobuf import data, integer, message

_PRODUCER = 22  # the version that GraphDefs of torch's writer have
_CPU = message(1, message(1, data(1, "/device:CPU:0")))  # RunMetadata: where the graph ran, as torch's writer says
_MODULE = "__module"  # what scopes of traces call the whole model
_GET_ATTRIBUTE = "prim::GetAttr"


@dataclass
class _Node:
    name: str  # of its value in the trace, then with its scope
    kind: str
    scope: str
    inputs: list[str]
    sizes: Sequence[int] | None
    attributes: str = ""

    def encoded(self) -> bytes:
        attributes = [_attribute("attr", data(2, self.attributes, keep=True))]
        if self.sizes is not None:
            attributes.append(_attribute("_output_shapes", message(1, message(7, messages.shape(self.sizes)))))
        return _node(self.name, self.kind, self.inputs, attributes)


def graph_of_module(model: Any, inputs: Any, verbose: bool, strict: bool) -> tuple[bytes, bytes]:
    """Traces a PyTorch module and returns its GraphDef and RunMetadata.

    Args:
        model: The module; it is traced in evaluation mode.
        inputs: A tensor, or a tuple of the arguments of `forward`.
        verbose: Whether to print the trace.
        strict: Whether to refuse to trace lists and dictionaries that the model changes.
    """
    try:
        import torch
    except ImportError as error:
        raise ImportError("add_graph needs PyTorch: pip install torch") from error
    if not isinstance(model, (torch.nn.Module, torch.jit.ScriptFunction)):
        raise TypeError(f"add_graph expects a torch.nn.Module, not {type(model).__name__}")
    with _evaluating(model):
        trace = torch.jit.trace(model, inputs, strict=strict)
    graph = trace.graph
    torch._C._jit_pass_inline(graph)
    if verbose:
        print(graph)

    def class_name(module: Any) -> str:
        traced = isinstance(module, torch.jit.TracedModule)
        return module._name if traced else getattr(module, "original_name", "Module")

    names = {
        path: f"{class_name(module)}[{path.rpartition('.')[2]}]" for path, module in trace.named_modules(prefix=_MODULE)
    }
    return _graph_def(node.encoded() for node in _named(_nodes(graph, class_name(trace), names))), _CPU


@contextlib.contextmanager
def _evaluating(model: Any) -> Iterator[None]:
    """Sets a module to evaluation mode, and afterwards each of its parts back to the mode that it had."""
    if not hasattr(model, "train"):  # a function
        yield
        return
    training = {module: module.training for module in model.modules()}
    model.train(False)
    try:
        yield
    finally:
        # `train` may be overridden to do more; on its own, it would also set parts that were frozen to training.
        model.train(training[model])
        for module, was_training in training.items():
            module.training = was_training


def _nodes(graph: Any, model: str, names: dict[str, str]) -> list[_Node]:
    """Reads a trace: its inputs, its outputs, then one node for each value that an operation makes."""
    nodes = [
        _Node(value.debugName(), "IO Node", "input", [], _io_sizes(value))
        for value in graph.inputs()
        if value.uses() and not _is_module(value)
    ]
    for number, value in enumerate(graph.outputs(), start=1):
        nodes.append(_Node(f"output.{number}", "IO Node", "output", [value.debugName()], _io_sizes(value)))
    paths: dict[str, str] = {}  # scopes of the modules and parameters that are read, by value
    for node in graph.nodes():
        scope = node.scopeName()
        if node.kind() == _GET_ATTRIBUTE:
            # These have no scope; it is known from the attributes that lead there.
            parent = paths.get(node.input().debugName())
            child = f"{parent.rpartition('/')[2] if parent else _MODULE}.{node.s('name')}"
            scope = paths[node.output().debugName()] = f"{parent}/{child}" if parent else child
            if _is_module(node.output()):
                continue
        parts = [names.get(part, part.rpartition(".")[2]) for part in scope.split("/")]
        scope = "/".join([model, *parts]) if any(parts) else model
        inputs = [value.debugName() for value in node.inputs()]
        # Quotes confuse TensorBoard.
        attributes = str({key: _attribute_value(node, key) for key in node.attributeNames()}).replace("'", " ")
        for value in node.outputs():
            sizes = value.type().sizes() if value.isCompleteTensor() else None
            nodes.append(_Node(value.debugName(), node.kind(), scope, inputs, sizes, attributes))
    return nodes


def _is_module(value: Any) -> bool:
    return value.type().kind() == "ClassType"


def _io_sizes(value: Any) -> Sequence[int] | None:
    try:
        return value.type().sizes()
    except RuntimeError:  # not a tensor
        return [1]


def _attribute_value(node: Any, key: str) -> Any:
    # The method that reads an attribute is called like its type.
    return getattr(node, node.kindOf(key))(key)


def _named(nodes: list[_Node]) -> list[_Node]:
    """Puts the scopes in front of names and inputs; what no node makes gets the scope of the last node that uses it."""
    scoped = {name: f"{node.scope}/{name}" for node in nodes for name in node.inputs}
    scoped.update({node.name: f"{node.scope}/{node.name}" for node in nodes})
    for node in nodes:
        node.inputs = [scoped[name] for name in node.inputs]
        node.name = scoped[node.name]
    return nodes


def graph_of_onnx(path: Any) -> bytes:
    """Reads an ONNX file and returns its GraphDef."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError("add_onnx_graph needs onnx: pip install onnx") from error
    graph = onnx.load(path).graph
    nodes = []
    for value in (*graph.input, *graph.output):
        tensor = value.type.tensor_type
        shape = messages.shape(size.dim_value for size in tensor.shape.dim)
        attributes = [
            _attribute("dtype", integer(6, tensor.elem_type, keep=True)),
            _attribute("shape", message(7, shape)),
        ]
        nodes.append(_node(value.name, "Variable", (), attributes))
    for node in graph.node:
        texts = (" = ".join(str(value) for _, value in attribute.ListFields()) for attribute in node.attribute)
        nodes.append(_node(node.output[0], node.op_type, node.input, [_parameters(", ".join(texts))]))
    return _graph_def(nodes)


def graph_of_openvino(path: Any) -> bytes:
    """Reads the XML file of an OpenVINO model and returns its GraphDef: a node for each edge."""
    from xml.etree import ElementTree

    root = ElementTree.parse(path).getroot()
    layers, edges = root.find("layers"), root.find("edges")
    if layers is None or edges is None:
        raise ValueError(f"{path} is not an OpenVINO model: it has no <layers> or no <edges>")
    names = {layer.attrib["id"]: layer.attrib["name"] for layer in layers}
    return _graph_def(
        _node(names[edge.attrib["to-layer"]], "op", (names[edge.attrib["from-layer"]],), [_parameters("")])
        for edge in edges
    )


def _graph_def(nodes: Iterable[bytes]) -> bytes:
    return b"".join(message(1, node) for node in nodes) + message(4, integer(1, _PRODUCER))


def _node(name: str, kind: str, inputs: Iterable[str], attributes: Iterable[bytes]) -> bytes:
    fields = data(1, name), data(2, kind), *(data(3, name, keep=True) for name in inputs), *attributes
    return b"".join(fields)


def _attribute(name: str, value: bytes) -> bytes:
    return message(5, data(1, name), message(2, value))


def _parameters(text: str) -> bytes:
    return _attribute("parameters", data(2, text, keep=True))
