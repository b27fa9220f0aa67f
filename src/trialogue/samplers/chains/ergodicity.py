"""Whether a chain may be run: where the states can be listed, one that does not forget its start is refused."""

import math
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import torch

from trialogue.errors import InputError
from trialogue.oracles import Chain, Energy, Masked, SequenceModel, as_chain, as_model, whole_sequences
from trialogue.samplers.chains.conditionals import site_laws
from trialogue.samplers.exact.chains import chain_ergodicity

CHECKED_STATES = 1024
"""Up to so many states, a chain is checked for ergodicity before it runs."""
_ERGODIC: WeakKeyDictionary[SequenceModel, set[tuple[Chain[Any], int]]] = WeakKeyDictionary()
"""Chains that were found ergodic on a model, with its number of sites: a check may take seconds."""


def require_ergodic_chain(chain: Chain[Any], model: SequenceModel, sites: int, device: torch.device) -> None:
    """Raise `InputError` where `chain` on sequences of `sites` tokens has not one distribution in the long run.

    Nothing is said of more than `CHECKED_STATES` states.
    """
    asked = as_model(model)
    vocab = int(asked.vocab_size)
    if sites * math.log(vocab) > math.log(CHECKED_STATES) + 1e-9:
        return
    if as_chain(chain).heat_bath and isinstance(asked, Masked | Energy):
        # Positive conditionals let a heat bath change any site, and leave it as it is.
        distributions = site_laws(asked, whole_sequences(vocab, sites, device))
        if bool(torch.isfinite(distributions).all()):
            return
    if _found_before(chain, model, sites):
        return
    ergodicity = chain_ergodicity(chain, model, sites=sites, max_states=CHECKED_STATES, device=device)
    if not ergodicity.ergodic:
        why = (
            f"its {vocab}^{sites} states fall into {ergodicity.closed_classes} classes that it never leaves"
            if ergodicity.closed_classes > 1
            else f"it comes back to a state only every {ergodicity.period} steps"
        )
        raise InputError(
            "chain",
            chain,
            f"not ergodic on this model: {why}; use the heat bath, `Gibbs()`, or blocks where sites cannot move alone",
        )
    with suppress(TypeError):
        _ERGODIC.setdefault(model, set()).add((chain, sites))


def _found_before(chain: Chain[Any], model: SequenceModel, sites: int) -> bool:
    try:
        return (chain, sites) in _ERGODIC.get(model, ())
    except TypeError:  # not hashable, or without weak references: checked every time
        return False
