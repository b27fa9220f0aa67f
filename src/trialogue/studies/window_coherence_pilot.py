"""The pilot of the study `window-coherence`.

Claims and thresholds were fixed before the reported run; the pilot is a run of the preset `default` on other seeds.
After it one claim about all windows became two, since what a window of more than a period gains differs from training
to training.
"""

from trialogue.ledger.replication import Replication

PILOT_SEEDS = (100, 101, 102, 103)
PILOT: dict[str, tuple[float, ...]] = {
    "text-has-the-exact-law": (0.0238775, -0.00303216, 0.015572, -0.00807602),
    "longer-windows-stay-longer": (0.647379, 0.637429, 0.642571, 0.594517),
    "beyond-a-period-stays-longer": (-0.184482, 0.371935, -0.100569, 0.515109),
    "colder-stays-longer": (1.86953, 1.82676, 1.85579, 1.75839),
    "cold-does-not-help-a-window-that-cannot-tell": (-0.0101769, -0.00875166, -0.00981976, -0.00970109),
    "networks-leave-faster-than-the-best": (0.767488, 0.812574, 0.813468, 0.813629),
    "sliding-attention-is-a-window": (1.43454, 1.31539, 1.33298, 1.38518),
    "unlimited-attention-stays-longer": (0.955, 0.936, 0.963, 0.927),
    "unlimited-attention-is-as-coherent-as-the-corpus": (-0.00135857, -0.00135857, -0.00235857, 0.000641425),
    "greedy-decoding-stays": (1.0, 1.0, 1.0, 1.0),
}
"""Estimates of every claim with replications from the pilot, one per seed of `PILOT_SEEDS`."""

TRAININGS = Replication(unit="training", count=6, pilot_seeds=PILOT_SEEDS, pilot=PILOT)
