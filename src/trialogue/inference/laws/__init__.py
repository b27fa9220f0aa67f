"""Exact laws: what a sampler does, computed instead of sampled, from the very `step` that users run.

Of walks the law of the output and the expected cost, of chains the transition matrix and whether it is ergodic.
"""

from typing import Any, overload

from scipy.sparse import csr_array
from torch import Tensor

from trialogue.errors import InputError
from trialogue.inference.chains.conditionals import Model
from trialogue.inference.laws.chains import Ergodicity, chain_ergodicity, chain_transitions, ergodicity
from trialogue.inference.laws.walks import Law, exact_law, target_law, total_variation, walk_transitions
from trialogue.inference.walks.walk import Walk
from trialogue.oracles import Autoregressive, Chain


@overload
def transition_matrix(
    sampler: Chain[Any], model: Model, *, sites: int | None = None, max_states: int = 4096
) -> Tensor: ...


@overload
def transition_matrix(
    sampler: Walk[Any], model: Autoregressive, *args: Any, **settings: Any
) -> tuple[list[tuple[int, ...]], csr_array]: ...


def transition_matrix(sampler: Any, model: Any, *args: Any, **settings: Any) -> Any:
    """The transitions of a chain (`chain_transitions`: a dense matrix) or of a walk (`walk_transitions`: sparse)."""
    if isinstance(sampler, type):
        raise InputError("sampler", sampler.__name__, f"give an instance: {sampler.__name__}()")
    if not isinstance(sampler, Walk | Chain):
        raise InputError(
            "sampler", sampler, "give a chain, such as Gibbs(), or a walk, such as ValueGuided()"
        )
    if isinstance(sampler, Walk):
        return walk_transitions(sampler, model, *args, **settings)
    return chain_transitions(sampler, model, *args, **settings)


__all__ = [
    "Ergodicity",
    "Law",
    "chain_ergodicity",
    "chain_transitions",
    "ergodicity",
    "exact_law",
    "target_law",
    "total_variation",
    "transition_matrix",
    "walk_transitions",
]
