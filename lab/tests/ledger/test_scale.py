"""Which runs are smaller than the preset `default`, and what their claims come to."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from biased_coin import STUDY, Config

from trialogue_lab.ledger import ADDED, Replication, Settings, judged
from trialogue_lab.ledger.runs.execution import execute
from trialogue_lab.ledger.runs.results import config_values
from trialogue_lab.ledger.runs.scale import changed_fields, reduced_fields


@dataclass(frozen=True, kw_only=True)
class Network(Settings):
    layers: int = 4


@dataclass(frozen=True, kw_only=True)
class Training(Settings):
    steps: int = 1000
    stages: tuple[int, ...] = (100, 200)
    rates: tuple[float, ...] = (0.1, 0.2)
    learning_rate: float = 0.01
    heads: int = 8
    seeds: tuple[int, ...] = (5, 6)
    horizons: tuple[int, ...] = (4, 8, 16)
    network: Network = field(default_factory=Network)
    folds: int = field(default=4, metadata=ADDED)


PRESETS = {
    "default": Training(),
    "smoke": Training(
        steps=10, stages=(10, 20), learning_rate=0.001, seeds=(1, 2), network=Network(layers=1), folds=1
    ),
    "paper": Training(steps=100_000),
}


def study() -> Any:
    (claim, *_) = STUDY.claims
    quantity = replace(claim.statistic, replication=Replication("training", "horizons"))
    counted = replace(claim, criterion=replace(claim.criterion, statistic=quantity))
    return replace(STUDY, presets=PRESETS, claims=(counted,))


@pytest.mark.parametrize(
    ("config", "reduced"),
    [
        (Training(), {}),
        (Training(steps=5000, stages=(100, 300)), {}),
        (Training(steps=999), {"steps": (999, 1000)}),
        (Training(stages=(100, 150)), {"stages": ([100, 150], [100, 200])}),
        (Training(network=Network(layers=3)), {"network.layers": (3, 4)}),
        (Training(heads=1, rates=(0.01, 0.02), learning_rate=1e-4), {}),
        (Training(seeds=(0, 1)), {}),
        (Training(horizons=(2, 3, 5)), {}),
        (Training(folds=2), {"folds": (2, 4)}),
        (Training(horizons=(4, 8)), {"horizons": ([4, 8], [4, 8, 16])}),
    ],
    ids=str,
)
def test_a_run_is_smaller_where_smoke_is_or_where_replications_are_missing(
    config: Training, reduced: dict[str, Any]
) -> None:
    assert reduced_fields(study(), config_values(config)) == reduced


def test_changes_are_named_from_the_closest_counting_preset() -> None:
    changes = {"heads": (2, 8), "network.layers": (5, 4)}
    changes["folds"] = (5, 4)
    for steps, preset in ((1000, "default"), (100_000, "paper")):
        config = Training(steps=steps, heads=2, network=Network(layers=5), folds=5)
        assert changed_fields(study(), config_values(config)) == (preset, changes)


def test_a_smaller_run_decides_nothing_and_a_changed_one_of_full_size_does(tmp_path: Path) -> None:
    def answers(config: Config) -> set[str]:
        entry = judged(STUDY, execute(STUDY, config, tmp_path))
        return {verdict.answer for verdict in entry.verdicts if verdict.claim.sampled}

    smoke = STUDY.presets["smoke"]
    assert answers(replace(smoke, bias=0.9)) == {"not tested"}
    full = judged(STUDY, execute(STUDY, Config(bias=0.9), tmp_path))
    assert {verdict.answer for verdict in full.verdicts} >= {"holds", "refuted"}
    assert full.scale == "default with bias = 0.9 (not 0.7): does not count"
