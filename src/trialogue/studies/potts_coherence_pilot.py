"""The pilot of the study `potts-coherence`.

Claims and thresholds were fixed before the reported run; the pilot is a run of the preset `default` on other seeds.
"""

from trialogue.ledger.replication import Replication

PILOT_SEEDS = (100, 101, 102, 103, 104, 105, 106, 107)
PILOT: dict[str, tuple[float, ...]] = {
    "drawn-as-computed": (0.00375, 0.01113, 0.00722, 0.00158, 0.00636, -0.01057, -0.00059, -0.00797),
    "pattern-left-by-gibbs": (0.00245, 0.00592, 0.00419, 0.00028, 0.00505, 0.012, -0.00232, 0.00592),
    "walls-appear-through-the-crossing-length": (
        0.85547,
        0.89453,
        0.88672,
        0.89062,
        0.89062,
        0.86719,
        0.87891,
        0.89062,
    ),
    "ten-crossing-lengths": (1.0, 0.99609, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    "order-survives-in-the-plane": (0.00324, 0.00209, 0.0012, 0.00176, 0.00089, 0.00435, 0.00132, 0.001),
    "order-does-not-shrink-with-size": (
        0.00185,
        0.00249,
        0.00011,
        0.00136,
        0.00064,
        0.00632,
        0.00272,
        0.00194,
    ),
    "order-is-lost-above": (0.02122, 0.01411, 0.0038, 0.0352, 0.01271, 0.02121, 0.00795, 0.00581),
    "the-ring-loses-order-where-the-plane-keeps-it": (
        0.00827,
        0.00813,
        0.00537,
        0.0183,
        0.01591,
        0.01047,
        0.00885,
        0.00945,
    ),
}
"""Estimates of every claim with replications from the pilot, one per seed of `PILOT_SEEDS`."""
EQUAL = 1e-10
"""Numbers that are the same but for rounding."""
LAW = 1e-12
"""Total variation of laws that are the same but for rounding."""

DRAWS = Replication(unit="draw", count=10, pilot_seeds=PILOT_SEEDS, pilot=PILOT)
