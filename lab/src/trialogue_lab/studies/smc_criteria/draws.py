"""Outputs of the sequential Monte Carlo of the library, on sequences of fair coin tosses that cannot be enumerated."""

from pathlib import Path

from trialogue.data import Table
from trialogue.randomness import derive_seed
from trialogue.samplers import SequentialMonteCarlo, generate
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.studies.smc_criteria.config import Config
from trialogue_lab.studies.smc_criteria.products import compute_selected_share
from trialogue_lab.studies.value_guided.long_horizons import ProductValues

EVERY_STEP, HALF = 1.0, 0.5
"""Shares of the particles below which the effective sample size must fall for resampling."""


def measure_draws(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Sample sequences of fair coin tosses by sequential Monte Carlo with perfect values.

    Particles are resampled after every token, or only if the effective sample size is small.

    Args:
        config: Settings of the run.
        seed: Seed of the outputs.

    Yields:
        One row per threshold of the effective sample size. `share` is the share of token 0 in the outputs, and `target`
        is its share in the target. `computed` is the exact share for resampling after every token.
    """
    coins = Table(lambda _: (0.5, 0.5), 2, max_length=config.draw_length, memory=0)
    target = (1 + config.tilt) / 2
    for threshold in (EVERY_STEP, HALF):
        samples = generate(
            coins,
            sampler=SequentialMonteCarlo(config.draw_particles, ess_threshold=threshold),
            verifier=ProductValues(config.tilt),
            num_samples=config.draws,
            seed=derive_seed(seed, "smc-criteria", str(threshold)),
            memory=1 << 20,
        )
        yield {
            "kind": "draws",
            "threshold": threshold,
            "share": float((samples.tokens == 0).double().mean()),
            "computed": compute_selected_share(config.draw_particles, 0.5, target),
            "target": target,
        }
