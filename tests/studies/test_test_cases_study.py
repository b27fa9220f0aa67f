"""The study of test cases runs end to end on its surrogate, and its pieces mean what they say."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from trialogue.data.list_append.cases import evaluate
from trialogue.data.table import Table
from trialogue.errors import InputError
from trialogue.inference import Backtracking, generate
from trialogue.ledger import Rows
from trialogue.ledger.runs.execution import execute
from trialogue.ledger.runs.results import Result
from trialogue.models.transformer import Transformer, TransformerConfig
from trialogue.randomness import numpy_generator
from trialogue.studies.test_cases import STUDY, measure, surrogate
from trialogue.studies.test_cases.config import PRESETS, Config
from trialogue.studies.test_cases.decodings import BASELINE, GREEDY, GROUND_TRUTH, TRAINED, block_best_of
from trialogue.studies.test_cases.examples import Completion, GroundTruth, examples_of, token_of
from trialogue.studies.test_cases.models import trained_verifier
from trialogue.studies.test_cases.quantities import measured
from trialogue.studies.test_cases.surrogate import (
    PieceTokens,
    Surrogate,
    surrogate_completion,
    surrogate_prompt,
)

MINIATURE = dataclasses.replace(PRESETS["smoke"], names=2, runs=2)
TOKENS = PieceTokens()
_SHAPE = TransformerConfig(vocab_size=len(surrogate._PIECES), width=16, mlp_width=16)
UNTRAINED = Surrogate(Transformer(_SHAPE, seed=0))


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return execute(STUDY, MINIATURE, tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def measured_rows(result: Result) -> Rows:
    return STUDY.rows(result)


def test_each_verifier_has_a_lane_of_parts() -> None:
    config = PRESETS["default"]
    parts = STUDY.parts(config)
    assert len(parts) == config.verifiers * (config.collection_parts + 1 + len(config.decodings()))
    assert [part.name for part in parts][:6] == [
        *(f"0-collect-{k}" for k in range(4)),
        "0-probe",
        "0-draw-none",
    ]
    assert {part.lane for part in parts if part.name.startswith("1-")} == {"1"}


@pytest.mark.parametrize(("size", "rows"), [(64, 64), (4, 8)])
def test_candidates_share_the_batch(
    size: int, rows: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The batch size counts rows, of which each sample of block best-of-8 needs eight."""
    asked = []

    def generate(*args: object, batch_size: int, **options: object) -> None:
        asked.append(batch_size)
        raise InterruptedError

    monkeypatch.setattr(measure, "generate", generate)
    monkeypatch.setattr(measure, "_judge", lambda *args: None)
    config = dataclasses.replace(MINIATURE, batch_size=size)
    monkeypatch.setattr(measure, "oracle_of", lambda *args: UNTRAINED)
    with pytest.raises(InterruptedError):
        list(measure.measure_decoding(config, 0, block_best_of(8), tmp_path))
    assert asked == [rows]


class Scripted(Table):
    """An oracle that always completes the prompt of a name in one way."""

    tokenization = TOKENS

    def __init__(self, completions: Mapping[str, str]) -> None:
        eos = len(surrogate._PIECES)
        self.scripts = [
            (*TOKENS.encode(surrogate_prompt(name) + text), eos) for name, text in completions.items()
        ]

        def law(prefix: tuple[int, ...]) -> list[float]:
            (script,) = (script for script in self.scripts if script[: len(prefix)] == prefix)
            return [float(token == script[len(prefix)]) for token in range(eos + 1)]

        super().__init__(law, eos + 1, eos=eos)


def test_rows_of_a_repetition_are_known_where_completions_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = dataclasses.replace(MINIATURE, seeds=(5,), runs=3)
    first, second = (name for name, _ in config.prompts(5, False))
    completions = {
        first: f"assert {first}([1], 2) == [1, 2]\nassert {first}([], 3) == [3]\n",
        second: f"assert {second}([4], 5) == [4, 5]\nassert {second}([6], 7) == [7, 6]\n",
    }
    lengths = [len(TOKENS.encode(text)) + 1 for text in completions.values()]
    monkeypatch.setattr(measure, "oracle_of", lambda *args: Scripted(completions))
    for decoding, walked in ((BASELINE, 0), (GREEDY, 0), (GROUND_TRUTH, 1)):
        rows = list(measure.measure_decoding(config, 0, decoding, tmp_path))
        assert [(row["runs"], row["whole"]) for row in rows] == [(1, False), (2, False), (3, True)]
        for row in rows:
            runs = row["runs"]
            assert (row["seed"], row["decoding"]) == (5, decoding.name)
            assert row["distinct_correct"] == 3  # of two names with two cases each, again and again
            assert row["accuracy"] == 3 / 4
            assert row["accuracy_distinct"] == pytest.approx(3 / (4 * runs), abs=1e-15)
            if not walked:
                assert row["queries"] == runs * sum(lengths)
                assert row["verifier_calls"] == 0
        if walked:
            # Four times the wrong case is written anew, each time from four tokens before its first wrong one.
            assert [row["queries"] for row in rows] == [runs * (sum(lengths) + 4 * 4) for runs in (1, 2, 3)]


def test_runs_that_differ_are_counted_one_by_one() -> None:
    config = dataclasses.replace(MINIATURE, names=2, runs=2)
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
    rows = list(measure._progress(config, 2, evaluations, samples, range(1, 5)))  # type: ignore[arg-type]
    assert rows == [
        {
            "runs": 1, "whole": False, "distinct_correct": 1, "accuracy": 2 / 4, "accuracy_distinct": 1 / 4,
            "queries": 40, "verifier_calls": 4,
        },
        {
            "runs": 2, "whole": True, "distinct_correct": 3, "accuracy": 5 / 8, "accuracy_distinct": 3 / 8,
            "queries": 100, "verifier_calls": 10,
        },
    ]  # fmt: skip


