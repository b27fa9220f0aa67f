"""The flagship study runs end to end, in miniature, and its pieces mean what they say."""

import dataclasses
from pathlib import Path

import pytest
import torch

from trialogue.data import Dyck, Table
from trialogue.errors import InputError
from trialogue.inference import Backtracking, generate
from trialogue.ledger import load_rows
from trialogue.ledger.claims import evaluate
from trialogue.ledger.execution import execute
from trialogue.ledger.tables import sheet
from trialogue.studies import find
from trialogue.studies.dyck_backtracking import STAGES, STUDY, _rejected_prefixes, parts
from trialogue.studies.dyck_backtracking_models import PRESETS, Config

MINIATURE = dataclasses.replace(
    PRESETS["smoke"],
    steps=30,
    probe_errors=20,
    inducing_errors=10,
    unseen_prompts=60,
    draws=1,
    diversity_prompts=4,
    completions=3,
)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    execute(STUDY, MINIATURE, folder)
    return folder


def test_every_part_claim_and_table_has_rows(results: Path) -> None:
    rows = load_rows(STUDY.folder(MINIATURE, results))
    assert (
        set(rows.part) == set(parts(MINIATURE)) == {f"{stage}-{seed}" for stage in STAGES for seed in (0, 1)}
    )
    for claim in STUDY.claims:
        assert len(list(claim.estimate(rows))) == len(MINIATURE.seeds), claim.id
    assert {verdict.answer for verdict in evaluate(STUDY.claims, rows, preset="smoke")} == {"not tested"}
    for table in STUDY.tables:
        shown = sheet(table, rows)
        published = {label for line in table.published.values() for label in line}
        assert set(table.published) <= {label for label, _ in shown.lines}, table.title
        ours = {head for head, whose in shown.columns if whose == "ours"}
        assert published <= ours, table.title
        for label in table.published:
            for head in table.published[label]:
                assert (label, head) in table.cells(rows), (table.title, label, head)


def test_trained_models_are_shared_and_a_second_run_measures_the_same(results: Path, tmp_path: Path) -> None:
    rows = load_rows(STUDY.folder(MINIATURE, results))
    one_seed = dataclasses.replace(MINIATURE, seeds=(1,))
    again = load_rows(execute(STUDY, one_seed, tmp_path).folder)
    measured = ["accuracy", "errors", "distinct", "closing_accuracy", "validation_accuracy", "queries"]
    # Points in the plane are drawn for the first training alone.
    first, second = rows[(rows.seed == 1) & rows.x.isna()], again[again.x.isna()]
    assert first[measured].reset_index(drop=True).equals(second[measured].reset_index(drop=True))


def test_the_registry_knows_it_and_the_presets_are_what_they_say() -> None:
    assert find("dyck-backtracking") is STUDY
    paper = PRESETS["paper"]
    assert (paper.layers, paper.heads, paper.width) == (6, 8, 512)
    assert (paper.unseen_prompts, paper.draws, paper.batch_size, paper.learning_rate) == (10_000, 5, 32, 3e-4)
    assert len(PRESETS["default"].seeds) >= 3


def test_rejected_prefixes_are_where_the_verifier_said_no() -> None:
    law = Dyck(length=6)
    prompts = (torch.tensor([[0, 0], [2, 0], [2, 2]]), torch.tensor([2, 1, 2]))
    fair = Table(lambda _: [0.25] * 4, vocab_size=4, max_length=6)
    samples = generate(
        fair, prompts, walk=Backtracking(3, 2, erase_prompt=True), verifier=law, num_samples=20, trace=True
    )
    tokens = prompts[0].repeat_interleave(20, 0)
    rejected, rejected_lengths = _rejected_prefixes(samples, tokens)
    assert len(rejected) > 20
    viable = law.is_prefix(rejected, rejected_lengths)
    assert not bool(viable.any())
    # The token that the verifier saw is the first wrong one, unless greedy redoing went wrong before it.
    position = law.first_error(rejected, rejected_lengths)
    assert bool((position < rejected_lengths).all())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("p", 0.0),
        ("q", 1.0),
        ("ood_p", 1.5),
        ("threshold", 1.1),
        ("length", 31),
        ("prompt_lengths", (25, 32)),
        ("prompt_lengths", (4, 31)),
        ("seeds", ()),
        ("seeds", (1, 1)),
        ("draws", 0),
        ("width", 63),
        ("steps", 0),
    ],
)
def test_a_field_out_of_range_is_named(field: str, value: object) -> None:
    with pytest.raises(InputError, match=f"^{field}="):
        dataclasses.replace(Config(), **{field: value})


def test_too_few_errors_are_reported(tmp_path: Path) -> None:
    config = dataclasses.replace(MINIATURE, max_prompts=10)
    with pytest.raises(InputError, match=r"max_prompts=10: the model of seed 0 made only \d+ of 30 errors"):
        execute(STUDY, config, tmp_path)
