"""Linear layers whose weights are packed once in a fast CPU layout.

Decoding multiplies few rows by every weight of a model. A product with a weight in the oneDNN layout takes 50 % to 80 %
of the time of a product with a plain weight.
"""

from __future__ import annotations

import ctypes
import mmap
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Self, TypeGuard

import torch
from torch import Tensor, nn

from trialogue.models.packed.formats import (
    available_formats,
    dequantise_int4,
    make_int4_product,
    select_fitting_format,
)

if TYPE_CHECKING:
    from trialogue.models.packed.gguf_blocks import GgufBlocks


_MADV_PAGEOUT = 21
"""Advice for `madvise` (Linux 5.4) that allows the kernel to evict pages without losing their content."""


class WeightIsPackedError(Exception):
    """Raised if an operation needs the original weight of a `PackedLinear`."""


class Packing(NamedTuple):
    """Formats in which the weights of a model are packed, for few and for many rows.

    Attributes:
        few: Format for products with fewer than `many_from` rows.
        many: Format for products with at least `many_from` rows.
        many_from: Number of rows from which `many` is used.
    """

    few: str = "float32"
    many: str = "float32"
    many_from: int = 8

    def __str__(self) -> str:
        return self.few if self.few == self.many else f"{self.few}, {self.many} from {self.many_from} rows on"


class PackedLinear(nn.Module):
    """Packed copy of a linear layer for inference.

    It accepts and returns the same dtypes as the original. It cannot be trained, saved, copied or moved, and
    reading its weight raises `WeightIsPackedError`.

    Args:
        linear: Layer to pack. It needs no weight if `blocks` is given.
        packing: Formats of the weight, float32 by default. The next wider format is used for shapes that a
            format does not support.
        blocks: Weight in a GGUF file. int4 uses its 4-bit codes without requantization if possible.

    Attributes:
        formats: Names of the formats in use.
        states: Dtype of the inputs of the product.
        origin: Description of the source of the codes, for weights from a GGUF file.
    """

    def __init__(
        self, linear: nn.Linear, packing: Packing | None = None, blocks: GgufBlocks | None = None
    ) -> None:
        super().__init__()
        packing = packing or Packing()
        self.in_features, self.out_features, self.bias = linear.in_features, linear.out_features, linear.bias
        bias = None if linear.bias is None else linear.bias.detach()
        few, many = (select_fitting_format(name, linear.weight.shape) for name in (packing.few, packing.many))
        # The dtype of the inputs must not depend on the number of rows.
        self.states = few.states
        self._many_from = packing.many_from
        block_codes = blocks.take() if blocks is not None and few.name == "int4" else None
        if block_codes is not None:
            self._few = make_int4_product(*block_codes, bias)
        else:
            weight = (
                blocks.weight() if blocks is not None and linear.weight.is_meta else linear.weight.detach()
            )
            self._few = few.pack(weight, bias)
        # Both formats represent the same weights, so that results do not depend on the number of rows.
        shared = many is few or many.states != few.states
        if shared:
            self._many = self._few
        else:
            rounded = few.round(weight) if block_codes is None else dequantise_int4(*block_codes)
            self._many = many.pack(rounded, bias)
        self.formats = (few.name,) if shared else (few.name, many.name)
        self.origin = ""
        if blocks is not None:
            how = (
                " with the codes of"
                if block_codes is not None
                else " of"
                if few.name == "float32"
                else " rounded from"
            )
            self.origin = f"{how} {blocks.kind.name}"

    def multiply(self, states: Tensor) -> Tensor:
        """Map `states` (n, in_features), which must have the dtype `self.states`, to (n, out_features)."""
        # `len` of a tensor takes several times as long as its shape.
        return (self._few if states.shape[0] < self._many_from else self._many)(states)

    def forward(self, states: Tensor) -> Tensor:
        """Map `states` (..., in_features) to (..., out_features)."""
        if states.requires_grad and torch.is_grad_enabled():
            raise WeightIsPackedError("packed layers have no gradient; load the model with packed=False")
        rows = states.reshape(-1, self.in_features)
        if not len(rows):
            return states.new_empty(*states.shape[:-1], self.out_features)
        return (
            self.multiply(rows.to(self.states)).to(states.dtype).view(*states.shape[:-1], self.out_features)
        )

    @property
    def weight(self) -> NoReturn:
        """Not available. Reading it raises `WeightIsPackedError`."""
        raise WeightIsPackedError(
            "the weight of a packed layer cannot be read; load the model with packed=False"
        )

    def _save_to_state_dict(self, *arguments: object) -> NoReturn:
        del arguments
        raise WeightIsPackedError("packed layers cannot be saved; load the model with packed=False")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        del protocol
        raise WeightIsPackedError("packed layers cannot be copied; load the model with packed=False")

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        sample = fn(torch.empty(0))
        if sample.dtype != torch.float32 or sample.device.type != "cpu":
            raise WeightIsPackedError(
                f"packed layers cannot be moved to {sample.dtype} on {sample.device}; load the model with packed=False"
            )
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]