def test_numbers_stay_within_their_bounds(measured_rows: Rows) -> None:
    rows = measured_rows
    completions, tokens = MINIATURE.names * MINIATURE.runs, MINIATURE.max_new_tokens
    drawn = rows["draw"]
    assert (drawn.accuracy_distinct <= drawn.accuracy + 1e-12).all()
    assert drawn.accuracy.between(0, 1).all()
    assert (measured(BASELINE, "queries")(rows) <= completions * tokens).all()
    assert (measured(TRAINED, "queries")(rows) <= completions * (tokens + 4 * 4)).all()
    # Greedy completions of one name are equal: at most one run's cases are distinct.
    assert (measured(GREEDY)(rows) <= 1 / MINIATURE.runs).all()
    assert (measured(GROUND_TRUTH, "verifier_calls")(rows) > 0).all()


def test_a_token_holds_a_character_and_ends_an_example() -> None:
    assert [token_of(place, [3, 3, 7]) for place in (0, 2, 3, 6, 7)] == [0, 0, 2, 2, 2]
    text = "assert abc([1], 2) == [1, 2]\nassert abc([], 3) == [4]\n"
    tokens = TOKENS.encode(text)
    completion = Completion("abc", [*TOKENS.encode("abc\n"), *tokens], 4, False)
    wrong = len(TOKENS.encode(text[: text.index("4]")]))
    seen = set()
    for seed in range(40):
        examples = examples_of([completion], TOKENS, 2, "token", numpy_generator(seed))
        (before, error), labels = examples.lengths[0], examples.labels
        assert error == 4 + wrong + 1
        assert TOKENS.text(completion.tokens[4:error]).endswith("[4")
        assert labels == [1, 0]
        seen.add(before)
    assert min(seen) >= 5
    assert max(seen) <= 4 + wrong
    assert len(seen) > 10
    blocks = examples_of([completion], TOKENS, 2, "block", numpy_generator(0))
    assert [TOKENS.text(completion.tokens[4:stop]) for stop in blocks.lengths[0]] == [text[:29], text]
    assert blocks.labels == [1, 0]
    extra = completion._replace(tokens=[*completion.tokens[:4], *TOKENS.encode(text[:29] * 3)])
    assert not examples_of([extra], TOKENS, 2, "token", numpy_generator(0)).labels


def test_the_ground_truth_never_lets_a_sampled_error_stand() -> None:
    """On an untrained model almost every token is wrong: the verifier must say so, and a blind one must not."""
    oracle = UNTRAINED
    prompt = TOKENS.encode("abc\n")
    truth = GroundTruth({tuple(prompt): "abc"}, TOKENS, 2, oracle.eos)
    walk = Backtracking(5, 1, argmax_redo=False)
    samples = generate(
        oracle, [prompt], walk=walk, verifier=truth, num_samples=50, max_new_tokens=6, trace=True
    )
    assert samples.trace is not None
    went_back = (samples.trace.kept < samples.trace.length).sum()
    blind = GroundTruth({tuple(prompt): "abc"}, TOKENS, 2, oracle.eos)
    blind.values = lambda decoding, rows: torch.ones(len(rows))  # type: ignore[method-assign]
    unseeing = generate(
        oracle, [prompt], walk=walk, verifier=blind, num_samples=50, max_new_tokens=6, trace=True
    )
    assert unseeing.trace is not None
    assert went_back == 50 * 5
    assert (unseeing.trace.kept < unseeing.trace.length).sum() == 0


def test_the_surrogate_s_completions_have_the_flaws_that_are_stated() -> None:
    draw = np.random.Generator(np.random.PCG64(1))
    found = [evaluate(surrogate_completion("abc", 4, draw), "abc", 4) for _ in range(2000)]
    cases = [case.correct for one in found for case in one.cases]
    assert abs(1 - np.mean(cases) - 0.15 * (1 - 1 / 9)) < 0.03  # some flaws leave the list as it is
    assert abs(np.mean([len(one.cases) < 4 for one in found]) - 0.3) < 0.05


def test_states_that_were_damaged_are_not_trained_on(result: Result, tmp_path: Path) -> None:
    (path,) = result.folder.rglob("states-token-0.safetensors")
    content = path.read_bytes()
    (tmp_path / path.name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(InputError, match="checksum: remove it"):
        trained_verifier(MINIATURE, 0, "token", -1, 1, tmp_path)


def test_presets_are_what_they_say() -> None:
    paper = PRESETS["paper"]
    assert (paper.names, paper.runs, paper.cases, paper.max_new_tokens) == (10, 10, 8, 384)
    assert (paper.model, paper.candidates, paper.examples) == ("codellama/CodeLlama-7b-hf", (2, 4, 8), 0)
    names = [decoding.name for decoding in paper.decodings()]
    assert len(set(names)) == len(names) > 60
    assert len(PRESETS["default"].seeds) >= 5
    one, other = (PRESETS["default"].prompts(seed, False) for seed in (0, 1))
    assert one != other


@pytest.mark.parametrize(
    ("field", "value"),
    [("seeds", ()), ("seeds", (1, 1)), ("verifiers", 9), ("layer", 5), ("runs", 0), ("collection_parts", 17)],
)
def test_a_field_out_of_range_is_named(field: str, value: object) -> None:
    with pytest.raises(InputError, match=f"^{field}="):
        dataclasses.replace(Config(), **{field: value})
