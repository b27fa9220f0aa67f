"""Simulated texts of random models, and how long they follow a pattern of the model (Corollary 1.2.1)."""

import math
from pathlib import Path

import torch

from trialogue.randomness import derive_seed
from trialogue.samplers import generate
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.studies.potts_coherence.maps import VOCAB, make_random_model
from trialogue_lab.studies.potts_patterns.config import Config
from trialogue_lab.theory.potts.greedy_patterns import greedy_patterns
from trialogue_lab.theory.potts.map import context_log_probs


def measure_survival(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Generate text with random language models, and measure how long it follows a periodic pattern.

    Greedy decoding of a model repeats such a pattern forever. Text starts on the pattern that sampled text leaves most
    slowly. Its length is chosen so that about a tenth of the texts follow the pattern to the end.

    Args:
        config: Numbers of previous tokens that the models see, of models and of texts.
        seed: Seed of the texts.

    Yields:
        One row per model. The share of texts that still follow the pattern after n tokens falls like exp(-rate n).
        `rate` is the exact rate in nats per token, and `measured` its estimate. `half` and `whole` are the shares of
        texts that follow the pattern for half of their length and to the end.
    """
    for width in config.widths:
        for place in range(config.models):
            oracle = make_random_model(width, place)
            patterns = greedy_patterns(context_log_probs(oracle, width))
            pattern = min(patterns, key=lambda each: each.decay_rate)
            period = len(pattern.tokens)
            halves = max(1, math.ceil(1.2 / (pattern.decay_rate * period)))
            periods = 2 * halves
            digits = VOCAB ** torch.arange(width - 1, -1, -1)
            prompt = (pattern.context // digits) % VOCAB
            text = generate(
                oracle,
                prompt.expand(config.texts, -1),
                max_new_tokens=periods * period,
                seed=derive_seed(seed, "potts-patterns", "survival", width, place),
            )
            written = torch.tensor([row[width:] for row in text.sequences()])
            follows = (written == pattern.tokens.repeat(periods)).view(config.texts, periods, period).all(2)
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
