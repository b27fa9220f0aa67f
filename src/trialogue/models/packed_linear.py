"""Linear layers whose weights are laid out for the processor once, and not in every call.

Decoding multiplies few rows by every weight of a model. A product with a weight in oneDNN's own layout then takes half
to four fifths of the time that one with a weight as it is stored takes.
"""

import ctypes
import mmap
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, Self

import torch
from torch import Tensor, nn

AVAILABLE = torch.backends.mkldnn.is_available() and all(
    hasattr(torch.ops.mkldnn, name) for name in ("_linear_pointwise", "_reorder_linear_weight")
)
"""Whether this build of torch can pack layers."""


class WeightIsPackedError(Exception):
    """Something needs the weight of a `PackedLinear` as it was stored."""


class PackedLinear(nn.Module):
    """What `linear` computes, for inference only; its weight is kept in another layout.

    Raises `WeightIsPackedError` where the weight is read, a gradient is asked for, or the layer is saved, copied or
    moved to another device or type.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features, self.bias = linear.in_features, linear.out_features, linear.bias
        self._packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach())

    def forward(self, states: Tensor) -> Tensor:
        """Map `states` (..., in_features) to (..., out_features)."""
        if states.requires_grad and torch.is_grad_enabled():
            raise WeightIsPackedError("packed layers have no gradient: load the model with packed=False")
        return torch.ops.mkldnn._linear_pointwise(states, self._packed, self.bias, "none", [], "")

    @property
    def weight(self) -> NoReturn:
        """Not there any more."""
        raise WeightIsPackedError(
            "the weight of a packed layer cannot be read: load the model with packed=False"
        )

    def _save_to_state_dict(self, *arguments: object) -> NoReturn:
        del arguments
        raise WeightIsPackedError("packed layers cannot be saved: load the model with packed=False")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        del protocol
        raise WeightIsPackedError("packed layers cannot be copied: load the model with packed=False")

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        sample = fn(torch.empty(0))
        if sample.dtype != torch.float32 or sample.device.type != "cpu":
            raise WeightIsPackedError(
                f"packed layers cannot become {sample.dtype} on {sample.device}: load the model with packed=False"
            )
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]


def pack_linear_layers(model: nn.Module) -> None:
    """Replace the plain linear layers of `model` in float32 on the CPU, if this build of torch can.

    It can then be used for nothing but inference; one whose code reads a weight raises `WeightIsPackedError`.
    Weights that lie in a mapped safetensors file leave memory as they are packed, so that the model is there once.
    """
    if not AVAILABLE:
        return
    files = _mapped_weights()
    packed: dict[nn.Module, PackedLinear] = {}
    for parent in list(model.modules()):
        for name, layer in list(parent._modules.items()):
            if layer not in packed and _is_plain(layer):
                assert isinstance(layer, nn.Linear)
                packed[layer] = PackedLinear(layer)
                _leave(layer.weight, files)
            if layer in packed:
                setattr(parent, name, packed[layer])


def _is_plain(layer: nn.Module | None) -> bool:
    """Whether a layer computes what its class says, from float32 numbers in memory of the CPU."""
    # A subclass, a hook, a forward of its own or a tensor of another kind may compute something else.
    if (
        type(layer) is not nn.Linear
        or layer._forward_hooks
        or layer._forward_pre_hooks
        or "forward" in vars(layer)
    ):
        return False
    weight = layer.weight
    stored = type(weight) is nn.Parameter and type(weight.data) is Tensor and weight.device.type == "cpu"
    return stored and weight.dtype == torch.float32 and weight.numel() > 0


def _mapped_weights() -> list[tuple[int, int]]:
    """First address and end of every mapped safetensors file of which no page was changed; none if it is not told."""
    try:
        table = Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    ranges: list[tuple[int, int]] = []
    addresses, weights = "", False
    for line in table.splitlines():
        name, *values = line.split()
        if not name.endswith(":"):
            addresses, weights = name, line.endswith(".safetensors")
        elif name == "Anonymous:" and weights and values[0] == "0":
            first, _, end = addresses.partition("-")
            ranges.append((int(first, 16), int(end, 16)))
    return ranges


def _leave(weight: Tensor, files: list[tuple[int, int]]) -> None:
    """Let the pages of `weight` leave memory if they are those of a mapped file, from which they can be read again."""
    first, end = weight.data_ptr(), weight.data_ptr() + weight.nbytes
    if any(begin <= first and end <= stop for begin, stop in files):
        first, end = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE, end // mmap.PAGESIZE * mmap.PAGESIZE
        ctypes.CDLL(None).madvise(
            ctypes.c_void_p(first), ctypes.c_size_t(max(0, end - first)), mmap.MADV_DONTNEED
        )
