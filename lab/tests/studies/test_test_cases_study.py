"""Tests of the study test-cases: tasks, rows of known completions, training examples, verifiers and the surrogate."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from trialogue.data.table import Table
from trialogue.models.networks.transformer import Transformer, TransformerConfig
from trialogue.randomness import numpy_generator
from trialogue.samplers import Backtracking, generate
from trialogue_lab.data.list_append.cases import evaluate
from trialogue_lab.ledger.runs.results import Result
from trialogue_lab.studies.test_cases import STUDY, draws, learning, surrogate
from trialogue_lab.studies.test_cases.config import PRESETS, SMALLEST
from trialogue_lab.studies.test_cases.decodings import (
    BASELINE,
    EXTENTS,
    GREEDY,
    GROUND_TRUTH,
    TRAINED,
    find_extent,
    make_block_best_of,
)
from trialogue_lab.studies.test_cases.statistics import measured
from trialogue_lab.studies.test_cases.surrogate import (
    PieceTokens,
    Surrogate,
    make_surrogate_prompt,
    sample_surrogate_completion,
)

TOKENS = PieceTokens()
_SHAPE = TransformerConfig(vocab_size=len(surrogate._PIECES), width=16, mlp_width=16)
UNTRAINED = Surrogate(Transformer(_SHAPE, seed=0))


def test_a_decoding_has_one_extent() -> None:
    for preset in ("night", "paper"):
        config = PRESETS[preset]
        found = {extent: config.decodings("pretrained", extent) for extent in EXTENTS}
        assert all(find_extent(rule) == extent for extent, rules in found.items() for rule in rules)
        names = [rule.name for rules in found.values() for rule in rules]
        assert len(set(names)) == len(names) > 50


@pytest.mark.parametrize(("size", "rows"), [(64, 64), (4, 8)])
def test_candidates_share_the_batch(
    size: int, rows: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The batch size counts rows. Each sample of block best-of-8 needs eight of them."""
    batch_sizes = []

    def generate(*args: object, batch_size: int, **options: object) -> None:
        batch_sizes.append(batch_size)
        raise InterruptedError

    monkeypatch.setattr(draws, "generate", generate)
    monkeypatch.setattr(draws, "make_verifiers", lambda *args: None)
    subject = dataclasses.replace(SMALLEST, batch_size=size)
    monkeypatch.setattr(draws.learning, "load_oracle", lambda *args: UNTRAINED)
    with pytest.raises(InterruptedError):
        list(draws.measure_decoding(subject, [0], make_block_best_of(8), tmp_path))
    assert batch_sizes == [rows]


class Scripted(Table):
    """An oracle that completes the prompt of each name with a fixed text."""

    tokenization = TOKENS

    def __init__(self, completions: Mapping[str, str]) -> None:
        eos = len(surrogate._PIECES)
        self.scripts = [
            (*TOKENS.encode(make_surrogate_prompt(name) + text), eos) for name, text in completions.items()
        ]

        def distribution(prefix: tuple[int, ...]) -> list[float]:
            (script,) = (script for script in self.scripts if script[: len(prefix)] == prefix)
            return [float(token == script[len(prefix)]) for token in range(eos + 1)]

        super().__init__(distribution, eos + 1, eos=eos)


