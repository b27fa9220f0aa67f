"""Linear layers whose weights are laid out for the processor once, and not in every call.

Decoding multiplies few rows by every weight of a model. A product with a weight in oneDNN's own layout then takes half
to four fifths of the time that one with a weight as it is stored takes.
"""

from __future__ import annotations

import ctypes
import mmap
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Self, TypeGuard

import torch
from torch import Tensor, nn

from trialogue.models.packed.formats import available, fitting, int4_product, int4_weight

if TYPE_CHECKING:
    from trialogue.models.packed.gguf_blocks import GgufBlocks


_MADV_PAGEOUT = 21
"""Advice to `madvise` (Linux 5.4): pages may leave memory, and keep their content."""


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
    answers converted back. Formats that its shape does not allow are the next wider ones that it does. Where the weight
    lies in the `blocks` of a file, int4 takes codes over as they are if it can; `linear` then needs no weight of its
    own. Raises `WeightIsPackedError` where the weight is read, a gradient is asked for, or the layer is saved, copied
    or moved to another device or type.
    """

    def __init__(
        self, linear: nn.Linear, packing: Packing | None = None, blocks: GgufBlocks | None = None
    ) -> None:
        super().__init__()
        packing = packing or Packing()
        self.in_features, self.out_features, self.bias = linear.in_features, linear.out_features, linear.bias
        bias = None if linear.bias is None else linear.bias.detach()
        few, many = (fitting(name, linear.weight.shape) for name in (packing.few, packing.many))
        # The number of rows must not change the type that a caller converts states to.
        self.states = few.states
        self._many_from = packing.many_from
        taken = blocks.take() if blocks is not None and few.name == "int4" else None
        if taken is not None:
            self._few = int4_product(*taken, bias)
        else:
            weight = (
                blocks.weight() if blocks is not None and linear.weight.is_meta else linear.weight.detach()
            )
            self._few = few.lay(weight, bias)
        # Both hold the same weights, so that the distribution does not depend on how many rows are asked about at once.
        shared = many is few or many.states != few.states
        if shared:
            self._many = self._few
        else:
            kept = few.rounded(weight) if taken is None else int4_weight(*taken)
            self._many = many.lay(kept, bias)
        self.formats = (few.name,) if shared else (few.name, many.name)
        self.origin = ""
        if blocks is not None:
            how = (
                " with the codes of"
                if taken is not None
                else " of"
                if few.name == "float32"
                else " rounded from"
            )
            self.origin = f"{how} {blocks.kind.name}"

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
    model: nn.Module,
    packing: Packing | None = None,
    head: nn.Module | None = None,
    blocks: Mapping[nn.Module, GgufBlocks] | None = None,
) -> Callable[[], None]:
    """Replace the plain linear layers of `model` in float32 on the CPU, where the formats can be had.

    It can then be used for nothing but inference; one whose code reads a weight raises `WeightIsPackedError`. The
    output embeddings `head` are kept in 8 bits where the rest is in 4: what they round no later layer evens out.
    `blocks` are the weights of layers as a GGUF file holds them. Of these int4 takes over, head or not, those of 4 bits
    in groups of its own kind; what was rounded to other steps is kept in 8 bits, lest it be rounded to 4 again. Weights
    that lie in a mapped safetensors file leave memory as they are packed, so that the model is there once. Returns a
    function that puts the layers back, and keeps them as long as it exists.
    """
    packing, blocks = packing or Packing(), blocks or {}
    stored: list[tuple[nn.Module, str, nn.Module]] = []

    def restore() -> None:
        for parent, name, layer in stored:
            setattr(parent, name, layer)

    if not {packing.few, packing.many} <= set(available()):
        return restore
    packed: dict[nn.Module, PackedLinear] = {}
    for parent in list(model.modules()):
        for name, layer in list(parent._modules.items()):
            if layer not in packed and is_plain(layer, blocks):
                there = blocks.get(layer)
                kept = _kept(packing, layer is head, there)
                packed[layer] = PackedLinear(layer, kept, there)
                _reclaim(layer.weight)
            if layer is not None and layer in packed:
                stored.append((parent, name, layer))
                setattr(parent, name, packed[layer])
    return restore


def _kept(packing: Packing, is_head: bool, blocks: GgufBlocks | None) -> Packing:
    """The packing of one layer: int8 in place of int4 where that would round what should not be."""
    if packing.few != "int4" or (blocks is not None and blocks.four_bits):
        return packing
    if not is_head and (blocks is None or not blocks.quantised):
        return packing
    return packing._replace(few="int8", many="int8" if packing.many == "int4" else packing.many)


def formats_of(model: nn.Module) -> str:
    """In words, which formats the linear layers of `model` are in, with their shares of the numbers.

    Of weights from a GGUF file it says from which type, and whether their codes were taken over or rounded again.
    """
    shares: Counter[str] = Counter()
    for layer in model.modules():
        if isinstance(layer, PackedLinear):
            shares[" and ".join(layer.formats) + layer.origin] += layer.in_features * layer.out_features
        elif isinstance(layer, nn.Linear):
            shares["as stored"] += layer.weight.numel()
    total = shares.total()
    return ", ".join(f"{words} ({share / total:.0%})" for words, share in shares.most_common())


def is_plain(
    layer: nn.Module | None, blocks: Mapping[nn.Module, GgufBlocks] | None = None
) -> TypeGuard[nn.Linear]:
    """Whether a layer computes what its class says, from float32 numbers in memory of the CPU or from `blocks`."""
    # A subclass, a hook, a forward of its own or a tensor of another kind may compute something else.
    if (
        type(layer) is not nn.Linear
        or layer._forward_hooks
        or layer._forward_pre_hooks
        or "forward" in vars(layer)
    ):
        return False
    if blocks is not None and layer in blocks:
        return True
    weight = layer.weight
    stored = type(weight) is nn.Parameter and type(weight.data) is Tensor and weight.device.type == "cpu"
    return stored and weight.dtype == torch.float32 and weight.numel() > 0


def fill(blocks: Mapping[nn.Module, GgufBlocks]) -> None:
    """Give each of the layers its weight in float32, where it has none yet."""
    for layer, stored in blocks.items():
        if isinstance(layer, nn.Linear) and layer.weight.is_meta:
            layer.weight = nn.Parameter(stored.weight(), requires_grad=False)


def _reclaim(weight: Tensor) -> None:
    """Let the pages of `weight` leave memory; those of a mapped file are read from it again when they are needed."""
    first = -(-weight.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
    size = max(0, weight.data_ptr() + weight.nbytes - first) // mmap.PAGESIZE * mmap.PAGESIZE
    madvise = getattr(ctypes.CDLL(None), "madvise", None)
    if madvise is not None:
        madvise(ctypes.c_void_p(first), ctypes.c_size_t(size), _MADV_PAGEOUT)
