"""Whether cached passes of a pretrained model are right: a comparison with fresh passes, in one number."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from trialogue.models.packed.linear import PackedLinear
from trialogue.models.position_cache import PositionCache
from trialogue.models.pretrained_contexts import CachedContext, CausalModel, RecomputedContext
from trialogue.oracles import Context

CHECKED_LENGTH = 6
# A position that holds the wrong keys makes 0.2 and more, rounding 0.03 in bfloat16 and 1e-5 in float32.
_TOLERANCE = {torch.bfloat16: 0.15, torch.float16: 0.03}


def tolerance(oracle: CausalModel) -> float:
    """How much of `cache_error` rounding may make: by the lowest type that the model multiplies in."""
    types = {oracle.dtype} | {
        part.states for part in oracle.model.modules() if isinstance(part, PackedLinear)
    }
    return max(_TOLERANCE.get(dtype, 1e-3) for dtype in types)


def cache_error(oracle: CausalModel, tokens: Tensor) -> float:
    """How far answers of rewound ragged rows are from those of fresh passes, over `tokens` (2, length).

    The root mean square over the vocabulary of the difference of log-probabilities, in standard deviations of the
    fresh ones, so that it means the same for a flat law as for a peaked one; the greatest of six answers. NaN where an
    answer is.
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
        laws = fresh.log_probs(fresh.features(again, torch.zeros_like(stops), stops, every))
        for (start, stop), expected in zip(schedule, laws.double().split(len(rows)), strict=True):
            features = cached.features(tokens, start.minimum(stop), stop, rows)
            answers = cached.log_probs(features).double()
            for answer, law in zip(answers, expected, strict=True):
                known = law.isfinite()
                difference = (answer - law)[known].square().mean().sqrt()
                error = float(difference / law[known].std().clamp_min(torch.finfo(torch.float32).tiny))
                worst = error if math.isnan(error) else max(worst, error)
    return worst
