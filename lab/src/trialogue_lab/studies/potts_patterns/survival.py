"""Simulated rows about Corollary 1.2.1: how long texts of random models follow one of the models' own patterns."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from trialogue.randomness import seed_of
from trialogue.samplers import generate
from trialogue_lab.studies.potts_coherence.maps import VOCAB, random_model
from trialogue_lab.theory.potts.greedy_patterns import greedy_patterns
from trialogue_lab.theory.potts.map import context_log_probs


def survival_rows(widths: Sequence[int], models: int, chains: int, seed: int) -> Iterator[dict[str, Any]]:
    """One row per random model: texts that begin on its slowest greedy pattern, and when they leave it.

    A text is followed for so many whole periods that about a tenth is left. `rate` is the exact decay in nats per
    token, `measured` that of the periods survived, `half` and `whole` the shares left after half of them and all.
    """
    for width in widths:
        for place in range(models):
            oracle = random_model(width, place)
            patterns = greedy_patterns(context_log_probs(oracle, width))
            pattern = min(patterns, key=lambda one: one.decay_rate)
            period = len(pattern.tokens)
            halves = max(1, math.ceil(1.2 / (pattern.decay_rate * period)))
            periods = 2 * halves
            digits = VOCAB ** torch.arange(width - 1, -1, -1)
            prompt = (pattern.context // digits) % VOCAB
            text = generate(
                oracle,
                prompt.expand(chains, -1),
                max_new_tokens=periods * period,
                seed=seed_of(seed, "potts-patterns", "survival", width, place),
            )
            written = torch.tensor([row[width:] for row in text.sequences()])
            right = (written == pattern.tokens.repeat(periods)).view(chains, periods, period).all(2)
            survived = right.int().cumprod(1).sum(1)
            ended = survived < periods
            hazard = float(ended.sum()) / float(survived.sum() + ended.sum())
            yield {
                "kind": "survival",
                "seed": seed,
                "width": width,
                "place": place,
                "period": period,
                "rate": pattern.decay_rate,
                "measured": -math.log1p(-hazard) / period,
                "half": float((survived >= halves).double().mean()),
                "whole": float((~ended).double().mean()),
            }
