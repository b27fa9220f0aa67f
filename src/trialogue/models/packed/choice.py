"""Choice of the format in which the weights of a model are packed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn

from trialogue.errors import InputError, is_out_of_memory
from trialogue.models.hub.findings import SelfCheckStore
from trialogue.models.hub.memory import require_memory
from trialogue.models.packed.formats import (
    FORMATS,
    Product,
    available_formats,
    require_format,
    select_fitting_format,
)
from trialogue.models.packed.linear import Packing, is_plain, load_missing_weights, pack_linear_layers
from trialogue.models.tokenization import Tokenization

if TYPE_CHECKING:
    from trialogue.models.packed.gguf_blocks import GgufBlocks

MAX_TOTAL_VARIATION = 0.03
"""Maximum mean total variation between next-token distributions of float32 and of the choice of "auto"."""
# A second copy of the weights is used if it speeds up products with many rows by this factor.
_MIN_SPEEDUP_OF_COPY = 1.2
_MANY_ROWS = 16
_MEASURED_LAYERS = 8
_PACKING = TypeAdapter(Packing)
_FINDING, _SMALLEST_FORMAT = "packing", "int4"
_TEXT = (
    "The old library stands at the end of the street, next to a small park. Every Tuesday evening, about 40 people "
    "meet there to read to each other, mostly in English, sometimes in French. In 1987 a fire destroyed the roof; it "
    'took three years and $250,000 to repair it. "We never thought of giving up," said Anna Keller, who has worked '
    "there since she was a student. Her list of books to buy has only grown: novels, maps, a history of the railway."
)


def require_weights(weights: str, packed: bool, dtype: torch.dtype | str, device: torch.device) -> None:
    """Raise `InputError` if the weights cannot be packed in the format `weights`. float32 is always allowed."""
    if weights == "float32":
        return
    if weights != "auto":
        require_format(weights)
    if not packed:
        raise InputError("weights", weights, "this is a format of packed layers; leave out packed=False")
    if device.type != "cpu" or dtype != torch.float32:
        hint = f"packed layers need float32 models on the CPU, not {dtype} on {device}; leave weights out"
        raise InputError("weights", weights, hint)


def pack_weights(
    weights: str,
    model: Any,
    tokenization: Tokenization,
    blocks: Mapping[nn.Module, GgufBlocks] | None = None,
    findings: SelfCheckStore | None = None,
) -> None:
    """Pack the linear layers of a model in place.

    Args:
        model: Model of transformers.
        weights: Format of the weights, or "auto" for the fastest format that approximately preserves the next-token
            distributions.
        tokenization: Tokenization of the model.
        blocks: Weights in a GGUF file of layers that have no weights yet.
        findings: Stored findings about the model. A choice of "auto" is read from them, or added to them.

    Raises:
        InputError: If no layer can be packed in a format below 32 bits, or if memory is insufficient.
    """
    head = model.get_output_embeddings()
    blocks, findings = blocks or {}, findings or SelfCheckStore()
    packing = _stored_packing(findings) if weights == "auto" else Packing(weights, weights)
    plain = [layer for layer in model.modules() if is_plain(layer, blocks)]
    if weights not in ("float32", "auto") and not plain:
        raise InputError("weights", weights, "no layer of the model can be packed; use float32")
    filled = blocks if packing is None or not {packing.few, packing.many} <= set(available_formats()) else {}
    empty = sum(layer.weight.numel() for layer in plain if layer in filled and layer.weight.is_meta)
    packed = _bytes_packed(plain, packing or Packing(_SMALLEST_FORMAT, _SMALLEST_FORMAT))
    require_memory("weights", weights, packed + empty * torch.float32.itemsize)
    load_missing_weights(filled)
    try:
        if packing is None and plain and available_formats():
            packing = _pack_fastest(model, head, plain, tokenization, blocks)
            findings.keep(_FINDING, list(packing))
        else:
            pack_linear_layers(model, packing, head, blocks)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        hint = "memory is insufficient for the original and the packed weights; close other programs"
        raise InputError("weights", weights, hint) from error


def _bytes_packed(layers: list[nn.Linear], packing: Packing) -> int:
    """Return the size in bytes of the packed weights of some layers, without the scales."""
    bits = sum(FORMATS[name].bits for name in {packing.few, packing.many} & set(available_formats()))
    return sum(layer.weight.numel() for layer in layers) * bits // 8


def _stored_packing(findings: SelfCheckStore) -> Packing | None:
    """Return the stored choice of "auto" if this machine supports it."""
    try:
        packing = _PACKING.validate_python(findings.get(_FINDING) or None, strict=True)
    except ValidationError:
        return None
    return packing if {packing.few, packing.many} <= set(available_formats()) else None


def _pack_fastest(
    model: Any,
    head: Any,
    plain: list[nn.Linear],
    tokenization: Tokenization,
    blocks: Mapping[nn.Module, GgufBlocks],
) -> Packing:
    few, many = _time_formats(plain, head)
    tokens = checked_tokens(model, tokenization)
    stored = next_token_distributions(model, tokens)
    for name in sorted(few, key=lambda name: few[name]):
        best = min((other for other in many if _can_extend(name, other)), key=lambda other: many[other])
        needs_copy = many[name] > _MIN_SPEEDUP_OF_COPY * many[best]
        packing = Packing(name, best if needs_copy else name)
        restore = pack_linear_layers(model, packing, head, blocks)
        if (
            name == "float32"
            or mean_total_variation(stored, next_token_distributions(model, tokens)) <= MAX_TOTAL_VARIATION
        ):
            return packing
        restore()
    return Packing()


def _can_extend(few: str, many: str) -> bool:
    """Return whether `many` can be the format for many rows next to `few`, the format for few rows.

    Some formats round the weights, so that a copy in another format must hold the rounded weights.
    """
    return many == few or (
        FORMATS[many].bits > FORMATS[few].bits and FORMATS[many].states == FORMATS[few].states
    )


def checked_tokens(model: Any, tokenization: Tokenization) -> Tensor:
    """Return the token ids (1, n) of a text on which distributions are compared."""
    longest = getattr(model.config, "max_position_embeddings", None)
    return torch.tensor([tokenization.encode(_TEXT)[:longest]])


def next_token_distributions(model: Any, tokens: Tensor) -> Tensor:
    """Return the probabilities (n, vocab) after each of the tokens (1, n), evaluated by a model of transformers."""
    with torch.inference_mode():
        return model(input_ids=tokens, use_cache=False).logits[0].float().softmax(-1)


def mean_total_variation(first: Tensor, second: Tensor) -> float:
    """Return the mean total variation between distributions (n, vocab_size), or NaN if there are NaN entries."""
    return float((first - second).abs().sum(-1).mean() / 2)


def _time_formats(plain: list[nn.Linear], head: Any) -> tuple[dict[str, float], dict[str, float]]:
    """Measure CPU seconds of a matrix product in each format, for one row and for many rows."""
    body = [layer for layer in plain if layer is not head] or plain
    shape, _ = Counter(layer.weight.shape for layer in body).most_common(1)[0]
    layers = [layer for layer in body if layer.weight.shape == shape][:_MEASURED_LAYERS]
    times: tuple[dict[str, float], dict[str, float]] = ({}, {})
    for name in available_formats():
        form = select_fitting_format(name, shape)
        # Several layers are multiplied in turn, because a single layer would stay in the CPU cache.
        products = [form.pack(layer.weight.detach(), None) for layer in layers]
        for found, rows in zip(times, (1, _MANY_ROWS), strict=True):
            found[name] = _shortest_time(products, torch.ones(rows, shape[1], dtype=form.states))
    return times


def _shortest_time(products: list[Product], states: Tensor) -> float:
    shortest = float("inf")
    with torch.inference_mode():
        for _ in range(7):
            began = time.process_time()
            for product in products:
                product(states)
            shortest = min(shortest, time.process_time() - began)
    return shortest
