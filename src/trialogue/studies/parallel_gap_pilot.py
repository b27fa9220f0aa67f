"""The pilot of the study `parallel-gap`.

Claims and thresholds were fixed before the reported run; the pilot is a run of the preset `default` on other seeds.
"""

from trialogue.ledger.replication import Replication

PILOT: dict[str, tuple[float, ...]] = {
    "one-step-against-many-simulated": (0.09, 0.095, 0.085, 0.085, 0.085, 0.08, 0.1, 0.1),
    "parallel-stays-away-simulated": (0, 0, 0, 0, 0, 0, 0, 0),
    "hits-in-time-simulated": (0.095, 0.085, 0.09, 0.08, 0.1, 0.085, 0.08, 0.095),
    "simulated-as-computed": (
        -3.754e-05,
        -0.002538,
        0.003712,
        -0.0008709,
        0.007046,
        -0.01045,
        0.002462,
        0.001629,
    ),
    "networks-reach-the-best-product": (3.315e-05, 7.194e-05, 6.113e-05, 0.0001589),
    "networks-are-far-in-variation": (0.08058, 0.08058, 0.08057, 0.0805),
    "networks-can-imitate-products": (0.001022, 0.0003432, 0.0003725, 0.0002669),
    "networks-lose-the-modes": (0.875, 0.875, 0.875, 0.875),
}
"""Estimates of every claim with replications from the pilot, one per seed of its unit."""

DRAWS = Replication(unit="draw", count=20, pilot_seeds=tuple(range(100, 108)), pilot=PILOT)
TRAININGS = Replication(unit="training", count=6, pilot_seeds=tuple(range(100, 104)), pilot=PILOT)
ROUNDING = -1e-9
"""Differences of probabilities and divergences above this count as not negative."""
