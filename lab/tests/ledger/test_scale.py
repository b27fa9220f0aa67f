"""Runs that are smaller than the preset `default`, and their verdicts."""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from biased_coin import STUDY, Config

from trialogue_lab.ledger import ADDED, Entry, Replication, Settings, judged
from trialogue_lab.ledger.runs.execution import execute
from trialogue_lab.ledger.runs.larger import add_larger_presets
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


SMOKE = Training(
    steps=10, stages=(10, 20), learning_rate=0.001, seeds=(1, 2), network=Network(layers=1), folds=1
)
CLAIM = STUDY.claims[0]
COUNTED = replace(CLAIM.statistic, replication=Replication("training", "horizons"))
TRAININGS: Any = replace(
    STUDY,
    presets={"default": Training(), "smoke": SMOKE, "paper": Training(steps=100_000)},
    claims=(replace(CLAIM, criterion=replace(CLAIM.criterion, statistic=COUNTED)),),
)


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
def test_only_values_below_the_preset_reduce_a_run(config: Training, reduced: dict[str, Any]) -> None:
    assert reduced_fields(TRAININGS, config_values(config)) == reduced


def test_a_changed_smoke_run_is_compared_with_smoke() -> None:
    changes = {"heads": (SMOKE.heads + 1, SMOKE.heads)}
    config = replace(SMOKE, heads=SMOKE.heads + 1)
    assert changed_fields(TRAININGS, config_values(config)) == ("smoke", changes)


@pytest.mark.parametrize(("steps", "preset"), [(1000, "default"), (100_000, "paper")])
def test_changes_are_relative_to_the_closest_preset(steps: int, preset: str) -> None:
    config = Training(steps=steps, heads=2, network=Network(layers=5), folds=5)
    changes = {"heads": (2, 8), "network.layers": (5, 4), "folds": (5, 4)}
    assert changed_fields(TRAININGS, config_values(config)) == (preset, changes)


def test_claims_are_tested_by_changed_runs_of_full_size_only(tmp_path: Path) -> None:
    small = judged(STUDY, execute(STUDY, replace(STUDY.presets["smoke"], bias=0.9), tmp_path))
    assert {each.answer for each in small.verdicts if each.claim.sampled} == {"not tested"}
    full = judged(STUDY, execute(STUDY, Config(bias=0.9), tmp_path))
    assert {verdict.answer for verdict in full.verdicts} >= {"holds", "refuted"}
    assert (
        full.scale
        == "default with bias = 0.9 (not 0.7): not in the totals, which are of the committed results"
    )


@pytest.mark.parametrize(
    ("night", "needed", "remark"),
    [
        (
            Config(seeds=tuple(range(9))),
            9,
            r"trialogue run biased-coin --preset night: 9 repetitions, about \S+ core hours",
        ),
        (
            Config(seeds=tuple(range(9))),
            10,
            "no preset has this many: use trialogue run biased-coin with more --seeds",
        ),
        (
            Config(seeds=tuple(range(9)), flips=99),
            9,
            "trialogue run biased-coin --preset night: 9 repetitions, and other values of flips",
        ),
    ],
)
def test_an_undecided_claim_names_the_preset_with_enough_repetitions(
    night: Config, needed: int, remark: str, plain: Entry
) -> None:
    study: Any = replace(STUDY, presets={"default": Config(), "night": night, "paper": night})
    assert plain.result is not None
    open_claim = replace(
        plain.verdicts[0],
        to_decide=needed,
        remarks=("late", "9 instead of 5", "undecided if 1 is left out"),
    )
    (found,) = add_larger_presets(study, plain.result, [open_claim])
    added = found.remarks[2:-1]
    assert (found.remarks[1], found.remarks[-1]) == open_claim.remarks[1:]
    assert len(added) == 1
    assert re.fullmatch(remark, added[0])
    assert (found.larger_preset is None) == (needed > 9)
