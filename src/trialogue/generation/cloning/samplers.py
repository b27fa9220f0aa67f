"""Markov chains that sample clones: Gibbs sampling, the published Metropolis chain, and corrections of it.

The published chain uses the sum of raw logits of masked positions as its energy. For interactions of k
tokens, this is k times the correct energy, so that the sampled distribution is too sharp. It also changes if
a constant is added to the logits of a position. See `MaskedMetropolis`.
"""

from typing import Any, Literal, get_args

from trialogue.errors import require_choice
from trialogue.oracles import Chain
from trialogue.samplers import Gibbs, MaskedMetropolis

Sampler = Literal["gibbs", "metropolis", "metropolis-by-order", "metropolis-normalised"]
"""Gibbs, or Metropolis on raw scores (as published), on raw scores divided by the order, or on log-probabilities."""
SAMPLERS: tuple[str, ...] = get_args(Sampler)

SCORE = MaskedMetropolis()
"""The published chain, whose energy measures the progress of chains without an energy."""


def make_chain(sampler: str, max_order: int) -> Chain[Any]:
    """Create the Markov chain that the option `--sampler` of `trialogue clone` names.

    Args:
        sampler: "gibbs", or a Metropolis chain on raw scores ("metropolis"), on raw scores divided by the order
            ("metropolis-by-order"), or on log-probabilities ("metropolis-normalised").
        max_order: Maximum order of the interactions of the network, used by "metropolis-by-order".

    Raises:
        InputError: If the name is unknown.
    """
    require_choice("sampler", sampler, SAMPLERS)
    if sampler == "gibbs":
        return Gibbs()
    if sampler == "metropolis-by-order":
        return MaskedMetropolis(bodies=max_order)
    return MaskedMetropolis("normalised") if sampler == "metropolis-normalised" else SCORE
