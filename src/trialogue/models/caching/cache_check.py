"""Whether cached passes of a pretrained model are right: what its config says, and a comparison with fresh passes."""

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
# A position that holds the wrong keys makes 0.2 and more, rounding 0.03 in bfloat16 and 1e-5 in float32. Layers in int8
# and int4 multiply bfloat16; that their weights are rounded is the same in cached and in fresh passes.
_TOLERANCE = {torch.bfloat16: 0.15, torch.float16: 0.03}


class Passes(NamedTuple):
    """What trying the passes of a model with the code `code` shows: attributes of `PretrainedOracle`.

    Of `decoder` it says whether there is a right one.
    """

    plain_head: bool
    decoder: bool
    window: int | None
    code: str


def kept_passes(kept: Any, code: str) -> Passes | None:
    """What was kept of trying passes; None for anything else, and for a model with another `code`."""
    try:
        found = _PASSES.validate_python(kept, strict=True)
    except ValidationError:
        return None
    return found if found.code == code else None


_PASSES = TypeAdapter(Passes)


def code_of(model: nn.Module) -> str:
    """A digest of the passes that the modules of `model` are written to make, which a program may have replaced."""
    digest = hashlib.sha256()
    for kind in sorted(
        {type(part) for part in model.modules()}, key=lambda kind: (kind.__module__, kind.__qualname__)
    ):
        code = getattr(inspect.unwrap(kind.forward), "__code__", None)
        digest.update(f"{kind.__module__}.{kind.__qualname__}".encode())
        if code is not None:
            digest.update(f"{code.co_filename}:{code.co_firstlineno}:{code.co_names}".encode() + code.co_code)
    return digest.hexdigest()


def tolerance(oracle: CausalModel) -> float:
    """How much of `cache_error` rounding may make: by the lowest type that the model multiplies in."""
    types = {oracle.dtype} | {
        part.states for part in oracle.model.modules() if isinstance(part, PackedLinear)
    }
    return max(_TOLERANCE.get(dtype, 1e-3) for dtype in types)


def cache_error(oracle: CausalModel, tokens: Tensor) -> float:
    """How far answers of rewound ragged rows are from those of fresh passes, over `tokens` (2, length).

    The root mean square over the vocabulary of the difference of log-probabilities, in standard deviations of the
    fresh ones, so that it means the same for a flat distribution as for a peaked one; the greatest of six answers. NaN
    where an answer is.
    """
    tokens, rows, length = tokens.cpu(), torch.tensor([0, 1]), tokens.shape[1]
    last = torch.tensor([length, length - 2]).clamp_min(1)
    wrong = tokens.clone()
    wrong[:, 2:] = (wrong[:, 2:] + 1) % oracle.vocab_size
    # Together in a pass: rows that begin at different places, that end at different places, and single tokens.
    schedule = [
        (torch.tensor([2, 3]), (last.max() - 1).clamp_min(1).expand(2)),
        (torch.tensor([3, 2]), last),
        (last, last),
    ]
    worst = 0.0
    with torch.inference_mode():
        cached: Context = CachedContext(oracle, length, (), PositionCache(oracle.layers, 2, length))
        fresh: Context = RecomputedContext(oracle, length, ())
        cached.features(wrong, torch.zeros_like(last), last, rows)
        stops = torch.cat([stop for _, stop in schedule])
        again, every = tokens.repeat(len(schedule), 1), torch.arange(len(stops))
        distributions = fresh.log_probs(fresh.features(again, torch.zeros_like(stops), stops, every))
        for (start, stop), expected in zip(schedule, distributions.double().split(len(rows)), strict=True):
            features = cached.features(tokens, start.minimum(stop), stop, rows)
            answers = cached.log_probs(features).double()
            for answer, distribution in zip(answers, expected, strict=True):
                known = distribution.isfinite()
                difference = (answer - distribution)[known].square().mean().sqrt()
                error = float(
                    difference / distribution[known].std().clamp_min(torch.finfo(torch.float32).tiny)
                )
                worst = error if math.isnan(error) else max(worst, error)
    return worst


def recurrent_state(model: Any, config: Any) -> str:
    """What kind of state of the model cannot be rewound, if any."""
    if getattr(model, "_is_stateful", False):
        return "recurrent"
    attention = {"full_attention", "sliding_attention", "chunked_attention"}
    others = sorted(set(getattr(config, "layer_types", None) or ()) - attention)
    return ", ".join(others)


def windows(config: Any) -> tuple[int | None, list[int]]:
    """The length up to which all layers attend to everything by what `config` states, and what else may be such one.

    The first is None where they always do.
    """
    kinds = set(getattr(config, "layer_types", None) or ())
    if kinds == {"full_attention"} or not getattr(config, "use_sliding_window", True):
        return None, []
    stated = [getattr(config, "sliding_window", None)]
    if "chunked_attention" in kinds:
        stated.append(getattr(config, "attention_chunk_size", None))
    if "local" in (getattr(config, "attention_layers", None) or ()):
        stated.append(getattr(config, "window_size", None))
    possible = {
        value
        for name, value in config.to_dict().items()
        if "window" in name and not name.endswith(("layers", "pattern")) and type(value) is int and value > 0
    }
    return min((window for window in stated if window), default=None), sorted(possible - {*stated})