def test_rows_of_known_completions_have_the_expected_values(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two repetitions run in one batch, and each has the same rows as alone."""
    subject = dataclasses.replace(SMALLEST, runs=3)
    names = [name for seed in (5, 6) for name, _ in subject.prompts(seed, False)]
    endings = ("[1], 2) == [1, 2]", "[], 3) == [3]", "[4], 5) == [4, 5]", "[6], 7) == [7, 6]")
    completions = {
        name: "".join(f"assert {name}({ending}\n" for ending in chosen)
        for name, chosen in zip(names, (endings[:2], endings[2:], endings[:2], endings[1:3]), strict=True)
    }
    lengths = {name: len(TOKENS.encode(text)) + 1 for name, text in completions.items()}
    monkeypatch.setattr(draws.learning, "load_oracle", lambda *args: Scripted(completions))
    for decoding in (BASELINE, GREEDY, GROUND_TRUTH):
        rows = list(draws.measure_decoding(subject, [5, 6], decoding, tmp_path))
        assert [row["table"] for row in rows] == ["draw", "progress", "progress"] * 2
        for seed, place in ((5, 0), (6, 3)):
            complete, *partial = rows[place : place + 3]
            # In repetition 5, one of four cases is wrong. Its last four tokens are generated again four times.
            right, extra = (3, 16) if seed == 5 else (4, 0)
            queries = sum(lengths[name] for name, _ in subject.prompts(seed, False))
            queries += extra if decoding == GROUND_TRUTH else 0
            counts = [(row["seed"], row["runs"]) for row in (*partial, complete)]
            assert counts == [(seed, 1), (seed, 2), (seed, 3)]
            assert complete["accuracy"] == right / 4
            for row in (*partial, complete):
                assert row["distinct_correct"] == right  # generated again until the limit
                assert row["queries"] == row["runs"] * queries
            assert complete["accuracy_distinct"] == pytest.approx(right / 12, abs=1e-15)
            assert complete["slope"] == 0
            assert (complete["verifier_calls"] > 0) == (decoding == GROUND_TRUTH)


def test_different_runs_are_counted_separately() -> None:
    texts = [
        "assert abc([1], 2) == [1, 2]\nassert abc([1], 2) == [1, 2]\n",
        "assert abc([1], 2) == [1, 2]\nassert abc([2], 2) == [2, 2]\n",
        "def",
        "assert xyz([1], 2) == [1, 2]\nassert xyz([1], 3) == [1, 2]\n",
    ]
    evaluations = [
        evaluate(text, name, 2) for text, name in zip(texts, ("abc", "abc", "xyz", "xyz"), strict=True)
    ]
    samples = SimpleNamespace(
        queries=torch.tensor([99, 10, 20, 30, 40, 99]), verifier_calls=torch.tensor([9, 1, 2, 3, 4, 9])
    )
    rows = draws.compute_cumulative_totals(SMALLEST, 2, evaluations, samples, range(1, 5))  # type: ignore[arg-type]
    assert rows == [
        {
            "runs": 1, "distinct_correct": 1, "correct": 2, "accuracy": 2 / 4, "accuracy_distinct": 1 / 4,
            "queries": 40, "verifier_calls": 4,
        },
        {
            "runs": 2, "distinct_correct": 3, "correct": 5, "accuracy": 5 / 8, "accuracy_distinct": 3 / 8,
            "queries": 100, "verifier_calls": 10,
        },
    ]  # fmt: skip
    assert draws.fit_slope(rows) == pytest.approx(100 * 2 / 60)
    third = rows[1] | {"queries": 160, "distinct_correct": 4}
    assert draws.fit_slope([*rows, third]) == pytest.approx(100 * 3 / 120)


def test_training_completions_end_with_the_line_of_their_first_error() -> None:
    names = {"abc", "xyz"}
    has_error = learning.stop_after_first_error(names, TOKENS, 4)
    right, other = "assert abc([1], 2) == [1, 2]\n", "assert xyz([1], 2) == [1, 2]\n"
    assert not has_error(TOKENS.encode(right))
    assert not has_error(TOKENS.encode(right + "assert abc([], 3) == [4"))  # the line is not complete
    assert has_error(TOKENS.encode(right + "assert abc([], 3) == [4]\n"))
    assert not has_error(TOKENS.encode(other))  # in order for the other name
    assert has_error(TOKENS.encode(right + other))  # for none of them
    assert has_error(TOKENS.encode("def abc()\n"))
    assert not has_error([])


@pytest.mark.slow
def test_numbers_stay_within_their_bounds(smoke_run: Callable[[str], Result]) -> None:
    rows = STUDY.rows(smoke_run(STUDY.name))
    completions, tokens = SMALLEST.names * SMALLEST.runs, SMALLEST.max_new_tokens
    draws = rows["draw"]
    assert (draws.accuracy_distinct <= draws.accuracy + 1e-12).all()
    assert draws.accuracy.between(0, 1).all()
    assert (measured(BASELINE, "queries")(rows) <= completions * tokens).all()
    assert (measured(TRAINED, "queries")(rows) <= completions * (tokens + 4 * 4)).all()
    # Greedy completions of one name are equal: at most one run's cases are distinct.
    assert (measured(GREEDY)(rows) <= 1 / SMALLEST.runs).all()
    assert (measured(GROUND_TRUTH, "verifier_calls")(rows) > 0).all()


def test_examples_end_with_the_expected_tokens() -> None:
    assert [learning.find_token(place, [3, 3, 7]) for place in (0, 2, 3, 6, 7)] == [0, 0, 2, 2, 2]
    text = "assert abc([1], 2) == [1, 2]\nassert abc([], 3) == [4]\n"
    tokens = TOKENS.encode(text)
    completion = learning.Completion("abc", [*TOKENS.encode("abc\n"), *tokens], 4, False)
    wrong = len(TOKENS.encode(text[: text.index("4]")]))
    seen = set()
    for seed in range(40):
        examples = learning.make_examples([completion], TOKENS, 2, "token", numpy_generator(seed))
        (before, error), labels = examples.lengths[0], examples.labels
        assert error == 4 + wrong + 1
        assert TOKENS.text(completion.tokens[4:error]).endswith("[4")
        assert labels == [1, 0]
        seen.add(before)
    assert min(seen) >= 5
    assert max(seen) <= 4 + wrong
    assert len(seen) > 10
    blocks = learning.make_examples([completion], TOKENS, 2, "block", numpy_generator(0))
    assert [TOKENS.text(completion.tokens[4:stop]) for stop in blocks.lengths[0]] == [text[:29], text]
    assert blocks.labels == [1, 0]
    extra = completion._replace(tokens=[*completion.tokens[:4], *TOKENS.encode(text[:29] * 3)])
    assert not learning.make_examples([extra], TOKENS, 2, "token", numpy_generator(0)).labels


def test_the_ground_truth_rejects_every_sampled_error() -> None:
    """The verifier rejects the wrong tokens of an untrained model, and a constant verifier accepts them."""
    prompt = TOKENS.encode("abc\n")
    sampler = Backtracking(5, 1, argmax_redo=False)

    def backtracks(truth: learning.GroundTruth) -> int:
        settings = {"num_samples": 50, "max_new_tokens": 6, "trace": True}
        trace = generate(UNTRAINED, [prompt], sampler=sampler, verifier=truth, **settings).trace
        return int((trace.kept < trace.length).sum())

    truth = learning.GroundTruth({tuple(prompt): "abc"}, TOKENS, 2, UNTRAINED.eos)
    assert backtracks(truth) == 50 * 5
    truth.values = lambda decoding, rows: torch.ones(len(rows))  # type: ignore[method-assign]
    assert backtracks(truth) == 0


def test_completions_of_the_surrogate_have_the_documented_flaws() -> None:
    draw = np.random.Generator(np.random.PCG64(1))
    found = [evaluate(sample_surrogate_completion("abc", 4, draw), "abc", 4) for _ in range(2000)]
    cases = [case.correct for one in found for case in one.cases]
    assert abs(1 - np.mean(cases) - 0.15 * (1 - 1 / 9)) < 0.03  # some flaws do not change the list
    assert abs(np.mean([len(one.cases) < 4 for one in found]) - 0.3) < 0.05


def test_repetitions_have_different_functions_and_the_surrogate_has_no_misleading_names() -> None:
    night = PRESETS["night"]
    one, other = (night.pretrained.prompts(seed, False) for seed in (0, 1))
    assert not {name for name, _ in one} & {name for name, _ in other}
    assert "ood" not in "".join(rule.name for rule in night.decodings("scratch", "comparisons"))
