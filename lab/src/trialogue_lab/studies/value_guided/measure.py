"""Tasks of a run: random models, long sequences, and trained models of Dyck strings."""

from trialogue_lab.ledger import Part, parts_by_seed
from trialogue_lab.studies.value_guided.config import Config
from trialogue_lab.studies.value_guided.dyck import measure_dyck
from trialogue_lab.studies.value_guided.long_horizons import measure_long_horizons
from trialogue_lab.studies.value_guided.trees import measure_trees


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, which measure samplers that are guided by values of prefixes.

    Args:
        config: Settings of the run.

    Returns:
        One task per seed of each experiment: random models with exact distributions, sequences too long for
            enumeration, and trained models of Dyck strings (balanced brackets).
    """
    return [
        *parts_by_seed(config, config.seeds, trees=measure_trees),
        *parts_by_seed(config, config.draw_seeds, long=measure_long_horizons),
        *parts_by_seed(config, config.training_seeds, dyck=measure_dyck),
    ]
