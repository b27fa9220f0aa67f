"""Bootstrap intervals of translation scores over sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from scipy.stats import bootstrap

from trialogue.generation.translation.scores import Stutter, require_aligned
from trialogue.randomness import numpy_generator

_RESAMPLES = 1000


def bleu_interval(
    outputs: Sequence[str], references: Sequence[str], *, seed: int, tokenize: str = "13a"
) -> Any:
    """Return the 95 % interval (`low`, `high`) of the BLEU of `outputs`, by percentiles of the bootstrap."""
    require_aligned(outputs, references)
    metric = BLEU(
        tokenize=tokenize, effective_order=True
    )  # for a sentence, whose counts are all that is used
    scores = [
        metric.sentence_score(output, [reference])
        for output, reference in zip(outputs, references, strict=True)
    ]
    counts = np.array([(*score.counts, *score.totals, score.sys_len, score.ref_len) for score in scores])

    def corpus_bleu(sums: NDArray[np.int64]) -> float:
        held = sums.tolist()
        return BLEU.compute_bleu(held[:4], held[4:8], held[8], held[9], smooth_method="exp").score

    return _interval(counts, corpus_bleu, seed)


def stutter_interval(found: Stutter, seed: int) -> Any:
    """Return the 95 % interval (`low`, `high`) of the rate of repeated words."""
    held = np.stack((found.repeated, found.pairs), -1)
    return _interval(held, lambda sums: float(sums[0] / max(1, sums[1])), seed)


def _interval(held: NDArray[np.int64], statistic: Callable[[NDArray[np.int64]], float], seed: int) -> Any:
    """Return the interval of a statistic of the sums of `held` (sentences, numbers), from the stream "bootstrap"."""
    return bootstrap(
        (np.arange(len(held)),),
        lambda places: statistic(held[places].sum(0)),
        vectorized=False,
        n_resamples=_RESAMPLES,
        method="percentile",
        rng=numpy_generator(seed, "bootstrap"),
    ).confidence_interval
