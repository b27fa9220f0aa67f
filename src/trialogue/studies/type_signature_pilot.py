"""The pilot of the study `type-signature`: estimates of its claims on other seeds.

Claims and thresholds were fixed before the reported run; the pilot is a run of the preset `default` on these seeds.
"""

from trialogue.ledger.replication import Replication

COST_SEEDS = tuple(range(100, 110))
TRAINING_SEEDS = (100, 101, 102, 103)
PILOT: dict[str, tuple[float, ...]] = {
    "trial-division-is-exponential": (1.007, 1.016, 1.007, 1.021, 1.009, 1.019, 1.012, 1.008, 1.005, 1.008),
    "rho-is-exponential": (0.5114, 0.5292, 0.4841, 0.5151, 0.5071, 0.5072, 0.5062, 0.489, 0.5308, 0.4997),
    "factors-first-is-cheap": (
        0.0929,
        0.1245,
        0.1057,
        0.1254,
        0.0735,
        0.1028,
        0.1144,
        0.0815,
        0.1062,
        0.1084,
    ),
    "networks-can-learn-small-tuples": (0.992, 0.992, 0.992, 0.992),
    "networks-do-better-factors-first": (0.412, 0.426, 0.41, 0.441),
    "networks-do-better-with-a-hidden-stream": (0.447, 0.452, 0.429, 0.536),
    "a-hidden-stream-is-no-worse-than-the-easy-order": (0.035, 0.026, 0.019, 0.095),
    "three-digits-are-closer-factors-first": (0.6496, 0.289, 0.5695, 0.5006),
    "three-digits-are-closer-with-a-hidden-stream": (-0.8899, -0.9728, -0.646, -0.2698),
}
"""Estimates of every claim with replications, one per seed: of `TRAINING_SEEDS`, or of `COST_SEEDS`."""

COSTS = Replication(unit="draw", count=10, pilot_seeds=COST_SEEDS, pilot=PILOT)
TRAININGS = Replication(unit="training", count=7, pilot_seeds=TRAINING_SEEDS, pilot=PILOT)
