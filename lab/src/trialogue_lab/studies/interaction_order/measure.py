"""Tasks of a run: one per small distribution, and one per large distribution."""

from functools import partial

from trialogue_lab.ledger import Part
from trialogue_lab.studies.interaction_order.config import Config
from trialogue_lab.studies.interaction_order.large import measure_large
from trialogue_lab.studies.interaction_order.small import measure_small


def parts(config: Config) -> list[Part]:
    """Return one task per small distribution, and one per distribution of the published size."""
    measured = (("small", measure_small, config.seeds), ("large", measure_large, config.large_seeds))
    return [
        Part(f"{name}-{seed}", partial(measure, config, seed), columns={"seed": seed})
        for name, measure, seeds in measured
        for seed in seeds
    ]
