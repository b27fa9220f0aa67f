"""Tests of the study `translation`: settings of networks, test sets, and statistics of known rows."""

from collections.abc import Callable
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

import pytest

from trialogue.data.parallel.splitting import Split
from trialogue.data.parallel.text import ParallelText
from trialogue.errors import InputError
from trialogue.samplers.translation.hypotheses import Hypothesis, Translation
from trialogue_lab.ledger import Rows
from trialogue_lab.studies.translation import STUDY, measure
from trialogue_lab.studies.translation import material as making
from trialogue_lab.studies.translation.config import MASK_PREDICT, PLAIN, PRESETS, REFINER, SMALL, TWIN
from trialogue_lab.studies.translation.material import HeldOut, TranslationCorpus
from trialogue_lab.studies.translation.measure import (
    _group_sentences,
    _measure_latency,
    _score_outputs,
    _select_evenly,
    _translate_by_length,
)
from trialogue_lab.studies.translation.statistics import (
    attention,
    corpus,
    greedy,
    latency,
    length,
    refined,
    small,
)

DEFAULT = PRESETS["default"]


def test_small_refiners_differ_in_one_field():
    plain = asdict(DEFAULT.of(PLAIN, 1))
    for arm in SMALL:
        differing = {name for name, value in asdict(DEFAULT.of(arm, 1)).items() if value != plain[name]}
        assert len(differing) == (arm not in (PLAIN, "distilled")), arm
    twin, refiner = DEFAULT.of(TWIN, 1), DEFAULT.of(REFINER, 1)
    assert replace(twin, steps=refiner.steps) == refiner


def test_only_networks_with_long_training_use_dropout():
    config, long = replace(DEFAULT, dropout=0.3), (TWIN, REFINER, MASK_PREDICT)
    assert {config.of(arm, 1).dropout for arm in long} == {0.3}
    assert {config.of(arm, 1).dropout for arm in SMALL} == {0.0}


def test_strata_partition_the_test_sentences():
    tested = HeldOut([[4]] * 4, ["a"] * 4, ["b"] * 4, [5, 12, 20, 3], [True, False, False, True])
    assert _group_sentences(tested, [0, 1, 2, 3]) == {
        "all": [0, 1, 2, 3],
        "familiar": [0, 3],
        "new": [1, 2],
        "new, 12 tokens or more": [1, 2],
    }


def translation_material(references: list[str], decode: Callable[[list[list[int]]], list[str]]) -> Any:
    """Return test sentences with these references, and a vocabulary with this decoder."""
    count = len(references)
    tested = HeldOut([[4]] * count, ["a"] * count, references, [7] * count, [True] * count)
    return SimpleNamespace(tested=tested, vocabulary=SimpleNamespace(decode=decode))


def translation(*tokens: int) -> Translation:
    return Translation([Hypothesis(list(tokens), 0.0, 0.0)], 1)


def test_repeated_tokens_are_removed_for_refiners_but_not_for_the_twin():
    config = replace(PRESETS["smoke"], test=2, sets=2, small_sets=2)
    material = translation_material(
        ["4 4 5 6 7 8"] * 2, lambda rows: [" ".join(map(str, row)) for row in rows]
    )

    def bleus(arm):
        setting = {"arm": arm, "steps": 4, "hypotheses": 1}
        rows = _score_outputs(config, material, lambda *_: [translation(4, 4, 5, 6, 7, 8)] * 2, setting, 0)
        return [row["bleu"] for row in rows if row["kind"] == "set"]

    assert bleus(TWIN) == pytest.approx([100, 100])
    assert max(bleus(REFINER)) < 90


def test_chinese_is_scored_by_characters():
    config = replace(PRESETS["smoke"], text="wmt17-en-zh", test=4, sets=2, small_sets=1)
    material = translation_material(["我喜欢吃苹果"] * 4, lambda _: ["我喜欢吃香蕉"])
    setting = {"arm": TWIN, "steps": 4, "hypotheses": 1}
    rows = list(_score_outputs(config, material, lambda *_: [translation(5)] * 4, setting, 0))
    assert all(row["bleu"] > 40 for row in rows)  # BLEU would be 0 if whole lines were words
    assert all(row["low"] > 40 for row in rows if row["kind"] == "corpus")
    assert replace(config, text="wmt17-zh-en").tokenize == "13a"


def test_error_for_an_unknown_text_lists_the_corpora():
    with pytest.raises(InputError, match=r"text='wmt14-en-fr'.*wmt14-de-en, wmt14-en-de"):
        making._split(replace(DEFAULT, text="wmt14-en-fr"), 0)


