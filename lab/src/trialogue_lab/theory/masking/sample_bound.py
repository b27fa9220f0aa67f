"""Theorem 4.1.4 of the thesis and its parts: how far a law learned from conditionals is from the data's, at most.

n samples, each with m masks of its own; beta bounds all conditionals from below, and C_AT is the constant of
approximate tensorization (Definition 4.1.9). L^_PL is the loss over samples and masks, L~_PL its mean over masks.
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
    """Theorem 4.1.4 with its constants as proved: holds with probability at least 1 - `delta`.

    n = `samples`, each with m = `masks` masks; `tensorization` is C_AT of the fitted law (a lower bound of it proves
    nothing), `loss` the empirical L^_PL at the fit in nats, with the root over all of
    C_AT (L^ + B ln(1/beta) + eps); `beta` bounds every conditional of every theta from below (Assumption 4.1.3), and
    `cells` = C_eps cells of the parameters vary the log-probabilities by `eps` / 2 (Assumption 4.1.4). As a negative
    log-likelihood the loss contains the conditional entropy of the data, so the bound does not vanish with n.
    B = sqrt(2^{3N} |Omega|^N C_eps / (m delta)) + sqrt(ln(8 C_eps / delta) / (2n)),
    C = sqrt(|Omega|^{3N} / (8 delta n)).
    """
    masks_term = _root(3 * sites, vocab_size, sites, cells / (masks * delta))
    masks_term += math.sqrt(math.log(8 * cells / delta) / (2 * samples))
    samples_term = empirical_law_bound(sites=sites, vocab_size=vocab_size, samples=samples, delta=delta / 2)
    inside = tensorization / 2 * (loss + masks_term * math.log(1 / beta) + eps)
    return SampleBound(math.sqrt(inside) + samples_term, masks_term, samples_term)


@validated
def empirical_law_bound(*, sites: Count, vocab_size: Count, samples: Count, delta: Probability) -> float:
    """Lemma 4.3.6: TV(p~_X, p_X) < sqrt(|Omega|^{3N} / (16 delta n)) with probability at least 1 - `delta`."""
    return _root(0, vocab_size, 3 * sites, 1 / (16 * delta * samples))


@validated
def mask_average_bound(
    *, sites: Count, vocab_size: Count, samples: Count, masks: Count, beta: Probability, delta: Probability
) -> float:
    """Corollary 4.3.1: |L^_PL - L~_PL| at one theta, with probability at least 1 - `delta`.

    (sqrt(2^{3N-1} |Omega|^N / (m delta)) + sqrt(ln(4 / delta) / (2n))) ln(1 / beta), from Lemma 4.3.5 with its own
    eps = sqrt(2^{N-1} |Omega|^N / (m delta)).
    """
    masks_term = _root(3 * sites - 1, vocab_size, sites, 1 / (masks * delta))
    return (masks_term + math.sqrt(math.log(4 / delta) / (2 * samples))) * math.log(1 / beta)


class Deviation(NamedTuple):
    """A distance, and the probability with which it is not exceeded at least; below zero that says nothing."""

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
    """Lemma 4.3.5: |L^_PL - L~_PL| < 2^N eps ln(1/beta) + t / n at one theta, with the probability that it states.

    That is 1 - 2^{N-2} |Omega|^N / (eps^2 m) - 2 exp(-2 t^2 / (n ln^2(1/beta))), for any positive `eps` and `t`.
    """
    margin = math.log(1 / beta)
    risk = 2.0 ** (sites - 2) * float(vocab_size) ** sites / (eps**2 * masks)
    risk += 2 * math.exp(-2 * t**2 / (samples * margin**2))
    return Deviation(2.0**sites * eps * margin + t / samples, 1 - risk)


def _root(twos: int, vocab_size: int, power: int, factor: float) -> float:
    """sqrt(2^twos |Omega|^power factor), infinite where it is beyond a float: a bound that says nothing."""
    log = (twos * math.log(2) + power * math.log(vocab_size) + math.log(factor)) / 2
    return math.exp(log) if log < math.log(sys.float_info.max) else math.inf
