"""Walks and chains by name: those of the package, and those that installed packages register.

A package adds one by an entry point of the group `trialogue.walks` or `trialogue.chains`, whose name is that of the
walk or chain and whose value is its class.
"""

from typing import TYPE_CHECKING, Any

from trialogue.registry import Registry

if TYPE_CHECKING:
    from trialogue.inference.walks.walk import Walk
    from trialogue.oracles import Chain

WALKS: "Registry[type[Walk[Any]]]" = Registry(
    "trialogue.walks",
    "walk",
    {
        "ancestral": "trialogue.inference.walks.ancestral:Ancestral",
        "rejection": "trialogue.inference.walks.rejection:Rejection",
        "outcome-rejection": "trialogue.inference.walks.rejection:OutcomeRejection",
        "best-of-n": "trialogue.inference.walks.best_of_n:BestOfN",
        "block-best-of-n": "trialogue.inference.walks.block_best_of_n:BlockBestOfN",
        "tokenwise-rejection": "trialogue.inference.walks.rejection:TokenwiseRejection",
        "backtracking": "trialogue.inference.walks.backtracking:Backtracking",
        "smc": "trialogue.inference.walks.sequential_monte_carlo:SequentialMonteCarlo",
        "weighted-rejection": "trialogue.inference.walks.weighted_rejection:WeightedRejection",
        "action-level": "trialogue.inference.walks.action_level:ActionLevel",
        "value-guided": "trialogue.inference.walks.value_guided:ValueGuided",
        "block-value-guided": "trialogue.inference.walks.block_value_guided:BlockValueGuided",
        "stationary-value-guided": "trialogue.inference.walks.value_guided:StationaryValueGuided",
    },
)
"""Every walk by its name on the command line."""

CHAINS: "Registry[type[Chain[Any]]]" = Registry(
    "trialogue.chains",
    "chain",
    {
        "gibbs": "trialogue.inference.chains.gibbs:Gibbs",
        "block-gibbs": "trialogue.inference.chains.gibbs:BlockGibbs",
        "block-dynamics": "trialogue.inference.chains.gibbs:BlockDynamics",
        "adaptive-block-dynamics": "trialogue.inference.chains.gibbs:AdaptiveBlockDynamics",
        "independent-parallel": "trialogue.inference.chains.parallel:IndependentParallel",
        "metropolis": "trialogue.inference.chains.metropolis:Metropolis",
        "masked-metropolis": "trialogue.inference.chains.masked_metropolis:MaskedMetropolis",
        "refinement": "trialogue.inference.chains.refinement:Refinement",
    },
)
"""Every chain by its name."""
