"""Which formats a model's weights are packed in: those asked for, or the fastest that keep its distributions."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn

from trialogue.errors import InputError, out_of_memory
from trialogue.models.hub.findings import Findings
from trialogue.models.hub.memory import require_memory
from trialogue.models.packed.formats import FORMATS, Product, available, fitting, require_format
from trialogue.models.packed.linear import Packing, fill, is_plain, pack_linear_layers
from trialogue.models.tokenization import Tokenization

if TYPE_CHECKING:
    from trialogue.models.packed.gguf_blocks import GgufBlocks

LAW_DISTANCE = 0.03
"""How far "auto" lets next-token distributions be from those of float32: mean total variation."""
# A second copy of the weights is worth its memory from this gain at many rows on.
_WORTH_A_COPY = 1.2
_MANY_ROWS = 16
_MEASURED_LAYERS = 8
_PACKING = TypeAdapter(Packing)
_CHOSEN, _FEWEST = "packing", "int4"
_TEXT = (
    "The old library stands at the end of the street, next to a small park. Every Tuesday evening, about 40 people "
    "meet there to read to each other, mostly in English, sometimes in French. In 1987 a fire destroyed the roof; it "
    'took three years and $250,000 to repair it. "We never thought of giving up," said Anna Keller, who has worked '
    "there since she was a student. Her list of books to buy has only grown: novels, maps, a history of the railway."
)


def require_weights(weights: str, packed: bool, dtype: torch.dtype | str, device: torch.device) -> None:
    """Raise `InputError` unless weights can be packed as asked for; float32 is no request."""
    if weights == "float32":
        return
    if weights != "auto":
        require_format(weights)
    if not packed:
        raise InputError("weights", weights, "it is a format of packed layers: leave packed=False away")
    if device.type != "cpu" or dtype != torch.float32:
        hint = f"packed layers are those of float32 models on the CPU; this one is asked for as {dtype} on {device}"
        raise InputError("weights", weights, hint)


def packed_as(
    weights: str,
    model: Any,
    tokenization: Tokenization,
    blocks: Mapping[nn.Module, GgufBlocks] | None = None,
    findings: Findings | None = None,
) -> None:
    """Pack the linear layers of `model` in the format `weights`, or for "auto" in the fastest that keeps its
    distributions.

    `blocks` are those of layers that have no weights yet; what "auto" chooses is taken from the `findings` of the same
    model, or added to them. Raises `InputError` where no layer can be packed in a format below 32 bits, or memory does
    not suffice.
    """
    head = model.get_output_embeddings()
    blocks, findings = blocks or {}, findings or Findings()
    packing = _found(findings) if weights == "auto" else Packing(weights, weights)
    plain = [layer for layer in model.modules() if is_plain(layer, blocks)]
    if weights not in ("float32", "auto") and not plain:
        raise InputError("weights", weights, "none of the model's layers can be packed: leave it at float32")
    filled = blocks if packing is None or not {packing.few, packing.many} <= set(available()) else {}
    empty = sum(layer.weight.numel() for layer in plain if layer in filled and layer.weight.is_meta)
    packed = _bytes_packed(plain, packing or Packing(_FEWEST, _FEWEST))
    require_memory("weights", weights, packed + empty * torch.float32.itemsize)
    fill(filled)
    try:
        if packing is None and plain and available():
            packing = _pack_fastest(model, head, plain, tokenization, blocks)
            findings.keep(_CHOSEN, list(packing))
        else:
            pack_linear_layers(model, packing, head, blocks)
    except RuntimeError as error:
        if not out_of_memory(error):
            raise
        hint = "memory does not suffice for the weights as stored and as packed: close other programs"
        raise InputError("weights", weights, hint) from error


def _bytes_packed(layers: list[nn.Linear], packing: Packing) -> int:
    """Bytes that the weights of `layers` take in the formats of `packing`, shares of scales left out."""
    bits = sum(FORMATS[name].bits for name in {packing.few, packing.many} & set(available()))
    return sum(layer.weight.numel() for layer in layers) * bits // 8


def _found(findings: Findings) -> Packing | None:
    """What "auto" chose before, if that can be had here."""
    try:
        packing = _PACKING.validate_python(findings.get(_CHOSEN) or None, strict=True)
    except ValidationError:
        return None
    return packing if {packing.few, packing.many} <= set(available()) else None


def _pack_fastest(
    model: Any,
    head: Any,
    plain: list[nn.Linear],
    tokenization: Tokenization,
    blocks: Mapping[nn.Module, GgufBlocks],
) -> Packing:
    few, many = _seconds(plain, head)
    tokens = torch.tensor(
        [tokenization.encode(_TEXT)[: getattr(model.config, "max_position_embeddings", None)]]
    )
    stored = _laws(model, tokens)
    for name in sorted(few, key=lambda name: few[name]):
        best = min((other for other in many if _extends(name, other)), key=lambda other: many[other])
        worth = many[name] > _WORTH_A_COPY * many[best]
        packing = Packing(name, best if worth else name)
        restore = pack_linear_layers(model, packing, head, blocks)
        if name == "float32" or law_distance(stored, _laws(model, tokens)) <= LAW_DISTANCE:
            return packing
        restore()
    return Packing()


def _extends(few: str, many: str) -> bool:
    """Whether weights that were rounded to the format `few` may have a copy in `many`."""
    return many == few or (
        FORMATS[many].bits > FORMATS[few].bits and FORMATS[many].states == FORMATS[few].states
    )


def _laws(model: Any, tokens: Tensor) -> Tensor:
    with torch.inference_mode():
        return model(input_ids=tokens, use_cache=False).logits[0].float().softmax(-1)


def law_distance(first: Tensor, second: Tensor) -> float:
    """Mean total variation between distributions (n, vocab); NaN where one is none."""
    return float((first - second).abs().sum(-1).mean() / 2)


def _seconds(plain: list[nn.Linear], head: Any) -> tuple[dict[str, float], dict[str, float]]:
    """CPU seconds by format for one row and for many: products with layers of the commonest shape."""
    body = [layer for layer in plain if layer is not head] or plain
    shape, _ = Counter(layer.weight.shape for layer in body).most_common(1)[0]
    layers = [layer for layer in body if layer.weight.shape == shape][:_MEASURED_LAYERS]
    times: tuple[dict[str, float], dict[str, float]] = ({}, {})
    for name in available():
        form = fitting(name, shape)
        # Several layers in turn, as in a pass: one alone would be read from the processor's cache.
        products = [form.lay(layer.weight.detach(), None) for layer in layers]
        for found, rows in zip(times, (1, _MANY_ROWS), strict=True):
            found[name] = _least_seconds(products, torch.ones(rows, shape[1], dtype=form.states))
    return times


def _least_seconds(products: list[Product], states: Tensor) -> float:
    least = float("inf")
    with torch.inference_mode():
        for _ in range(7):
            began = time.process_time()
            for product in products:
                product(states)
            least = min(least, time.process_time() - began)
    return least
