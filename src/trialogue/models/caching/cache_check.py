"""Self-checks of pretrained models: passes with and without a key-value cache must agree."""

from __future__ import annotations

import hashlib
import inspect
import math
from typing import Any, NamedTuple

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn

from trialogue.models.caching.position_cache import PositionCache
from trialogue.models.caching.pretrained_contexts import CachedContext, CausalModel, RecomputedContext
from trialogue.models.packed.linear import PackedLinear
from trialogue.oracles import Context

CHECKED_LENGTH = 6
# Wrong keys at one position give an error of at least 0.2, rounding 0.03 in bfloat16 and 1e-5 in float32. Int8 and int4
# layers multiply in bfloat16. Their weights are equal in cached and uncached passes, so quantisation adds no error.
_TOLERANCE = {torch.bfloat16: 0.15, torch.float16: 0.03}


class SelfCheckResults(NamedTuple):
    """Results of the self-checks of a `PretrainedOracle`, which are stored so that they are run only once.

    Attributes:
        plain_head: Whether logits are the product of the last hidden state and the output embeddings.
        decoder: Whether a `DecoderPass` exists and gives correct results.
        window: Sliding-window length that limits cached passes. None for no limit.
        code: Digest of the model's code, from `forward_digest`.
    """

    plain_head: bool
    decoder: bool
    window: int | None
    code: str


def parse_self_checks(kept: Any, code: str) -> SelfCheckResults | None:
    """Return the stored results of earlier self-checks, or None if they are not valid for this model.

    Args:
        kept: Value that was read from the store, of any type.
        code: Digest of the model's code, from `forward_digest`.

    Returns:
        The results, or None if `kept` is not a valid record or belongs to another `code`.
    """
    try:
        found = _PASSES.validate_python(kept, strict=True)
    except ValidationError:
        return None
    return found if found.code == code else None


_PASSES = TypeAdapter(SelfCheckResults)


def forward_digest(model: nn.Module) -> str:
    """Return a hash of the code of a model's forward pass.

    The hash covers the `forward` methods of all modules. It changes if a program replaces one of them.
    """
    digest = hashlib.sha256()
    for module_class in sorted(
        {type(part) for part in model.modules()},
        key=lambda module_class: (module_class.__module__, module_class.__qualname__),
    ):
        code = getattr(inspect.unwrap(module_class.forward), "__code__", None)
        digest.update(f"{module_class.__module__}.{module_class.__qualname__}".encode())
        if code is not None:
            digest.update(f"{code.co_filename}:{code.co_firstlineno}:{code.co_names}".encode() + code.co_code)
    return digest.hexdigest()


def rounding_tolerance(oracle: CausalModel) -> float:
    """Return the largest `cache_error` that rounding can explain at the model's lowest precision."""
    types = {oracle.dtype} | {
        part.states for part in oracle.model.modules() if isinstance(part, PackedLinear)
    }
    return max(_TOLERANCE.get(dtype, 1e-3) for dtype in types)


def cache_error(oracle: CausalModel, tokens: Tensor) -> float:
    """Measure how much next-token distributions with a key-value cache differ from those without a cache.

    The error of a distribution is the root mean square difference of its log-probabilities, divided by their
    standard deviation. The rows have different lengths and lose tokens during the check.

    Args:
        oracle: Model to check.
        tokens: Token ids (2, length) int64 to evaluate.

    Returns:
        The largest error of six distributions, or NaN if one of the errors is NaN.
    """
    tokens, rows, length = tokens.cpu(), torch.tensor([0, 1]), tokens.shape[1]
    last = torch.tensor([length, length - 2]).clamp_min(1)
    wrong = tokens.clone()
    wrong[:, 2:] = (wrong[:, 2:] + 1) % oracle.vocab_size
    # The passes cover rows with different first positions, rows with different last positions, and single tokens.
    schedule = [
        (torch.tensor([2, 3]), (last.max() - 1).clamp_min(1).expand(2)),
        (torch.tensor([3, 2]), last),
        (last, last),
    ]
    largest_error = 0.0
    with torch.inference_mode():
        cached: Context = CachedContext(oracle, length, (), PositionCache(oracle.layers, 2, length))
        fresh: Context = RecomputedContext(oracle, length, ())
        cached.features(wrong, torch.zeros_like(last), last, rows)
        stops = torch.cat([stop for _, stop in schedule])
        repeated, every_row = tokens.repeat(len(schedule), 1), torch.arange(len(stops))
        distributions = fresh.log_probs(fresh.features(repeated, torch.zeros_like(stops), stops, every_row))
        for (start, stop), expected in zip(schedule, distributions.double().split(len(rows)), strict=True):
            features = cached.features(tokens, start.minimum(stop), stop, rows)
            log_probs = cached.log_probs(features).double()
            for actual, reference in zip(log_probs, expected, strict=True):
                finite = reference.isfinite()
                difference = (actual - reference)[finite].square().mean().sqrt()
                error = float(difference / reference[finite].std().clamp_min(torch.finfo(torch.float32).tiny))
                largest_error = error if math.isnan(error) else max(largest_error, error)
    return largest_error


def recurrent_state(model: Any, config: Any) -> str:
    """Return the kind of state that cannot be rewound, or an empty string if the model has none."""
    if getattr(model, "_is_stateful", False):
        return "recurrent"
    attention = {"full_attention", "sliding_attention", "chunked_attention"}
    others = sorted(set(getattr(config, "layer_types", None) or ()) - attention)
    return ", ".join(others)


def sliding_windows(config: Any) -> tuple[int | None, list[int]]:
    """Return the length of the sliding attention window of a model, and other config entries that may be one.

    Args:
        config: Configuration of a model of transformers.

    Returns:
        The length up to which every layer attends to all previous positions according to `config`, or None without a
        limit. The second item lists other entries of `config` that may be such a length.
    """
    kinds = set(getattr(config, "layer_types", None) or ())
    if kinds == {"full_attention"} or not getattr(config, "use_sliding_window", True):
        return None, []
    stated_windows = [getattr(config, "sliding_window", None)]
    if "chunked_attention" in kinds:
        stated_windows.append(getattr(config, "attention_chunk_size", None))
    if "local" in (getattr(config, "attention_layers", None) or ()):
        stated_windows.append(getattr(config, "window_size", None))
    possible_windows = {
        value
        for name, value in config.to_dict().items()
        if "window" in name and not name.endswith(("layers", "pattern")) and type(value) is int and value > 0
    }
    return min((window for window in stated_windows if window), default=None), sorted(
        possible_windows - {*stated_windows}
    )
