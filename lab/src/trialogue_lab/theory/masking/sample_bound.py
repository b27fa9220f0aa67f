"""Theorem 4.1.4 of the thesis and its parts: how far a law learned from conditionals is from the data's, at most.

n samples, each with m masks of its own; beta bounds all conditionals from below, and C_AT is the constant of
approximate tensorization (Definition 4.1.9). L^_PL is the loss over samples and masks, L~_PL its mean over masks.
"""

import math
import sys
from typing import NamedTuple

from trialogue.errors import (
    InputError,
    at_least,
    finite_number,
    non_negative_number,
    positive_number,
    probability,
    whole_number,
)


class SampleBound(NamedTuple):
    """Theorem 4.1.4: TV(p_theta^, p_X) < sqrt(C_AT / 2 (loss + masks_term ln(1/beta) + eps)) + samples_term."""

    bound: float
    masks_term: float
    samples_term: float


def sample_bound(
    *,
    sites: int,
    vocab_size: int,
    samples: int,
    masks: int,
    tensorization: float,
    loss: float,
    beta: float,
    cells: float,
    eps: float,
    delta: float,
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
    for name, count in (("sites", sites), ("vocab_size", vocab_size), ("samples", samples), ("masks", masks)):
        whole_number(name, count, 1)
    _inside("delta", delta)
    _inside("beta", beta)
    tensorization = at_least("tensorization", tensorization, 1 - 1e-12, "C_AT is at least 1")
    loss, eps = non_negative_number("loss", loss), non_negative_number("eps", eps)
    if finite_number("cells", cells) < 1:
        raise InputError("cells", cells, "use a finite number of at least 1")
    masks_term = _root(3 * sites, vocab_size, sites, cells / (masks * delta))
    masks_term += math.sqrt(math.log(8 * cells / delta) / (2 * samples))
    samples_term = empirical_law_bound(sites=sites, vocab_size=vocab_size, samples=samples, delta=delta / 2)
    inside = tensorization / 2 * (loss + masks_term * math.log(1 / beta) + eps)
    return SampleBound(math.sqrt(inside) + samples_term, masks_term, samples_term)


def empirical_law_bound(*, sites: int, vocab_size: int, samples: int, delta: float) -> float:
    """Lemma 4.3.6: TV(p~_X, p_X) < sqrt(|Omega|^{3N} / (16 delta n)) with probability at least 1 - `delta`."""
    for name, count in (("sites", sites), ("vocab_size", vocab_size), ("samples", samples)):
        whole_number(name, count, 1)
    _inside("delta", delta)
    return _root(0, vocab_size, 3 * sites, 1 / (16 * delta * samples))


def mask_average_bound(
    *, sites: int, vocab_size: int, samples: int, masks: int, beta: float, delta: float
) -> float:
    """Corollary 4.3.1: |L^_PL - L~_PL| at one theta, with probability at least 1 - `delta`.

    (sqrt(2^{3N-1} |Omega|^N / (m delta)) + sqrt(ln(4 / delta) / (2n))) ln(1 / beta), from Lemma 4.3.5 with its own
    eps = sqrt(2^{N-1} |Omega|^N / (m delta)).
    """
    for name, count in (("sites", sites), ("vocab_size", vocab_size), ("samples", samples), ("masks", masks)):
        whole_number(name, count, 1)
    _inside("delta", delta)
    _inside("beta", beta)
    masks_term = _root(3 * sites - 1, vocab_size, sites, 1 / (masks * delta))
    return (masks_term + math.sqrt(math.log(4 / delta) / (2 * samples))) * math.log(1 / beta)


class Deviation(NamedTuple):
    """A distance, and the probability with which it is not exceeded at least; below zero that says nothing."""

    distance: float
    probability: float


def mask_average_deviation(
    *, sites: int, vocab_size: int, samples: int, masks: int, beta: float, eps: float, t: float
) -> Deviation:
    """Lemma 4.3.5: |L^_PL - L~_PL| < 2^N eps ln(1/beta) + t / n at one theta, with the probability that it states.

    That is 1 - 2^{N-2} |Omega|^N / (eps^2 m) - 2 exp(-2 t^2 / (n ln^2(1/beta))), for any positive `eps` and `t`.
    """
    for name, count in (("sites", sites), ("vocab_size", vocab_size), ("samples", samples), ("masks", masks)):
        whole_number(name, count, 1)
    _inside("beta", beta)
    eps, t = positive_number("eps", eps), positive_number("t", t)
    margin = math.log(1 / beta)
    risk = 2.0 ** (sites - 2) * float(vocab_size) ** sites / (eps**2 * masks)
    risk += 2 * math.exp(-2 * t**2 / (samples * margin**2))
    return Deviation(2.0**sites * eps * margin + t / samples, 1 - risk)


def _root(twos: int, vocab_size: int, power: int, factor: float) -> float:
    """sqrt(2^twos |Omega|^power factor), infinite where it is beyond a float: a bound that says nothing."""
    log = (twos * math.log(2) + power * math.log(vocab_size) + math.log(factor)) / 2
    return math.exp(log) if log < math.log(sys.float_info.max) else math.inf


def _inside(field: str, value: float) -> None:
    probability(field, value, zero=False, one=False, hint="use a number between 0 and 1")
