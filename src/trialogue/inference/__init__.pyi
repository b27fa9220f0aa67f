from .chains.engine import (
    ChainRun as ChainRun,
)
from .chains.engine import (
    HittingTimes as HittingTimes,
)
from .chains.engine import (
    hitting_times as hitting_times,
)
from .chains.engine import (
    run_chain as run_chain,
)
from .chains.gibbs import (
    AdaptiveBlockDynamics as AdaptiveBlockDynamics,
)
from .chains.gibbs import (
    BlockDynamics as BlockDynamics,
)
from .chains.gibbs import (
    BlockGibbs as BlockGibbs,
)
from .chains.gibbs import (
    Gibbs as Gibbs,
)
from .chains.metropolis import Metropolis as Metropolis
from .chains.parallel import (
    ChainRule as ChainRule,
)
from .chains.parallel import (
    IndependentParallel as IndependentParallel,
)
from .importance import (
    effective_sample_size as effective_sample_size,
)
from .importance import (
    effective_sample_sizes as effective_sample_sizes,
)
from .importance import (
    log_accepted_masses as log_accepted_masses,
)
from .importance import (
    resampled as resampled,
)
from .registered import (
    CHAINS as CHAINS,
)
from .registered import (
    WALKS as WALKS,
)
from .simulation.sweeps import run_sweeps as run_sweeps
from .truncation import (
    Truncated as Truncated,
)
from .truncation import (
    truncated as truncated,
)
from .verifiers import (
    All as All,
)
from .verifiers import (
    FunctionVerifier as FunctionVerifier,
)
from .verifiers import (
    GrammarVerifier as GrammarVerifier,
)
from .verifiers import (
    ProbeVerifier as ProbeVerifier,
)
from .verifiers import (
    Product as Product,
)
from .verifiers import (
    RandomVerifier as RandomVerifier,
)
from .verifiers import (
    TextVerifier as TextVerifier,
)
from .verifiers import (
    Threshold as Threshold,
)
from .verifiers import (
    python_verifier as python_verifier,
)
from .walks.ancestral import Ancestral as Ancestral
from .walks.backtracking import Backtracking as Backtracking
from .walks.best_of_n import BestOfN as BestOfN
from .walks.block_best_of_n import BlockBestOfN as BlockBestOfN
from .walks.engine import generate as generate
from .walks.rejection import (
    Rejection as Rejection,
)
from .walks.rejection import (
    TokenwiseRejection as TokenwiseRejection,
)
from .walks.samples import (
    Samples as Samples,
)
from .walks.samples import (
    Trace as Trace,
)
from .walks.sequential_monte_carlo import SequentialMonteCarlo as SequentialMonteCarlo
from .walks.value_guided import ValueGuided as ValueGuided
from .walks.weighted_rejection import WeightedRejection as WeightedRejection
