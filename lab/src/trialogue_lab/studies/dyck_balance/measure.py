"""Tasks of a run. Each task trains one network and measures its accuracies and balance violations."""

from functools import partial
from pathlib import Path

from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.dyck_attention import config as attention
from trialogue_lab.studies.dyck_attention.networks import MINIMAL_ARMS, evaluate_accuracies, train_network
from trialogue_lab.studies.dyck_balance.config import Config
from trialogue_lab.theory.balance import balance_violation

ARM = "words"
"""Networks with a fixed embedding as first layer, trained on complete strings without a regularizer."""


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, each of which trains one network on bracket strings and measures it.

    Two measurements are compared: how often the network predicts closing brackets correctly, and its balance violation.
    The violation is zero if matched brackets cancel in the network's attention sums.

    Args:
        config: Settings of the run.
    """
    return [
        Part(f"network-{seed}", partial(_measure, config, seed), columns={"arm": ARM, "seed": seed})
        for seed in config.seeds
    ]


def _measure(config: Config, seed: int, _: Path) -> MeasuredRows:
    settings = attention.Config(learning_rate=config.learning_rate)
    network, loss = train_network(settings, MINIMAL_ARMS[ARM], seed, config.types, config.depth, config.steps)
    inside, outside = evaluate_accuracies(network, config.types, config.depth, seed)
    yield {
        "kind": "network",
        "loss": loss,
        "inside": inside.likeliest,
        "outside": outside.likeliest,
        "outside_confident": outside.confident,
        "balance": balance_violation(network),
        "balance_released": balance_violation(network, "released"),
    }
