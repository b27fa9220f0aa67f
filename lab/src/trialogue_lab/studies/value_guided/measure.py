"""Tasks of a run: one per tree, one per set of outputs, one per trained model."""

from functools import partial

from trialogue_lab.ledger import Part
from trialogue_lab.studies.value_guided.config import Config
from trialogue_lab.studies.value_guided.dyck import measure_dyck
from trialogue_lab.studies.value_guided.long_horizons import measure_long_horizons
from trialogue_lab.studies.value_guided.trees import measure_trees


def parts(config: Config) -> list[Part]:
    """Return one task per random tree, per set of outputs at long horizons, and per trained model."""
    measured = (
        ("trees", measure_trees, config.seeds),
        ("long", measure_long_horizons, config.draw_seeds),
        ("dyck", measure_dyck, config.training_seeds),
    )
    return [
        Part(f"{name}-{seed}", partial(measure, config, seed), columns={"seed": seed})
        for name, measure, seeds in measured
        for seed in seeds
    ]
