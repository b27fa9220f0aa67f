"""Linear layers whose weights are laid out for the processor once, and not in every call.

Decoding multiplies few rows by every weight of a model. A product with a weight in oneDNN's own layout then takes half
to four fifths of the time that one with a weight as it is stored takes.
"""

import ctypes
import mmap
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn


class PackedLinear(nn.Module):
    """What `linear` computes. Its weight is kept in another layout only: it can be neither trained nor saved."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features, self.bias = linear.in_features, linear.out_features, linear.bias
        self._packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach())

    def forward(self, states: Tensor) -> Tensor:
        """Map `states` (..., in_features) to (..., out_features)."""
        return torch.ops.mkldnn._linear_pointwise(states, self._packed, self.bias, "none", [], "")


def packs(model: Any) -> bool:
    """Whether layers of `model` can be packed: in float32, on a CPU, by this build of torch."""
    known = hasattr(torch.ops.mkldnn, "_linear_pointwise") and hasattr(
        torch.ops.mkldnn, "_reorder_linear_weight"
    )
    return (
        model.device.type == "cpu"
        and model.dtype == torch.float32
        and torch.backends.mkldnn.is_available()
        and known
    )


def pack_linear_layers(model: nn.Module) -> None:
    """Replace every linear layer of `model`, which must not be used for anything but inference any more.

    Weights that lie in a mapped file leave memory as they are packed, so that the model is there once. A model whose
    code reads the weight of a layer itself raises `AttributeError` when it runs.
    """
    files = _mapped_files()
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            # A subclass may compute something else.
            if type(layer) is nn.Linear and not layer._forward_hooks and not layer._forward_pre_hooks:
                setattr(parent, name, PackedLinear(layer))
                _leave(layer.weight, files)


def _mapped_files() -> list[tuple[int, int]]:
    """First address and end of what this process has mapped of files; none where the system does not tell."""
    table = Path("/proc/self/maps")
    if not table.exists() or not hasattr(mmap, "MADV_DONTNEED"):
        return []
    found = []
    for line in table.read_text(encoding="utf-8").splitlines():
        addresses, _, _, device, *_ = line.split(maxsplit=5)
        if device != "00:00":
            first, _, end = addresses.partition("-")
            found.append((int(first, 16), int(end, 16)))
    return found


def _leave(weight: Tensor, files: list[tuple[int, int]]) -> None:
    """Let the pages of `weight` leave memory if they are those of a mapped file, from which they can be read again."""
    first, end = weight.data_ptr(), weight.data_ptr() + weight.nbytes
    if any(begin <= first and end <= stop for begin, stop in files):
        first, end = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE, end // mmap.PAGESIZE * mmap.PAGESIZE
        ctypes.CDLL(None).madvise(
            ctypes.c_void_p(first), ctypes.c_size_t(max(0, end - first)), mmap.MADV_DONTNEED
        )
