"""Transition matrices of chains and samplers."""

from typing import Any, overload

from scipy.sparse import csr_array
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, Chain, SequenceModel
from trialogue.samplers.exact.chains import chain_transitions
from trialogue.samplers.exact.prefix_samplers import sampler_transitions
from trialogue.samplers.prefix.contract.sampler import Sampler


@overload
def transition_matrix(
    sampler: Chain[Any], model: SequenceModel, *, sites: int | None = None, max_states: int = 4096
) -> Tensor: ...


@overload
def transition_matrix(
    sampler: Sampler[Any], model: Autoregressive, *args: Any, **settings: Any
) -> tuple[list[tuple[int, ...]], csr_array]: ...


def transition_matrix(sampler: Any, model: Any, *args: Any, **settings: Any) -> Any:
    """Return the transition matrix of a chain or of a sampler, which contains the probability of each step.

    The function calls `chain_transitions` for a chain and `sampler_transitions` for a sampler.

    Args:
        sampler: The chain or the sampler.
        model: The model.
        *args: Other positional arguments of the two functions.
        **settings: Keyword arguments of the two functions.

    Returns:
        For a chain, a dense matrix (states, states) float64. For a sampler, a pair of a list of the states (prefixes)
        and a sparse matrix (states, states). Entry (x, y) is the probability of moving from x to y in one step.

    Raises:
        InputError: If `sampler` is neither a chain nor a sampler, or one of the two functions raises it.

    Example:
        >>> from trialogue import transition_matrix
        >>> from trialogue.data import Ising
        >>> from trialogue.samplers import Gibbs
        >>> transition_matrix(Gibbs(), Ising.clique(2, 2, 0.4, 0.0))
        tensor([[0.6900, 0.1550, 0.1550, 0.0000],
                [0.3450, 0.3100, 0.0000, 0.3450],
                [0.3450, 0.0000, 0.3100, 0.3450],
                [0.0000, 0.1550, 0.1550, 0.6900]], dtype=torch.float64)
    """
    if isinstance(sampler, type):
        raise InputError("sampler", sampler.__name__, f"give an instance: {sampler.__name__}()")
    if not (hasattr(sampler, "init") and hasattr(sampler, "step")):
        hint = "give a chain, such as Gibbs(), or a sampler, such as ValueGuided()"
        raise InputError("sampler", sampler, hint)
    if isinstance(sampler, Sampler):
        return sampler_transitions(sampler, model, *args, **settings)
    return chain_transitions(sampler, model, *args, **settings)
