"""Registries of samplers and chains by name.

A package registers a class by an entry point in the group `trialogue.samplers`, `trialogue.chains` or
`trialogue.unmasking`. The name of the entry point is the name of the sampler or chain, and its value is the class.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trialogue.registry import Registry

if TYPE_CHECKING:
    from trialogue.oracles import Chain
    from trialogue.samplers.prefix.contract.sampler import Sampler
    from trialogue.samplers.unmasking.contract import Unmasking

SAMPLERS: "Registry[type[Sampler[Any]]]" = Registry(
    "trialogue.samplers",
    "sampler",
    {
        "ancestral": "trialogue.samplers.prefix.ancestral:Ancestral",
        "rejection": "trialogue.samplers.prefix.rejection:Rejection",
        "exact": "trialogue.samplers.prefix.adaptive_rejection:AdaptiveRejection",
        "outcome-rejection": "trialogue.samplers.prefix.rejection:OutcomeRejection",
        "best-of-n": "trialogue.samplers.prefix.best_of_n:BestOfN",
        "block-best-of-n": "trialogue.samplers.prefix.block_best_of_n:BlockBestOfN",
        "masked-decoding": "trialogue.samplers.prefix.masked_decoding:MaskedDecoding",
        "tokenwise-rejection": "trialogue.samplers.prefix.rejection:TokenwiseRejection",
        "backtracking": "trialogue.samplers.prefix.backtracking:Backtracking",
        "smc": "trialogue.samplers.prefix.sequential_monte_carlo:SequentialMonteCarlo",
        "power-metropolis": "trialogue.samplers.prefix.power_metropolis:PowerMetropolis",
        "weighted-rejection": "trialogue.samplers.prefix.weighted_rejection:WeightedRejection",
        "action-level": "trialogue.samplers.prefix.action_level:ActionLevel",
        "value-guided": "trialogue.samplers.prefix.value_guided:ValueGuided",
        "block-value-guided": "trialogue.samplers.prefix.block_value_guided:BlockValueGuided",
        "stationary-value-guided": "trialogue.samplers.prefix.value_guided:StationaryValueGuided",
    },
)
"""Samplers by their names on the command line."""

CHAINS: "Registry[type[Chain[Any]]]" = Registry(
    "trialogue.chains",
    "chain",
    {
        "gibbs": "trialogue.samplers.chains.gibbs:Gibbs",
        "block-gibbs": "trialogue.samplers.chains.gibbs:BlockGibbs",
        "block-dynamics": "trialogue.samplers.chains.gibbs:BlockDynamics",
        "adaptive-block-dynamics": "trialogue.samplers.chains.gibbs:AdaptiveBlockDynamics",
        "independent-parallel": "trialogue.samplers.chains.parallel:IndependentParallel",
        "metropolis": "trialogue.samplers.chains.metropolis:Metropolis",
        "masked-metropolis": "trialogue.samplers.chains.masked_metropolis:MaskedMetropolis",
        "refinement": "trialogue.samplers.chains.refinement:Refinement",
    },
)
"""Chains by name."""

UNMASKING: "Registry[Callable[..., Unmasking[Any]]]" = Registry(
    "trialogue.unmasking",
    "sampler",
    {
        "random": "trialogue.samplers.unmasking.named:random",
        "left-to-right": "trialogue.samplers.unmasking.named:left_to_right",
        "confidence": "trialogue.samplers.unmasking.named:confidence",
        "entropy": "trialogue.samplers.unmasking.named:entropy",
        "margin": "trialogue.samplers.unmasking.named:margin",
        "draw-then-select": "trialogue.samplers.unmasking.named:draw_then_select",
        "remdm": "trialogue.samplers.unmasking.remasking:ReMDM",
    },
)
"""Functions and classes that create unmasking samplers, by name."""
