"""Tasks of a run: for each seed, the trained value matrices of Figures 2.2, 2.5 and 2.6."""

from pathlib import Path

from trialogue_lab.ledger import MeasuredRows, Part, parts_by_seed
from trialogue_lab.studies.topic_training import config as training
from trialogue_lab.studies.topic_training import measure as topic_training
from trialogue_lab.studies.topic_training.matrices import compute_entry_means, list_entries
from trialogue_lab.studies.topic_values.config import Config

WITH_L2, WITHOUT_L2, WITH_ATTENTION = "with L2", "without L2", "with attention"
USUAL_WEIGHTS = "without L2, usual initial weights"
ARMS = (WITH_L2, WITHOUT_L2, WITH_ATTENTION, USUAL_WEIGHTS)


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, one for each seed.

    Each task trains value matrices of a transformer, from several initial weights, on one set of documents of a topic
    model, and measures their entries.

    Args:
        config: Settings of the run.
    """
    return parts_by_seed(config, config.seeds, values=_measure_values)


def _measure_values(config: Config, seed: int, _: Path) -> MeasuredRows:
    settings = training.Config(**config.shared(training.Config))
    model = topic_training.make_topic_model(settings)
    for arm in ARMS:
        run = topic_training.TopicTraining(
            "values",
            arm,
            "squared",
            "sgd",
            config.rate,
            config.steps,
            config.penalty if arm == WITH_L2 else 0.0,
            topic_training.ONE_HOT if arm == WITH_ATTENTION else topic_training.VALUES_ONLY,
        )
        deviation = config.library_deviation if arm == USUAL_WEIGHTS else config.deviation
        network, row = topic_training.train_network(settings, run, seed, deviation=deviation)
        yield row | {"deviation": deviation} | compute_entry_means(network.values[0], model)
        if seed == config.seeds[0]:
            yield from ({**run.columns(), **line} for line in list_entries(network.values[0]))
