"""Tasks of a run: for each seed, networks trained by SGD and cross-entropy with scaled inputs."""

from pathlib import Path

from trialogue_lab.ledger import MeasuredRows, Part, parts_by_seed
from trialogue_lab.studies.topic_sgd.config import FIGURE_RATE, Config
from trialogue_lab.studies.topic_training import config as training
from trialogue_lab.studies.topic_training import measure as topic_training
from trialogue_lab.studies.topic_training.attention import compute_attention_by_class
from trialogue_lab.studies.topic_training.matrices import compute_entry_means

VALUES_ALONE = "values alone"


def arm_with_attention(rate: float) -> str:
    """Return the name of the training of values and attention at a learning rate.

    Args:
        rate: Learning rate, as printed.
    """
    return f"with attention, {rate:g}"


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, one for each seed.

    Each task trains transformers with one layer on one set of documents of a topic model, by SGD and cross-entropy. It
    measures the entries of their value matrices and their attention within and between topics.

    Args:
        config: Settings of the run.
    """
    return parts_by_seed(config, config.seeds, sgd=_measure_trainings)


def _measure_trainings(config: Config, seed: int, _: Path) -> MeasuredRows:
    settings = training.Config(**config.shared(training.Config))
    model = topic_training.make_topic_model(settings)
    tests = topic_training.sample_documents(settings, seed)[1]
    scale = config.input_scale
    arms = {VALUES_ALONE: (FIGURE_RATE, topic_training.VALUES_ONLY)}
    arms |= {arm_with_attention(rate): (rate, topic_training.ONE_HOT) for rate in config.rates}
    for arm, (rate, shape) in arms.items():
        run = topic_training.TopicTraining(
            "sgd", arm, "CE", "sgd", rate * scale**2, config.steps, network=shape
        )
        network, row = topic_training.train_network(settings, run, seed, deviation=config.deviation * scale)
        attended = compute_attention_by_class(network, tests.tokens, model)
        yield {
            **row,
            "printed_rate": rate,
            **compute_entry_means(network.values[0], model),
            **{f"attention_{kind}": weight for kind, weight in attended._asdict().items()},
        }
