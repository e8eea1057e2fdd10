"""Numbers and numpy arrays from whatever users have: tensors, arrays, lists, Python numbers.

Nothing is imported but numpy: objects are known by their methods, so tensors of PyTorch, JAX, TensorFlow and CuPy
need no code of their own.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class ShapeError(ValueError, AssertionError):
    """Values of a shape or number that does not fit; PyTorch and tensorboardX raise an AssertionError."""


def numpy(purpose: str) -> ModuleType:
    """Imports numpy, or says what needs it."""
    try:
        import numpy as np
    except ImportError as error:
        raise ImportError(f"{purpose} needs numpy: pip install numpy") from error
    return np


def to_float(value: Any, tag: str) -> float:
    """Converts one number, however it is wrapped, to a Python float.

    Raises:
        TypeError: If it is not a real number.
        ShapeError: If it has no elements, or several.
    """
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{tag}: a scalar must be a number, not the text {value!r}")
    if isinstance(value, (list, tuple)):
        value = to_numpy(value, tag)
    try:
        if hasattr(value, "item"):
            value = value.item()
        elif hasattr(value, "numpy"):  # TensorFlow
            value = value.numpy().item()
    except Exception as error:
        size = tuple(getattr(value, "shape", ()))
        raise ShapeError(f"{tag}: a scalar must have one element, not the shape {size}: {error}") from error
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{tag}: a scalar must be a real number, not {type(value).__name__}: {value!r}") from error


def to_numpy(values: Any, tag: str) -> np.ndarray[Any, Any]:
    """Converts to a numpy array on the CPU; types that numpy lacks (bfloat16, float8) become float32.

    A number becomes an array without dimensions.

    Raises:
        TypeError: If the values are not numbers.
        ValueError: If they have different shapes, or no data at all.
    """
    np = numpy("SummaryWriter, for arrays,")
    if isinstance(values, (str, bytes)) or values is None:
        raise TypeError(f"{tag}: expected numbers or an array of them, not {values!r}")
    if isinstance(values, (list, tuple)):
        if any(hasattr(value, "shape") for value in values):
            values = np.stack([to_numpy(value, tag) for value in values])
        else:
            values = np.array(values)
    elif hasattr(values, "detach"):
        values = _from_torch(values, tag)
    else:
        values = _from_other(np, values, tag)
    if values.dtype.kind == "V" and values.dtype.names is None:  # the types of ml_dtypes, which JAX uses
        values = values.astype(np.float32)
    if values.dtype.kind not in "biufc":
        raise TypeError(f"{tag}: expected numbers, not the type {values.dtype}")
    return values


def to_real(values: Any, tag: str) -> np.ndarray[Any, Any]:
    """Converts as `to_numpy` does, to float64.

    Raises:
        TypeError: If the values are complex, or as for `to_numpy`.
    """
    array = to_numpy(values, tag)
    if array.dtype.kind == "c":
        raise TypeError(f"{tag}: complex values cannot be drawn; pass their magnitude or their real part")
    return array.astype("<f8")


def _from_torch(tensor: Any, tag: str) -> Any:
    if str(getattr(tensor, "device", "")) == "meta":
        raise ValueError(f"{tag}: the tensor is on the device `meta`, so it has no values to write")
    dtype = str(tensor.dtype)
    if "bfloat16" in dtype or "float8" in dtype:
        tensor = tensor.float()
    try:
        return tensor.detach().cpu().numpy()
    except (TypeError, RuntimeError):
        # Sparse and quantised tensors, conjugate views, wrappers around tensors.
        try:
            tensor = tensor.detach().cpu()
            dense = tensor.dequantize() if getattr(tensor, "is_quantized", False) else tensor.to_dense()
            return dense.resolve_conj().resolve_neg().numpy()
        except (TypeError, RuntimeError, AttributeError) as error:
            raise TypeError(f"{tag}: a tensor of type {dtype} cannot be converted to numpy: {error}") from error


def _from_other(np: ModuleType, values: Any, tag: str) -> Any:
    try:
        if hasattr(values, "__array__") or hasattr(values, "__array_interface__") or not hasattr(values, "__dlpack__"):
            return np.asarray(values)
        return np.from_dlpack(values)
    except Exception as error:
        raise TypeError(f"{tag}: {type(values).__name__} cannot be converted to a numpy array: {error}") from error
