"""Tasks of a run: one network each, its accuracies and its balance violations."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from trialogue_lab.analysis.closing_accuracy import closing_accuracy
from trialogue_lab.ledger import Part
from trialogue_lab.studies.dyck_attention import config as attention
from trialogue_lab.studies.dyck_attention.networks import FAR, MINIMAL_ARMS, TRAINED_LENGTH, prefixes, trained
from trialogue_lab.studies.dyck_balance.config import Config
from trialogue_lab.theory.balance import balance_violation

ARM = "words"
"""Networks with a minimal first layer that learn from complete words, without a regulariser"""


def parts(config: Config) -> list[Part]:
    """Return one task per network."""
    return [
        Part(f"network-{seed}", partial(_network, config, seed), columns={"arm": ARM, "seed": seed})
        for seed in config.seeds
    ]


def _network(config: Config, seed: int, _: Path) -> Iterator[dict[str, Any]]:
    settings = attention.Config(learning_rate=config.learning_rate)
    network, loss = trained(settings, MINIMAL_ARMS[ARM], seed, config.types, config.depth, config.steps)
    near, far = (prefixes(config.types, config.depth, seed, length) for length in (TRAINED_LENGTH, FAR[1]))
    outside = closing_accuracy(network, far, FAR[0])
    yield {
        "kind": "network",
        "loss": loss,
        "inside": closing_accuracy(network, near).likeliest,
        "outside": outside.likeliest,
        "outside_confident": outside.confident,
        "balance": balance_violation(network),
        "balance_released": balance_violation(network, "released"),
    }
