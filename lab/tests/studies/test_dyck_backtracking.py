"""Tests of the study `dyck-backtracking`: a small complete run, training, purity, traces and errors."""

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from trialogue.data import Dyck, Table
from trialogue.errors import InputError
from trialogue.randomness import derive_seed
from trialogue.samplers import Backtracking, generate
from trialogue_lab.ledger import Result
from trialogue_lab.ledger.runs.execution import execute
from trialogue_lab.studies.dyck_backtracking import STUDY
from trialogue_lab.studies.dyck_backtracking.config import PRESETS, EarlyStoppingConfig
from trialogue_lab.studies.dyck_backtracking.measure import _compute_purity
from trialogue_lab.studies.dyck_backtracking.models import Strings, evaluate_predictions, train_or_load
from trialogue_lab.studies.dyck_backtracking.traces import find_rejected_prefixes

SMOKE = PRESETS["smoke"]


@pytest.fixture(scope="module")
def result(smoke_run: Callable[[str], Result]) -> Result:
    return smoke_run(STUDY.name)


def test_every_claim_and_published_number_has_an_estimate(result: Result) -> None:
    rows = STUDY.rows(result)
    for claim in STUDY.claims:
        estimates = claim.statistic(rows).tolist()
        assert len(estimates) == claim.statistic.replication.required(result.config), claim.id
        assert all(map(math.isfinite, estimates)), claim.id
    for table in STUDY.tables:
        cells = table.evaluate(rows)
        for label, line in table.published.items():
            for head in line:
                assert (label, head) in cells, (table.title, label, head)


def test_a_task_that_runs_alone_has_the_same_rows(result: Result, tmp_path: Path) -> None:
    """The task trains the same network again, because its folder is empty."""
    (part,) = (part for part in STUDY.parts(SMOKE) if part.name == "unseen-0")
    again = [json.loads(json.dumps(row)) for row in part.measure(tmp_path)]
    first = [record for record in result.records if record["part"] == part.name]
    assert len(first) == len(again) >= 2
    for record, row in zip(first, again, strict=True):
        row.pop("microseconds_per_query", None)
        assert {column: record[column] for column in row} == pytest.approx(row, nan_ok=True)


def test_a_training_ends_at_the_first_validation_with_sufficient_accuracy(tmp_path: Path) -> None:
    looks = {"steps": 16, "look_every": 4, "validation_strings": 50, "width": 16, "warmup_steps": 1}
    config = dataclasses.replace(PRESETS["night"], seeds=(0,), **looks)
    assert isinstance(config, EarlyStoppingConfig)
    strings = Strings(config.length, config.p, config.q)
    validation = strings.sample(50, derive_seed(0, "validation"))

    def training(accuracy: float, steps: int = 16) -> tuple[int, float]:
        wanted = dataclasses.replace(config, converged_accuracy=accuracy, steps=steps)
        network, losses, _ = train_or_load(wanted, 0, tmp_path)
        return len(losses), evaluate_predictions(network, validation).closing_accuracy

    reached = [training(1.0, steps)[1] for steps in range(4, 16, 4)]
    wanted = (min(reached) + max(reached)) / 2
    first = next(place for place, accuracy in enumerate(reached) if accuracy >= wanted)
    assert training(wanted) == (4 * (first + 1), reached[first])
    assert training(1.0)[0] == 16


def test_purity_is_the_share_of_the_most_frequent_labels() -> None:
    found, labels = np.array([0, 0, 0, 1, 1, 1]), np.array([1, 1, 0, 0, 0, 0])
    assert _compute_purity(found, labels) == pytest.approx(5 / 6)
    assert _compute_purity(found, 1 - labels) == pytest.approx(5 / 6)
    assert _compute_purity(np.zeros(6, dtype=int), labels) == pytest.approx(4 / 6)


def test_rejected_prefixes_are_prefixes_that_the_verifier_rejects() -> None:
    distribution = Dyck(length=6)
    prompts = (torch.tensor([[0, 0], [2, 0], [2, 2]]), torch.tensor([2, 1, 2]))
    fair = Table(lambda _: [0.25] * 4, vocab_size=4, max_length=6)
    samples = generate(
        fair,
        prompts,
        sampler=Backtracking(3, 2, erase_prompt=True),
        verifier=distribution,
        num_samples=20,
        trace=True,
    )
    tokens = prompts[0].repeat_interleave(20, 0)
    rejected, rejected_lengths = find_rejected_prefixes(samples, tokens)
    assert len(rejected) > 20
    viable = distribution.is_prefix(rejected, rejected_lengths)
    assert not bool(viable.any())
    # The last token is the first wrong one, unless a greedy token before it was wrong.
    position = distribution.first_error(rejected, rejected_lengths)
    assert bool((position < rejected_lengths).all())


def test_too_few_errors_raise_an_error(tmp_path: Path) -> None:
    config = dataclasses.replace(SMOKE, max_prompts=10)
    with pytest.raises(InputError, match=r"max_prompts=10: the model of seed 0 made only \d+ of 30 errors"):
        execute(STUDY, config, tmp_path)
