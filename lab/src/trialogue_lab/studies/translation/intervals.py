"""Bootstrap intervals of translation scores over sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from scipy.stats import bootstrap

from trialogue.generation.translation.scores import RepeatedWords, require_aligned
from trialogue.randomness import numpy_generator

_RESAMPLES = 1000


def compute_bleu_interval(
    outputs: Sequence[str], references: Sequence[str], *, seed: int, tokenize: str = "13a"
) -> Any:
    """Return a 95 % bootstrap interval of corpus BLEU over sentences.

    The percentile method is used.

    Args:
        outputs: Translations.
        references: One reference per translation.
        seed: Seed of the bootstrap samples.
        tokenize: Tokenizer of sacreBLEU (default: "13a").

    Returns:
        A named tuple with the fields `low` and `high`.
    """
    require_aligned(outputs, references)
    # Only the n-gram counts of each sentence are used, and `effective_order` avoids a warning about sentence scores.
    metric = BLEU(tokenize=tokenize, effective_order=True)
    pairs = zip(outputs, references, strict=True)
    scores = [metric.sentence_score(output, [reference]) for output, reference in pairs]
    counts = np.array([(*score.counts, *score.totals, score.sys_len, score.ref_len) for score in scores])

    def corpus_bleu(sums: NDArray[np.int64]) -> float:
        total = sums.tolist()
        return BLEU.compute_bleu(total[:4], total[4:8], total[8], total[9], smooth_method="exp").score

    return _compute_interval(counts, corpus_bleu, seed)


def compute_stutter_interval(repeats: RepeatedWords, seed: int) -> Any:
    """Return a 95 % bootstrap interval of the rate of repeated words over sentences.

    The percentile method is used.

    Args:
        repeats: Numbers of repeated words and of word pairs of each sentence.
        seed: Seed of the bootstrap samples.

    Returns:
        A named tuple with the fields `low` and `high`.
    """
    counts = np.stack((repeats.repeated, repeats.pairs), -1)
    return _compute_interval(counts, lambda sums: float(sums[0] / max(1, sums[1])), seed)


def _compute_interval(
    counts: NDArray[np.int64], statistic: Callable[[NDArray[np.int64]], float], seed: int
) -> Any:
    """Return a 95 % bootstrap interval of a statistic of summed counts.

    `counts` has the shape (sentences, numbers). The counts of resampled sentences are summed.
    """
    return bootstrap(
        (np.arange(len(counts)),),
        lambda places: statistic(counts[places].sum(0)),
        vectorized=False,
        n_resamples=_RESAMPLES,
        method="percentile",
        rng=numpy_generator(seed, "bootstrap"),
    ).confidence_interval