def test_sentences_are_translated_with_their_own_index():
    lengths = [3, 1, 2] * 50
    sources = [[4] * length for length in lengths]
    tested = HeldOut(sources, ["a"] * 150, ["b"] * 150, lengths, [True] * 150)

    def translate(sources, numbers):
        assert [len(source) for source in sources] == [lengths[place] for place in numbers]
        return [translation(place) for place in numbers]

    places = list(range(0, 150, 2))
    found = _translate_by_length(translate, tested, places)
    assert [(place, each.best) for place, each in found.items()] == [(place, [place]) for place in places]


def test_contenders_take_turns_and_rounds_have_different_sentences(monkeypatch):
    """Every third of 20 test sentences is long."""
    config = replace(PRESETS["smoke"], test=20, rounds=2, timed=7, steps=(4, 10), hypotheses=(1, 5))
    lengths = [config.long if place % 3 == 0 else 2 for place in range(20)]
    tested = HeldOut([[4]] * 20, ["a"] * 20, ["b"] * 20, lengths, [True] * 20)
    calls = []

    def contender(name):
        return lambda sources, numbers: calls.append((name, *numbers))

    monkeypatch.setattr(measure, "load_corpus", lambda *_: TranslationCorpus((), tested, None))
    for name in ("load_twin", "load_refiner"):
        monkeypatch.setattr(measure, name, lambda *_: None)
    monkeypatch.setattr(measure, "_make_twin", lambda *_: contender("twin"))
    monkeypatch.setattr(
        measure, "_make_refiner", lambda *arguments: contender(f"{arguments[-2]} steps, {arguments[-1]}")
    )
    monkeypatch.setattr(
        measure,
        "_make_rescorer",
        lambda *arguments: contender(f"{arguments[-2]} steps, {arguments[-1]}, rescored"),
    )
    found = list(_measure_latency(config, 0, None))
    names = ["twin", "4 steps, 1", "4 steps, 5", "10 steps, 1", "10 steps, 5", "4 steps, 5, rescored"]
    rounds = [calls[start : start + 6] for start in range(0, len(calls), 6)]
    assert all(sorted(name for name, _ in turn) == sorted(names) for turn in rounds)
    assert all(len({place for _, place in turn}) == 1 for turn in rounds)
    places = [turn[0][1] for turn in rounds]
    long = list(range(0, 20, 3))
    even, odd = [0, 2, 4, 8, 10, 14, 16], [1, 3, 5, 9, 11, 15, 17]
    assert places == [*even, *long, *odd, *long]
    for start in range(0, 28, 7):
        assert [turn[0][0] for turn in rounds[start : start + 7]] == [*names, "twin"]
    timings = [(row["round"], row["sentences"], row["contender"], row["timed"]) for row in found]
    assert timings == [
        (number, which, name, 7) for number in (0, 1) for which in ("all", "long") for name in names
    ]


def test_timed_sentences_are_evenly_spaced_in_length():
    assert _select_evenly(list(range(222)), 200)[-1] >= 220
    assert _select_evenly(list(range(400)), 200) == list(range(0, 400, 2))
    assert _select_evenly([3, 5], 9) == [3, 5]
    assert _select_evenly([], 9) == []


def test_too_few_test_sentences_are_rejected(monkeypatch, tmp_path):
    pair = ParallelText(["a"], ["b"])
    monkeypatch.setattr(making, "_split", lambda *_: Split(pair, pair, pair))
    with pytest.raises(InputError, match=r"test=40: use at most the 1 test pairs of the text"):
        making.load_corpus(PRESETS["smoke"], 0, tmp_path)


def rows(**changed: float) -> Rows:
    """Return rows of two sets and two rounds with distinct numbers."""
    records: list[dict[str, object]] = []
    for place, (arm, steps, count) in enumerate(((TWIN, 0, 1), (REFINER, 4, 5), (PLAIN, 4, 1))):
        setting = {"arm": arm, "steps": steps, "hypotheses": count, "seed": 1}
        records += [
            {"kind": "set", **setting, "set": number, "bleu": 10.0 * place + number, "stutter": 0.1 * place}
            for number in (0, 1)
        ]
        records.append({"kind": "corpus", **setting, "stratum": "all", "bleu": 50.0 + place})
    for number in (0, 1):
        timed = {"kind": "latency", "round": number, "sentences": "all", "p99": 9.0}
        medians = {TWIN: 4.0 + number, "4 steps, 5": changed.get("median", 2.0)}
        records += [{**timed, "contender": name, "median": value} for name, value in medians.items()]
    records.append({"kind": "length", "first": 0.25, "seed": 1})
    return Rows(records, "kind", {"sets": 2, "small_sets": 2, "rounds": 2})


