"""The study of translation: what its networks differ in, what its sets hold, and quantities of rows written down."""

from dataclasses import asdict, replace

import pytest

from trialogue.errors import InputError
from trialogue.ledger import Rows
from trialogue.studies.translation import STUDY
from trialogue.studies.translation.config import PLAIN, PRESETS, REFINER, SMALL, TWIN
from trialogue.studies.translation.material import HeldOut
from trialogue.studies.translation.measure import _once, _strata
from trialogue.studies.translation.quantities import corpus, greedy, latency, length, refined, small

DEFAULT = PRESETS["default"]


def test_small_refiners_differ_in_one_respect():
    plain = asdict(DEFAULT.of(PLAIN, 1))
    for arm in SMALL:
        differing = {name for name, value in asdict(DEFAULT.of(arm, 1)).items() if value != plain[name]}
        assert len(differing) == (arm not in (PLAIN, "distilled")), arm
    twin, refiner = DEFAULT.of(TWIN, 1), DEFAULT.of(REFINER, 1)
    assert replace(twin, steps=refiner.steps) == refiner
    names = [part.name for part in STUDY.parts(DEFAULT)]
    assert names[:2] == ["twin-1", "refiner-1"]
    assert len(names) == 3 + len(SMALL)


def test_strata_are_parts_of_the_test_sentences():
    tested = HeldOut([[4]] * 4, ["a"] * 4, ["b"] * 4, [5, 12, 20, 3], [True, False, False, True])
    assert _strata(tested, [0, 1, 2, 3]) == {
        "all": [0, 1, 2, 3],
        "familiar": [0, 3],
        "new": [1, 2],
        "new, 12 tokens or more": [1, 2],
    }
    assert _once([4, 4, 5, 4, 4, 4]) == [4, 5, 4]


def rows(**changed: float) -> Rows:
    """Rows of two sets and two rounds, with numbers that can be told apart."""
    records: list[dict[str, object]] = []
    for place, (arm, steps, count) in enumerate(((TWIN, 0, 1), (REFINER, 4, 5), (PLAIN, 4, 1))):
        setting = {"arm": arm, "steps": steps, "hypotheses": count, "seed": 1}
        records += [
            {"kind": "set", **setting, "set": number, "bleu": 10.0 * place + number, "stutter": 0.1 * place}
            for number in (0, 1)
        ]
        records.append({"kind": "corpus", **setting, "stratum": "all", "bleu": 50.0 + place})
    records += [
        {
            "kind": "latency",
            "round": number,
            "sentences": "all",
            "contender": name,
            "median": value,
            "p99": 9.0,
        }
        for number in (0, 1)
        for name, value in ((TWIN, 4.0 + number), ("4 steps, 5", changed.get("median", 2.0)))
    ]
    records.append({"kind": "length", "first": 0.25, "seed": 1})
    return Rows(records, "kind", {"sets": 2, "small_sets": 2, "rounds": 2})


def test_quantities_are_those_of_the_rows():
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


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sets", 3),
        ("small_sets", 30),
        ("steps", (1, 2)),
        ("width", 10),
        ("hypotheses", (3, 1)),
        ("columns", (1,)),
    ],
)
def test_bad_settings_are_named(field, value):
    with pytest.raises(InputError) as told:
        replace(DEFAULT, **{field: value})
    assert told.value.field == field
