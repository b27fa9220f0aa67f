"""Check that a Markov chain is ergodic, which is possible if all its states can be enumerated."""

import math
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import torch

from trialogue.errors import InputError
from trialogue.oracles import Chain, Energy, Masked, SequenceModel, as_chain, as_model, enumerate_sequences
from trialogue.samplers.chains.conditionals import site_distributions
from trialogue.samplers.exact.chains import chain_ergodicity

CHECKED_STATES = 1024
"""Largest number of states for which a chain is checked."""
_ERGODIC: WeakKeyDictionary[SequenceModel, set[tuple[Chain[Any], int]]] = WeakKeyDictionary()
"""Cache of the chains that are ergodic on a model, with its number of sites. A check may take seconds."""


def require_ergodic_chain(chain: Chain[Any], model: SequenceModel, sites: int, device: torch.device) -> None:
    """Raise `InputError` unless a Markov chain converges to a unique distribution from every start.

    Chains with more than `CHECKED_STATES` states are not checked.

    Args:
        chain: The chain.
        model: The model.
        sites: Number of tokens of a sequence.
        device: Device on which the chain runs.
    """
    checked_model = as_model(model)
    vocab = int(checked_model.vocab_size)
    if sites * math.log(vocab) > math.log(CHECKED_STATES) + 1e-9:
        return
    if as_chain(chain).heat_bath and isinstance(checked_model, Masked | Energy):
        # With positive conditionals, a heat bath may change any site or keep it.
        distributions = site_distributions(checked_model, enumerate_sequences(vocab, sites, device))
        if bool(torch.isfinite(distributions).all()):
            return
    if _has_unique_limit(chain, model, sites):
        return
    ergodicity = chain_ergodicity(chain, model, sites=sites, max_states=CHECKED_STATES, device=device)
    if not ergodicity.ergodic:
        why = (
            f"its {vocab}^{sites} states have {ergodicity.closed_classes} closed classes"
            if ergodicity.closed_classes > 1
            else f"it has period {ergodicity.period}"
        )
        raise InputError(
            "chain",
            chain,
            f"the chain is not ergodic on this model, because {why}; use `Gibbs()`, or blocks if sites cannot change "
            "separately",
        )
    with suppress(TypeError):
        _ERGODIC.setdefault(model, set()).add((chain, sites))


def _has_unique_limit(chain: Chain[Any], model: SequenceModel, sites: int) -> bool:
    try:
        return (chain, sites) in _ERGODIC.get(model, ())
    except TypeError:  # objects without hashes or weak references are not cached
        return False
