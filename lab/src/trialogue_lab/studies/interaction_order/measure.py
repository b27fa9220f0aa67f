"""Tasks of a run, one per small or large random distribution."""

from trialogue_lab.ledger import Part, parts_by_seed
from trialogue_lab.studies.interaction_order.config import Config
from trialogue_lab.studies.interaction_order.large import measure_large
from trialogue_lab.studies.interaction_order.small import measure_small


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, one for each random distribution of token sequences.

    Each task trains networks to predict masked tokens, and measures in which order they learn interactions of two,
    three and four tokens. The sequences of small distributions are enumerated. Large distributions have the published
    size, and their sequences are sampled.

    Args:
        config: Settings of the run.
    """
    small = parts_by_seed(config, config.seeds, small=measure_small)
    return small + parts_by_seed(config, config.large_seeds, large=measure_large)