def test_statistics_of_known_rows_have_the_expected_values():
    found = rows()
    assert greedy()(found).tolist() == [0.0, 1.0]
    assert (refined(4, 5) - greedy())(found).tolist() == [10.0, 10.0]
    assert (refined(4, 5, "stutter") - greedy("stutter") * 2)(found).tolist() == [0.1, 0.1]
    assert small(PLAIN)(found).tolist() == [20.0, 21.0]
    assert corpus(REFINER, 4, 5)(found).tolist() == [51.0]
    assert length("first")(found).tolist() == [0.25]
    ratio = latency(TWIN, "median") / latency("4 steps, 5", "median")
    assert ratio(found).tolist() == [2.0, 2.5]
    assert ratio(rows(median=5.0)).tolist() == [0.8, 1.0]
    assert refined(10, 5)(found).empty


def attention_rows(stuttering: dict[int, list[tuple[int, int, float]]], sets: int) -> Rows:
    """Return rows of attention by training: set, number of pairs and value with stutter, and 0.5 without stutter."""
    records: list[dict[str, object]] = []
    for seed, found in stuttering.items():
        rows = [(number, 10, 0.5, False) for number in range(sets)] + [(*each, True) for each in found]
        columns = ("set", "pairs", "own_mean", "stutter")
        training = {"kind": "attention", "seed": seed, "arm": REFINER}
        records += [training | dict(zip(columns, row, strict=True)) for row in rows]
    return Rows(records, "kind", {"sets": sets})


def test_sets_without_stutter_use_the_pooled_mean():
    difference = attention("own_mean", True) - attention("own_mean", False)
    equal_counts = difference(
        attention_rows({1: [(number, 2, 0.5 + 0.1 * number) for number in range(4)]}, 4)
    )
    assert equal_counts.tolist() == pytest.approx([0.0, 0.1, 0.2, 0.3])
    found = attention_rows({1: [(0, 1, 0.3), (1, 3, 0.7)]}, 4)
    numbers = attention("own_mean", True)(found)
    pooled = (1 * 0.3 + 3 * 0.7) / 4
    assert numbers.index.tolist() == [0, 1, 2, 3]
    assert numbers.tolist() == pytest.approx([4 * pooled - 3 * 0.7, 4 * pooled - 3 * 0.3, pooled, pooled])
    assert attention("own_mean", False)(found).tolist() == pytest.approx([0.5] * 4)
    assert difference(found).tolist() == pytest.approx((numbers - 0.5).tolist())


@pytest.mark.parametrize(
    ("stuttering", "sets", "message"),
    [
        ({1: [(0, 2, 0.4), (1, 2, 0.4)]}, 6, "in 2 of 6 sets"),
        ({1: [(0, 2, 0.4)]}, 2, "in 1 of 2 sets"),
        ({1: [(0, 2, 0.4), (1, 2, 0.4)], 2: []}, 2, "in 0 of 2 sets"),
    ],
)
def test_attention_without_enough_stutter_has_no_estimate(stuttering, sets, message):
    statistic, found = attention("own_mean", True), attention_rows(stuttering, sets)
    assert statistic(found).empty
    assert message in statistic.missing_rows(found)
    assert not attention("own_mean", False)(found).empty


def test_trainings_have_equal_weights():
    found = attention_rows({1: [(0, 1, 0.2), (1, 1, 0.2)], 2: [(0, 90, 0.8), (1, 90, 0.8)]}, 2)
    assert attention("own_mean", True)(found).tolist() == pytest.approx([0.5, 0.5])


def test_tables_of_attention_have_the_published_cells():
    found = attention_rows({1: [(0, 1, 0.2), (1, 1, 0.2)]}, 2)
    tables = {table.source: table for table in STUDY.tables if table.source in ("Table 4.4", "Table 4.5")}
    for table in tables.values():
        printed = {(label, head) for label, line in table.published.items() for head in line}
        assert set(table.evaluate(found)) == printed
        assert not table.evaluate(rows())
    cells = tables["Table 4.4"].evaluate(found)
    assert cells["refiner, stutter: yes", "avg"].value == pytest.approx(0.2)
    assert cells["refiner, stutter: no", "avg"].value == pytest.approx(0.5)
