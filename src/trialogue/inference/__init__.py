"""How sequences are drawn from what was learned: walks, chains, verifiers, truncation, and exact laws."""

from trialogue.inference.chains.engine import ChainRun, HittingTimes, hitting_times, run_chain
from trialogue.inference.chains.gibbs import AdaptiveBlockDynamics, BlockDynamics, BlockGibbs, Gibbs
from trialogue.inference.chains.metropolis import Metropolis
from trialogue.inference.chains.parallel import ChainRule, IndependentParallel
from trialogue.inference.importance import (
    effective_sample_size,
    effective_sample_sizes,
    log_accepted_masses,
    resampled,
)
from trialogue.inference.simulation.contexts import window_contexts
from trialogue.inference.simulation.sweeps import run_sweeps
from trialogue.inference.truncation import Truncated, truncated
from trialogue.inference.verifiers import (
    All,
    FunctionVerifier,
    GrammarVerifier,
    ProbeVerifier,
    Product,
    RandomVerifier,
    TextVerifier,
    Threshold,
    as_verifier,
    python_verifier,
)
from trialogue.inference.walks.ancestral import Ancestral
from trialogue.inference.walks.backtracking import Backtracking
from trialogue.inference.walks.best_of_n import BestOfN
from trialogue.inference.walks.block_best_of_n import BlockBestOfN
from trialogue.inference.walks.engine import generate
from trialogue.inference.walks.rejection import Rejection, TokenwiseRejection
from trialogue.inference.walks.samples import Samples, Trace
from trialogue.inference.walks.sequential_monte_carlo import SequentialMonteCarlo
from trialogue.inference.walks.value_guided import ValueGuided
from trialogue.inference.walks.values import values
from trialogue.inference.walks.walk import Walk
from trialogue.inference.walks.weighted_rejection import WeightedRejection
from trialogue.oracles import next_log_probs

WALKS = {
    "ancestral": Ancestral,
    "rejection": Rejection,
    "best-of-n": BestOfN,
    "block-best-of-n": BlockBestOfN,
    "tokenwise-rejection": TokenwiseRejection,
    "backtracking": Backtracking,
    "smc": SequentialMonteCarlo,
    "weighted-rejection": WeightedRejection,
    "value-guided": ValueGuided,
}
"""Every walk by its name."""

CHAINS = {
    "gibbs": Gibbs,
    "block-gibbs": BlockGibbs,
    "block-dynamics": BlockDynamics,
    "adaptive-block-dynamics": AdaptiveBlockDynamics,
    "independent-parallel": IndependentParallel,
    "metropolis": Metropolis,
}
"""Every chain by its name."""

__all__ = [
    "CHAINS",
    "WALKS",
    "AdaptiveBlockDynamics",
    "All",
    "Ancestral",
    "Backtracking",
    "BestOfN",
    "BlockBestOfN",
    "BlockDynamics",
    "BlockGibbs",
    "ChainRule",
    "ChainRun",
    "FunctionVerifier",
    "Gibbs",
    "GrammarVerifier",
    "HittingTimes",
    "IndependentParallel",
    "Metropolis",
    "ProbeVerifier",
    "Product",
    "RandomVerifier",
    "Rejection",
    "Samples",
    "SequentialMonteCarlo",
    "TextVerifier",
    "Threshold",
    "TokenwiseRejection",
    "Trace",
    "Truncated",
    "ValueGuided",
    "Walk",
    "WeightedRejection",
    "as_verifier",
    "effective_sample_size",
    "effective_sample_sizes",
    "generate",
    "hitting_times",
    "log_accepted_masses",
    "next_log_probs",
    "python_verifier",
    "resampled",
    "run_chain",
    "run_sweeps",
    "truncated",
    "values",
    "window_contexts",
]
