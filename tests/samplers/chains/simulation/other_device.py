"""A simulated device for tests of GPU code on a machine without a GPU.

All values are computed on the CPU. An operation that mixes a CPU tensor of one or more dimensions with a
tensor of the simulated device raises an error, and so does `.numpy()`.
"""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

DEVICE = torch.device("meta")
"""The meta device is available in every build of torch."""
COPIES = {"aten::_to_copy", "aten::copy_", "aten::to"}


class SimulatedTensor(torch.Tensor):
    """A tensor that reports the simulated device."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> "SimulatedTensor":
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, strides=inner.stride(), device=DEVICE
        )

    def __init__(self, inner: torch.Tensor) -> None:
        self.inner = inner

    def __repr__(self) -> str:
        return f"SimulatedTensor({self.inner})"

    def tolist(self) -> Any:
        """Return the values, which torch does not support for this device."""
        return self.inner.tolist()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatch(func, args, kwargs or {})


def dispatch(func: Any, args: Any, kwargs: Any) -> Any:
    """Run `func` on the values, and wrap the results unless they move to the CPU."""
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    is_simulated = any(isinstance(tensor, SimulatedTensor) for tensor in tensors)
    cpu_tensors = [tensor for tensor in tensors if not isinstance(tensor, SimulatedTensor) and tensor.ndim]
    if is_simulated and cpu_tensors and func._schema.name not in COPIES:
        raise RuntimeError(f"{func}: expected all tensors to be on the same device")
    device = kwargs.get("device")
    if device is not None:
        is_simulated = torch.device(device).type == DEVICE.type
        kwargs = {**kwargs, "device": torch.device("cpu")}
    elif func._schema.name == "aten::copy_":
        is_simulated = isinstance(args[0], SimulatedTensor)
    args, kwargs = tree_map_only(SimulatedTensor, lambda tensor: tensor.inner, (args, kwargs))
    result = func(*args, **kwargs)
    return tree_map_only(torch.Tensor, SimulatedTensor, result) if is_simulated else result


class DeviceMode(TorchDispatchMode):
    """A context in which tensors can be created on the simulated device and moved to it."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatch(func, args, kwargs or {})
