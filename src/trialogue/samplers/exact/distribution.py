"""Function `exact_distribution`, which accepts every kind of sampler with an output distribution."""

from typing import Any, overload

from trialogue.oracles import Autoregressive, Masked
from trialogue.samplers.exact.prefix_samplers import ExactDistribution, prefix_distribution
from trialogue.samplers.exact.unmasking import UnmaskingDistribution, unmasking_distribution
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.samplers.unmasking.contract import Unmasking


@overload
def exact_distribution(sampler: Unmasking[Any], model: Masked, **settings: Any) -> UnmaskingDistribution: ...


@overload
def exact_distribution(
    sampler: Sampler[Any], model: Autoregressive, *args: Any, **settings: Any
) -> ExactDistribution: ...


def exact_distribution(sampler: Any, model: Any, *args: Any, **settings: Any) -> Any:
    """Compute the output distribution and the expected cost of a sampler, without sampling.

    The function calls `prefix_distribution` for a sampler of an autoregressive model, and `unmasking_distribution` for
    a sampler that reveals masked positions.

    Args:
        sampler: The sampler.
        model: A small model: autoregressive, or masked for an unmasking sampler.
        *args: The verifier of a sampler of an autoregressive model.
        **settings: Keyword arguments of the two functions.

    Returns:
        Probabilities of the outputs, and the expected cost.

    Raises:
        InputError: If one of the two functions raises it.

    Example:
        >>> from trialogue import exact_distribution
        >>> from trialogue.data import Ising
        >>> from trialogue.samplers.unmasking import Confidence, Fixed, Ordered
        >>> exact = exact_distribution(Ordered(Confidence(), Fixed(2)), Ising.clique(4, 3, 0.4, 0.0))
        >>> exact.expected_passes
        2.0
    """
    if isinstance(sampler, Unmasking):
        return unmasking_distribution(sampler, model, *args, **settings)
    return prefix_distribution(sampler, model, *args, **settings)
