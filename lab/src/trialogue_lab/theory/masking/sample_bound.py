"""Theorem 4.1.4 of the thesis and its lemmas: error bounds for a distribution learned from conditionals.

There are n samples with m masks each. beta is a lower bound on all conditionals, and C_AT is the constant of
approximate tensorization (Definition 4.1.9). L^_PL is the loss over samples and masks, and L~_PL is its
average over masks.
"""

import math
import sys
from typing import Annotated, NamedTuple

from annotated_types import Ge
from pydantic import AllowInfNan

from trialogue.validation import Count, NonNegative, Positive, Probability, validated

AtLeastOne = Annotated[float, Ge(1 - 1e-12), AllowInfNan(False)]
"""A number of at least 1, up to rounding."""


class SampleBound(NamedTuple):
    """Theorem 4.1.4: TV(p_theta^, p_X) < sqrt(C_AT / 2 (loss + masks_term ln(1/beta) + eps)) + samples_term."""

    bound: float
    masks_term: float
    samples_term: float


@validated
def sample_bound(
    *,
    sites: Count,
    vocab_size: Count,
    samples: Count,
    masks: Count,
    tensorization: AtLeastOne,
    loss: NonNegative,
    beta: Probability,
    cells: AtLeastOne,
    eps: NonNegative,
    delta: Probability,
) -> SampleBound:
    """Compute Theorem 4.1.4 with the constants of its proof.

    B = sqrt(2^{3N} |Omega|^N C_eps / (m delta)) + sqrt(ln(8 C_eps / delta) / (2n)) and C = sqrt(|Omega|^{3N}
    / (8 delta n)). The root covers all of C_AT (L^ + B ln(1/beta) + eps). The loss contains the conditional
    entropy of the data, so the bound does not vanish with n.

    Args:
        sites: Number of sites N.
        vocab_size: Number of tokens |Omega|.
        samples: Number of samples n.
        masks: Number of masks m per sample.
        tensorization: C_AT of the fitted distribution. A lower bound on C_AT proves nothing.
        loss: Empirical L^_PL at the fit, in nats.
        beta: Lower bound on every conditional for every theta (Assumption 4.1.3).
        cells: Number C_eps of parameter cells in which log-probabilities vary by at most eps / 2 (Assumption
            4.1.4).
        eps: Accuracy of the cells.
        delta: The bound holds with probability at least 1 - delta.
    """
    masks_term = _root(3 * sites, vocab_size, sites, cells / (masks * delta))
    masks_term += math.sqrt(math.log(8 * cells / delta) / (2 * samples))
    samples_term = empirical_distribution_bound(
        sites=sites, vocab_size=vocab_size, samples=samples, delta=delta / 2
    )
    inside = tensorization / 2 * (loss + masks_term * math.log(1 / beta) + eps)
    return SampleBound(math.sqrt(inside) + samples_term, masks_term, samples_term)


@validated
def empirical_distribution_bound(
    *, sites: Count, vocab_size: Count, samples: Count, delta: Probability
) -> float:
    """Return the bound of Lemma 4.3.6 on TV(p~_X, p_X), which holds with probability 1 - delta.

    The bound is sqrt(|Omega|^{3N} / (16 delta n)).
    """
    return _root(0, vocab_size, 3 * sites, 1 / (16 * delta * samples))


@validated
def mask_average_bound(
    *, sites: Count, vocab_size: Count, samples: Count, masks: Count, beta: Probability, delta: Probability
) -> float:
    """Return the bound of Corollary 4.3.1 on |L^_PL - L~_PL| at one theta, with probability at least 1 - delta.

    The bound is (sqrt(2^{3N-1} |Omega|^N / (m delta)) + sqrt(ln(4 / delta) / (2n))) ln(1 / beta). It follows
    from Lemma 4.3.5 with eps = sqrt(2^{N-1} |Omega|^N / (m delta)).
    """
    masks_term = _root(3 * sites - 1, vocab_size, sites, 1 / (masks * delta))
    return (masks_term + math.sqrt(math.log(4 / delta) / (2 * samples))) * math.log(1 / beta)


class Deviation(NamedTuple):
    """A distance and the smallest probability of not exceeding it. A negative probability is not informative."""

    distance: float
    probability: float


@validated
def mask_average_deviation(
    *,
    sites: Count,
    vocab_size: Count,
    samples: Count,
    masks: Count,
    beta: Probability,
    eps: Positive,
    t: Positive,
) -> Deviation:
    """Compute Lemma 4.3.5: |L^_PL - L~_PL| < 2^N eps ln(1/beta) + t / n at one theta.

    The probability is at least 1 - 2^{N-2} |Omega|^N / (eps^2 m) - 2 exp(-2 t^2 / (n ln^2(1/beta))), for any
    positive `eps` and `t`.
    """
    margin = math.log(1 / beta)
    risk = 2.0 ** (sites - 2) * float(vocab_size) ** sites / (eps**2 * masks)
    risk += 2 * math.exp(-2 * t**2 / (samples * margin**2))
    return Deviation(2.0**sites * eps * margin + t / samples, 1 - risk)


def _root(twos: int, vocab_size: int, power: int, factor: float) -> float:
    """Return sqrt(2^twos |Omega|^power factor), or infinity on overflow."""
    log = (twos * math.log(2) + power * math.log(vocab_size) + math.log(factor)) / 2
    return math.exp(log) if log < math.log(sys.float_info.max) else math.inf
