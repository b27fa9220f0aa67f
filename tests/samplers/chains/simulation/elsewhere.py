"""A device that is not there: tensors that claim to lie on it, and refuse to be mixed with those that do not.

For tests of what runs on a GPU, where there is none: everything is computed on the CPU, but a tensor of one or more
dimensions made on the CPU and used together with one from elsewhere raises, as does `.numpy()`.
"""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

DEVICE = torch.device("meta")
"""Torch has the seams of this one everywhere."""
COPIES = {"aten::_to_copy", "aten::copy_", "aten::to"}


class Elsewhere(torch.Tensor):
    """A tensor that claims another device than its values lie on."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> "Elsewhere":
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, strides=inner.stride(), device=DEVICE
        )

    def __init__(self, inner: torch.Tensor) -> None:
        self.inner = inner

    def __repr__(self) -> str:
        return f"Elsewhere({self.inner})"

    def tolist(self) -> Any:
        """Torch says that the device has no values."""
        return self.inner.tolist()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatched(func, args, kwargs or {})


def dispatched(func: Any, args: Any, kwargs: Any) -> Any:
    """Run `func` on the values, wrapped again unless they go to the CPU."""
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    there = any(isinstance(tensor, Elsewhere) for tensor in tensors)
    here = [tensor for tensor in tensors if not isinstance(tensor, Elsewhere) and tensor.ndim]
    if there and here and func._schema.name not in COPIES:
        raise RuntimeError(f"{func}: expected all tensors to be on the same device")
    asked = kwargs.get("device")
    if asked is not None:
        there = torch.device(asked).type == DEVICE.type
        kwargs = {**kwargs, "device": torch.device("cpu")}
    elif func._schema.name == "aten::copy_":
        there = isinstance(args[0], Elsewhere)
    args, kwargs = tree_map_only(Elsewhere, lambda tensor: tensor.inner, (args, kwargs))
    result = func(*args, **kwargs)
    return tree_map_only(torch.Tensor, Elsewhere, result) if there else result


class Pretence(TorchDispatchMode):
    """Within it, tensors can be made there and moved there."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatched(func, args, kwargs or {})
