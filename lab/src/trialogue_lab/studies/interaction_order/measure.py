"""Tasks of a run: one per small distribution, and one per large distribution."""

from trialogue_lab.ledger import Part, parts_by_seed
from trialogue_lab.studies.interaction_order.config import Config
from trialogue_lab.studies.interaction_order.large import measure_large
from trialogue_lab.studies.interaction_order.small import measure_small


def parts(config: Config) -> list[Part]:
    """Return one task per random distribution of the tokens.

    The first tasks use small distributions, whose sequences are enumerated. The others sample sequences of
    distributions of the published size.

    Args:
        config: Settings of the run.
    """
    small = parts_by_seed(config, config.seeds, small=measure_small)
    return small + parts_by_seed(config, config.large_seeds, large=measure_large)
