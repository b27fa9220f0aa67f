"""Simulated texts of random models, and the time until they leave a pattern of the model (Corollary 1.2.1)."""

import math
from collections.abc import Sequence

import torch

from trialogue.randomness import seed_of
from trialogue.samplers import generate
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.studies.potts_coherence.maps import VOCAB, random_model
from trialogue_lab.theory.potts.greedy_patterns import greedy_patterns
from trialogue_lab.theory.potts.map import context_log_probs


def survival_rows(widths: Sequence[int], models: int, chains: int, seed: int) -> MeasuredRows:
    """Measure how long texts of random models follow a pattern that greedy decoding repeats forever.

    The pattern is the one with the smallest decay rate. Texts start on it and are so long that about a tenth of them
    follow it to the end.

    Args:
        widths: Context widths of the models.
        models: Number of models per width.
        chains: Number of texts per model.
        seed: Seed of the texts.

    Yields:
        One row per model. `rate` is the exact decay rate in nats per token, and `measured` is its estimate from the
        texts. `half` and `whole` are the shares of texts that follow the pattern for half of their length and to the
        end.
    """
    for width in widths:
        for place in range(models):
            oracle = random_model(width, place)
            patterns = greedy_patterns(context_log_probs(oracle, width))
            pattern = min(patterns, key=lambda each: each.decay_rate)
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
            follows = (written == pattern.tokens.repeat(periods)).view(chains, periods, period).all(2)
            survived = follows.int().cumprod(1).sum(1)
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
