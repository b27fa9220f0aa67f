"""Error bounds for a distribution learned from masked tokens: Theorem 4.1.4 of the thesis and its lemmas.

The data are n sequences of N tokens from a vocabulary Omega, and m random sets K of masked positions per
sequence. The loss is the mean of -log p_theta(x_K | x_{-K}, K) over sequences and masks. beta is a lower
bound on all conditional probabilities.
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
    """Upper bound on the total variation distance between a fitted and the true distribution (Theorem 4.1.4).

    Attributes:
        bound: Value of the bound (see `sample_bound` for the formula).
        masks_term: B, the error from the finite number of masks and sequences.
        samples_term: C, the error of the empirical distribution of the sequences.
    """

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
    """Return an upper bound on the distance between a distribution fitted to masked tokens and the true one.

        bound = sqrt(C_AT / 2 (loss + B ln(1 / beta) + eps)) + C
        B     = sqrt(2^{3N} |Omega|^N C_eps / (m delta)) + sqrt(ln(8 C_eps / delta) / (2 n))
        C     = sqrt(|Omega|^{3N} / (8 delta n))

    This is Theorem 4.1.4, and the distance is the total variation. The bound holds with a probability of at least 1 -
    delta. It does not vanish for many samples, because the loss contains the conditional entropy of the data.

    Args:
        sites: Number N of positions in a sequence.
        vocab_size: Number of tokens |Omega|.
        samples: Number of sequences n.
        masks: Number m of random sets of masked positions per sequence.
        tensorization: Constant C_AT of the fitted distribution, or an upper bound on it (see
            `tensorization_upper_bound`).
        loss: Mean of -log p(x_K | x_{-K}, K) over sequences and sets K of masked positions for the fitted
            model, in nats.
        beta: Lower bound on every conditional probability for all parameters (Assumption 4.1.3).
        cells: Number C_eps of cells of the parameter space in which log-probabilities vary by at most eps / 2
            (Assumption 4.1.4).
        eps: Accuracy of the cells.
        delta: Probability with which the bound may fail.
    """
    masks_term = _compute_root(3 * sites, vocab_size, sites, cells / (masks * delta))
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
    """Return a bound on the total variation distance between the empirical and the true distribution (Lemma 4.3.6).

    The bound is sqrt(|Omega|^{3N} / (16 delta n)). It holds with a probability of at least 1 - delta.

    Args:
        sites: Number N of positions in a sequence.
        vocab_size: Number of tokens |Omega|.
        samples: Number of sequences n.
        delta: Probability with which the bound may fail.
    """
    return _compute_root(0, vocab_size, 3 * sites, 1 / (16 * delta * samples))


@validated
def mask_average_bound(
    *,
    sites: Count,
    vocab_size: Count,
    samples: Count,
    masks: Count,
    beta: Probability,
    delta: Probability,
    cells: AtLeastOne = 1.0,
    eps: NonNegative = 0.0,
) -> float:
    """Return an upper bound on the error of a loss that is averaged over m random masks instead of all masks.

        bound = (sqrt(2^{3N-1} |Omega|^N C_eps / (m delta)) + sqrt(ln(4 C_eps / delta) / (2n))) ln(1 / beta) + eps

    The loss is the mean of -log p(x_K | x_{-K}, K) over n sequences x and random sets K of masked positions. With one
    cell, this is Corollary 4.3.1: the bound holds for fixed parameters with a probability of at least 1 - delta. With
    C_eps cells, this is Corollary 4.3.2: the bound holds for all parameters at once.

    Args:
        sites: Number N of positions in a sequence.
        vocab_size: Number of tokens |Omega|.
        samples: Number of sequences n.
        masks: Number m of random sets of masked positions per sequence.
        beta: Lower bound on every conditional probability.
        delta: Probability with which the bound may fail.
        cells: Number C_eps of cells of the parameter space, as in `sample_bound` (default: 1).
        eps: Accuracy of the cells (default: 0).
    """
    risk = delta / cells
    masks_term = _compute_root(3 * sites - 1, vocab_size, sites, 1 / (masks * risk))
    return (masks_term + math.sqrt(math.log(4 / risk) / (2 * samples))) * math.log(1 / beta) + eps


class DeviationBound(NamedTuple):
    """Upper bound on the deviation of a loss, with the probability that the bound holds.

    Attributes:
        distance: Upper bound on the deviation.
        probability: Lower bound on the probability that the deviation is smaller. A negative value gives no
            information.
    """

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
) -> DeviationBound:
    """Return an upper bound on the error of a loss that is averaged over m random masks, and its probability to hold.

        bound       = 2^N eps ln(1/beta) + t / n
        probability = 1 - 2^{N-2} |Omega|^N / (eps^2 m) - 2 exp(-2 t^2 / (n ln^2(1/beta)))

    This is Lemma 4.3.5. The loss is the mean of -log p(x_K | x_{-K}, K) over n sequences x and random sets K of masked
    positions. Its error is the difference from the average over all masks, for one fixed parameter. The bound holds
    with at least this probability.

    Args:
        sites: Number N of positions in a sequence.
        vocab_size: Number of tokens |Omega|.
        samples: Number of sequences n.
        masks: Number m of random sets of masked positions per sequence.
        beta: Lower bound on every conditional probability.
        eps: Positive number to choose. A smaller value gives a smaller bound and a smaller probability.
        t: Positive number to choose. A smaller value gives a smaller bound and a smaller probability.
    """
    margin = math.log(1 / beta)
    risk = 2.0 ** (sites - 2) * float(vocab_size) ** sites / (eps**2 * masks)
    risk += 2 * math.exp(-2 * t**2 / (samples * margin**2))
    return DeviationBound(2.0**sites * eps * margin + t / samples, 1 - risk)


def _compute_root(twos: int, vocab_size: int, power: int, factor: float) -> float:
    """Return sqrt(2^twos * vocab_size^power * factor), or infinity if it overflows."""
    log = (twos * math.log(2) + power * math.log(vocab_size) + math.log(factor)) / 2
    return math.exp(log) if log < math.log(sys.float_info.max) else math.inf
