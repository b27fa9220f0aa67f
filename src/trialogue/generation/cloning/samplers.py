"""The samplers of clones: the published chain on masked scores, its corrections, and Gibbs.

Section A.3 of the document on the distributional simplicity bias samples exp(-E), E the sum of raw logits of masked
sites. Where conditionals are those of a distribution of k bodies that is k times its energy, a sharpened distribution,
and where the gauge of the logits is another, another distribution: `MaskedMetropolis`.
"""

from typing import Any, Literal, get_args

from trialogue.errors import one_of
from trialogue.oracles import Chain
from trialogue.samplers import Gibbs, MaskedMetropolis

Sampler = Literal["gibbs", "metropolis", "metropolis-by-order", "metropolis-normalised"]
"""Gibbs; Metropolis on raw scores, as published; on these over the number of bodies; on log-probabilities."""
SAMPLERS: tuple[str, ...] = get_args(Sampler)

SCORE = MaskedMetropolis()
"""Whose energy tells of every sampler how far it has come: the published one."""


def chain_of(sampler: str, max_order: int) -> Chain[Any]:
    """The chain of that name on a network of interactions of at most `max_order` bodies.

    Raises `InputError` for another name.
    """
    one_of("sampler", sampler, SAMPLERS)
    if sampler == "gibbs":
        return Gibbs()
    if sampler == "metropolis-by-order":
        return MaskedMetropolis(bodies=max_order)
    return MaskedMetropolis("normalised") if sampler == "metropolis-normalised" else SCORE