def pack_linear_layers(
    model: nn.Module,
    packing: Packing | None = None,
    head: nn.Module | None = None,
    blocks: Mapping[nn.Module, GgufBlocks] | None = None,
) -> Callable[[], None]:
    """Replace the plain float32 linear layers of a model on the CPU by packed layers.

    The model can then be used only for inference. Nothing is replaced if the machine does not support the
    formats. With int4, the output embeddings use 8 bits, because no later layer corrects their rounding
    errors.

    Args:
        model: Model to change in place.
        packing: Formats of the weights, float32 by default.
        head: Output embeddings of the model.
        blocks: Weights of layers in a GGUF file. They are not rounded to 4 bits a second time.

    Returns:
        Function that restores the original layers. It keeps a reference to them.
    """
    packing, blocks = packing or Packing(), blocks or {}
    stored: list[tuple[nn.Module, str, nn.Module]] = []

    def restore() -> None:
        for parent, name, layer in stored:
            setattr(parent, name, layer)

    if not {packing.few, packing.many} <= set(available_formats()):
        return restore
    packed: dict[nn.Module, PackedLinear] = {}
    for parent in list(model.modules()):
        for name, layer in list(parent._modules.items()):
            if layer not in packed and is_plain(layer, blocks):
                layer_blocks = blocks.get(layer)
                formats = _layer_packing(packing, layer is head, layer_blocks)
                packed[layer] = PackedLinear(layer, formats, layer_blocks)
                _reclaim(layer.weight)
            if layer is not None and layer in packed:
                stored.append((parent, name, layer))
                setattr(parent, name, packed[layer])
    return restore


def _layer_packing(packing: Packing, is_head: bool, blocks: GgufBlocks | None) -> Packing:
    """Return the packing of a layer, with int8 instead of int4 if its rounding would be too coarse."""
    if packing.few != "int4" or (blocks is not None and blocks.four_bits):
        return packing
    if not is_head and (blocks is None or not blocks.quantised):
        return packing
    return packing._replace(few="int8", many="int8" if packing.many == "int4" else packing.many)


def describe_formats(model: nn.Module) -> str:
    """Describe the formats of the linear layers of a model in words, with the fraction of the weights in each.

    For weights from a GGUF file, it includes their type and whether they were requantised.
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
    """Return whether a layer is an unmodified `nn.Linear` whose float32 weights are on the CPU or in a GGUF file."""
    # A subclass, a hook, an overridden forward method or another kind of tensor can change the result.
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


def load_missing_weights(blocks: Mapping[nn.Module, GgufBlocks]) -> None:
    """Load the weights of linear layers on the meta device, as float32 tensors.

    Args:
        blocks: The quantized weights in a GGUF file, by layer. Layers that already have weights are unchanged.
    """
    for layer, stored in blocks.items():
        if isinstance(layer, nn.Linear) and layer.weight.is_meta:
            layer.weight = nn.Parameter(stored.weight(), requires_grad=False)


def _reclaim(weight: Tensor) -> None:
    """Allow the kernel to free the memory pages of `weight`. They are read from the file again if needed."""
    first = -(-weight.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
    size = max(0, weight.data_ptr() + weight.nbytes - first) // mmap.PAGESIZE * mmap.PAGESIZE
    madvise = getattr(ctypes.CDLL(None), "madvise", None)
    if madvise is not None:
        madvise(ctypes.c_void_p(first), ctypes.c_size_t(size), _MADV_PAGEOUT)
