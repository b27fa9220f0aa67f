"""Linear layers whose weights are laid out for the processor once, and not in every call.

Decoding multiplies few rows by every weight of a model. A product with a weight in oneDNN's own layout then takes half
to four fifths of the time that one with a weight as it is stored takes.
"""

import ctypes
import mmap
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, NoReturn, Self, TypeGuard

import torch
from torch import Tensor, nn

from trialogue.models.packed.formats import available, fitting


class WeightIsPackedError(Exception):
    """Something needs the weight of a `PackedLinear` as it was stored."""


class Packing(NamedTuple):
    """Formats of a model's weights: `few` for products with fewer than `many_from` rows, `many` from there on.

    Two formats are two copies of every weight, each as many bytes as its bits say.
    """

    few: str = "float32"
    many: str = "float32"
    many_from: int = 8

    def __str__(self) -> str:
        return self.few if self.few == self.many else f"{self.few}, {self.many} from {self.many_from} rows on"


class PackedLinear(nn.Module):
    """What `linear` computes up to the rounding of its formats, for inference only; its weight is in another layout.

    `formats` are those in use, `states` is the type that it multiplies; states of other types are converted, and its
    answers converted back. Formats that its shape does not allow are the next wider ones that it does. Raises
    `WeightIsPackedError` where the weight is read, a gradient is asked for, or the layer is saved, copied or moved to
    another device or type.
    """

    def __init__(self, linear: nn.Linear, packing: Packing | None = None) -> None:
        super().__init__()
        packing = packing or Packing()
        self.in_features, self.out_features, self.bias = linear.in_features, linear.out_features, linear.bias
        weight, bias = linear.weight.detach(), None if linear.bias is None else linear.bias.detach()
        few, many = (fitting(name, weight.shape) for name in (packing.few, packing.many))
        # The number of rows must not change the type that a caller converts states to.
        self.states = few.states
        self._many_from = packing.many_from
        self._few = few.lay(weight, bias)
        # Both hold the same weights, so that the law does not depend on how many rows are asked about at once.
        shared = many is few or many.states != few.states
        self._many = self._few if shared else many.lay(few.rounded(weight), bias)
        self.formats = (few.name,) if shared else (few.name, many.name)

    def multiply(self, states: Tensor) -> Tensor:
        """Map `states` (n, in_features), already of the layer's type, to (n, out_features)."""
        return (self._few if len(states) < self._many_from else self._many)(states)

    def forward(self, states: Tensor) -> Tensor:
        """Map `states` (..., in_features) to (..., out_features)."""
        if states.requires_grad and torch.is_grad_enabled():
            raise WeightIsPackedError("packed layers have no gradient: load the model with packed=False")
        rows = states.reshape(-1, self.in_features)
        if not len(rows):
            return states.new_empty(*states.shape[:-1], self.out_features)
        return (
            self.multiply(rows.to(self.states)).to(states.dtype).view(*states.shape[:-1], self.out_features)
        )

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


def pack_linear_layers(
    model: nn.Module, packing: Packing | None = None, head: nn.Module | None = None
) -> Callable[[], None]:
    """Replace the plain linear layers of `model` in float32 on the CPU, where the formats can be had.

    It can then be used for nothing but inference; one whose code reads a weight raises `WeightIsPackedError`. The
    output embeddings `head` are kept in 8 bits where the rest is in 4: what they round no later layer evens out.
    Weights that lie in a mapped safetensors file leave memory as they are packed, so that the model is there once.
    Returns what puts the layers back, and holds them as long as it is held.
    """
    packing = packing or Packing()
    stored: list[tuple[nn.Module, str, nn.Module]] = []

    def restore() -> None:
        for parent, name, layer in stored:
            setattr(parent, name, layer)

    if not {packing.few, packing.many} <= set(available()):
        return restore
    files = _mapped_weights()
    packed: dict[nn.Module, PackedLinear] = {}
    for parent in list(model.modules()):
        for name, layer in list(parent._modules.items()):
            if layer not in packed and is_plain(layer):
                kept = _wider(packing) if layer is head and packing.few == "int4" else packing
                packed[layer] = PackedLinear(layer, kept)
                _leave(layer.weight, files)
            if layer is not None and layer in packed:
                stored.append((parent, name, layer))
                setattr(parent, name, packed[layer])
    return restore


def _wider(packing: Packing) -> Packing:
    return packing._replace(few="int8", many="int8" if packing.many == "int4" else packing.many)


def formats_of(model: nn.Module) -> str:
    """In words, which formats the linear layers of `model` are in, with their shares of the numbers."""
    shares: Counter[str] = Counter()
    for layer in model.modules():
        if isinstance(layer, PackedLinear):
            shares[" and ".join(layer.formats)] += layer.in_features * layer.out_features
        elif isinstance(layer, nn.Linear):
            shares["as stored"] += layer.weight.numel()
    return ", ".join(f"{name} ({share / shares.total():.0%})" for name, share in shares.most_common())


def is_plain(layer: nn.Module | None) -> TypeGuard[nn.Linear]:
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
