"""The rules of the ledger: what an interval decides, at which level, and what is said beside a verdict."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from pandas import Series

from trialogue.errors import InputError
from trialogue_lab.ledger import (
    Claim,
    Counts,
    Criterion,
    Replication,
    Rows,
    Statistic,
    Verdict,
    exact,
    shares_of,
)
from trialogue_lab.ledger.claims.claims import Registration
from trialogue_lab.ledger.claims.pilots import Pilot
from trialogue_lab.ledger.claims.statistics import decide
from trialogue_lab.ledger.claims.verdicts import Evidence, evaluate, stored_estimates

FIVE = (5.0, 5.1, 4.9, 5.0, 5.05)
CONFIG = {"seeds": [0, 1, 2, 3, 4]}
draws = Replication("draw", "seeds")


def rows_of(*values: float) -> Rows:
    return Rows([{"kind": "draw", "seed": seed, "value": value} for seed, value in enumerate(values)])


@draws
def value(rows: Rows) -> "Series[float]":
    return rows["draw"].set_index("seed").value


@exact
def first(rows: Rows) -> float:
    return float(rows["draw"].value.iloc[0])


def claim(criterion: Criterion | None = None, **settings: object) -> Claim:
    given = {"id": "c", "statement": "It is so.", "criterion": criterion or value() > 1, "source": "Here"}
    return Claim(**(given | settings))  # type: ignore[arg-type]


def judge(judged: Claim, values: Sequence[float] = FIVE, **evidence: object) -> Verdict:
    return evaluate([judged], Evidence(**({"rows": rows_of(*values), "config": CONFIG} | evidence)))[0]  # type: ignore[arg-type]


def registered(*claims: Claim) -> Registration:
    return Registration({each.id: each.registration(CONFIG) for each in claims})


Rule = Callable[[float, float, Criterion], str]

CASES = [
    (value() > 1, 1.1, 2.0, "holds"),
    (value() > 1, 0.1, 0.9, "refuted"),
    (value() > 1, 0.9, 1.1, "undecided"),
    (value() > 1, 1.0, 1.0, "refuted"),
    (value() > 1, -math.inf, math.inf, "undecided"),
    (value() < 1, 0.1, 0.9, "holds"),
    (value() < 1, 1.1, 2.0, "refuted"),
    (value() < 1, 0.9, 1.1, "undecided"),
    (value() < 1, 1.0, 1.0, "refuted"),
    (value().near(1, margin=0.1), 0.95, 1.05, "holds"),
    (value().near(1, margin=0.1), 0.5, 0.85, "refuted"),
    (value().near(1, margin=0.1), 1.15, 1.5, "refuted"),
    (value().near(1, margin=0.1), 0.85, 1.15, "undecided"),
    (value().near(1, margin=0.1), 0.95, 1.15, "undecided"),
    (value().near(1, margin=0.1), 0.85, 1.05, "undecided"),
]


def obeys(rule: Rule) -> bool:
    return all(rule(low, high, criterion) == answer for criterion, low, high, answer in CASES)


def by_the_mean(low: float, high: float, criterion: Criterion) -> str:
    middle = (low + high) / 2
    return decide(middle, middle, criterion)


def turned(low: float, high: float, criterion: Criterion) -> str:
    other = {"above": "below", "below": "above", "equal": "equal"}[criterion.direction]
    return decide(low, high, replace(criterion, direction=other))  # type: ignore[arg-type]


def closed_edge(low: float, high: float, criterion: Criterion) -> str:
    return "holds" if low == high == criterion.threshold else decide(low, high, criterion)


def test_the_rule_obeys_its_table() -> None:
    assert obeys(decide)


@pytest.mark.parametrize("mutant", [by_the_mean, turned, closed_edge])
def test_the_table_rejects_mutants(mutant: Rule) -> None:
    assert not obeys(mutant)


def test_the_interval_decides_whatever_the_pilot_said() -> None:
    weak = Pilot(seeds=(100, 101, 102), estimates={"value": (-9.0, 11.0, 1.0)})
    for pilot in (Pilot(), weak):
        assert judge(claim(value() > 1), pilot=pilot).answer == "holds"
        assert judge(claim(value() < 1), pilot=pilot).answer == "refuted"
    undecided = judge(claim(value() > 1), (0.0, 2.0, 1.0, 0.5, 1.6), pilot=weak)
    assert undecided.answer == "undecided"
    assert f"the pilot showed a power of {undecided.power:.2f}" in undecided.reason
    assert f"{undecided.smallest_effect:.3g} from the threshold could have been seen" in undecided.reason


@pytest.mark.parametrize(
    ("values", "evidence", "reason"),
    [
        (FIVE[:4], {}, "4 of 5 replications"),
        ((), {}, "no estimate"),
        (FIVE, {"preset": "smoke"}, "the preset smoke decides nothing"),
        (FIVE, {"preset": "pilot"}, "the preset pilot decides nothing"),
        (FIVE, {"pilot": Pilot(seeds=(4, 100))}, "seeds of the pilot"),
        (FIVE[:1], {"config": {"seeds": [0]}}, "one replication has no interval"),
    ],
)
def test_what_is_not_tested(values: Sequence[float], evidence: dict[str, object], reason: str) -> None:
    told = judge(claim(value() > 1), values, **evidence)
    assert (told.answer, reason in told.reason) == ("not tested", True)


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_a_failed_replication_leaves_a_claim_undecided(odd: float) -> None:
    told = judge(claim(), (*FIVE[:4], odd))
    assert (told.answer, told.reason) == ("undecided", "an estimate is not a finite number")


def test_replications_follow_the_config() -> None:
    for seeds in (3, 5):
        told = judge(claim(), FIVE[:3], config={"seeds": list(range(seeds))})
        assert (told.needed, told.answer) == (seeds, "holds" if seeds == 3 else "not tested")


def test_exact_claims_have_no_width_and_no_level_to_share() -> None:
    judged = claim(first().near(1, margin=1e-9))
    for number, answer in ((1.0 + 1e-10, "holds"), (1.0 + 1e-8, "refuted")):
        told = judge(judged, [number])
        assert (told.answer, told.low, told.high) == (answer, told.estimate, told.estimate)


def test_a_ratio_is_judged_by_its_logarithm() -> None:
    ratio = value() / first()
    values = (2.0, 4.0, 8.0, 1.0, 16.0)
    told = judge(claim((ratio > 0.01), id="r"), values)
    logs = np.log(np.array(values) / 2.0)
    assert told.estimate == pytest.approx(math.exp(logs.mean()))
    assert math.log(told.low) + math.log(told.high) == pytest.approx(2 * logs.mean())
    assert (
        judge(claim(ratio > 0.01), (*values[:4], -1.0)).reason
        == "an estimate is not a finite number above zero"
    )


def test_equal_estimates_decide_only_for_shares() -> None:
    still = judge(claim(value() > 1), (5.0,) * 5)
    assert (still.answer, "no interval" in still.reason) == ("undecided", True)

    @draws
    def share(rows: Rows) -> Counts:
        trials = Series(12.0, index=rows["draw"].seed)
        return Counts(trials, trials)

    # Each of five replications counts as one trial: the lower end of Clopper and Pearson is (alpha / 2)^(1 / 5).
    told = judge(claim(share() > 0.4))
    assert (told.answer, told.estimate, told.high) == ("holds", 1.0, 1.0)
    assert told.low == pytest.approx((told.alpha / 2) ** (1 / 5))
    far = judge(claim(share() > 0.9))
    assert far.answer == "undecided"
    assert far.reason.endswith("if all 5 replications were 1, the interval would start at 0.478")
    near = judge(claim(share() < 0.9))
    assert near.reason.endswith("if all 5 replications were 0, the interval would end at 0.522")


def test_only_identical_trials_are_pooled() -> None:
    @draws
    def share(rows: Rows, identical: bool) -> Counts:
        return shares_of(rows["draw"].set_index("seed").value, 12, identical=identical)

    ones = (1.0,) * 5
    pooled = judge(claim(share(identical=True) > 0.9), ones)
    assert (pooled.answer, pooled.low) == ("holds", pytest.approx((pooled.alpha / 2) ** (1 / 60)))
    assert judge(claim(share(identical=True) > 0.95), ones).answer == "undecided"
    assert judge(claim(share(identical=False) > 0.9), ones).answer == "undecided"
    # The power of either interval is not stated: a pilot's deviation says nothing of it.
    assert math.isnan(pooled.power)
    assert math.isnan(pooled.smallest_effect)


def test_shares_count_trials_that_the_config_knows() -> None:
    @draws
    def share(rows: Rows) -> Counts:
        return shares_of(rows["draw"].set_index("seed").value, rows.config["runs"])

    values = (0.995, 1.0, 0.005, 0.145, 0.5)  # of 200 runs each
    rows = Rows(rows_of(*values).records, config={"runs": 200})
    assert share()(rows).tolist() == list(values)
    counts = share().counts(rows)
    assert counts is not None
    assert counts.successes.tolist() == [199, 200, 1, 29, 100]


def family() -> list[Claim]:
    return [
        claim(id="p1"),
        claim(id="p2"),
        claim(id="p3", criterion=first() > 1),
        claim(id="o1", origin="ours"),
        claim(id="late", criterion=value() > 2),
    ]


def test_alpha_is_divided_among_what_was_registered_of_each_origin() -> None:
    claims = family()
    evidence = Evidence(rows=rows_of(*FIVE), config=CONFIG, registration=registered(*claims[:4]))
    told = {verdict.claim.id: verdict for verdict in evaluate(claims, evidence)}
    assert {name: verdict.alpha for name, verdict in told.items() if name != "p3"} == {
        "p1": 0.025, "p2": 0.025, "o1": 0.05, "late": pytest.approx(0.05 / 3)
    }  # fmt: skip
    assert [name for name, verdict in told.items() if not verdict.registered] == ["late"]
    assert told["late"].answer == "holds"
    assert told["late"].remarks == ("registered after the run",)


def test_claims_added_or_dropped_later_leave_the_alpha_of_the_registered_ones() -> None:
    claims = family()
    evidence = Evidence(rows=rows_of(*FIVE), config=CONFIG, registration=registered(*claims[:4]))
    for judged in (claims, [*claims, *(claim(id=f"later{n}") for n in range(9))], claims[:1]):
        assert evaluate(judged, evidence)[0].alpha == 0.025
    without_origin = {
        each.id: {name: value for name, value in each.registration(CONFIG).items() if name != "origin"}
        for each in claims[:4]
    }
    evidence = replace(evidence, registration=Registration(without_origin))
    assert evaluate(claims[:1], evidence)[0].alpha == pytest.approx(0.05 / 3)  # o1 might have been published


@pytest.mark.parametrize(
    "changed",
    [
        {"criterion": value() > 4},
        {"criterion": value() < 1},
        {"criterion": value().near(1, margin=9)},
        {"statement": "It is otherwise."},
        {"origin": "ours"},
    ],
)
def test_what_was_moved_after_the_run_says_so(changed: dict[str, object]) -> None:
    told = judge(claim(**changed), registration=registered(claim()))
    assert not told.registered
    assert "registered after the run" in told.remarks
    assert told.answer in ("holds", "refuted")


def as_kept(kept: Claim, rows: Rows) -> dict[str, dict[int, list[float]]]:
    """What a result keeps of a claim."""
    return {
        identity: {entry["version"]: entry["estimates"]}
        for identity, entry in stored_estimates([kept], rows).items()
    }


def negated(rows: Rows) -> "Series[float]":
    return -rows["draw"].set_index("seed").value


def test_a_statistic_cannot_change_unnoticed() -> None:
    rows, kept = rows_of(*FIVE), claim()
    stored = as_kept(kept, rows)
    assert judge(kept, stored=stored).answer == "holds"
    mutant = claim(Statistic("value", negated, draws) > 1)
    told = judge(mutant, stored=stored)
    assert (told.answer, told.reason) == ("altered since the run", "the statistic gave 5.01, and gives -5.01")
    fewer = claim(Statistic("value", lambda rows: value()(rows).iloc[1:], draws) > 1)
    assert judge(fewer, stored=stored).answer == "altered since the run"
    # Renaming a variable, or rounding in another order, is free.
    rounded = claim(Statistic("value", lambda rows: value()(rows) * (1 + 1e-11), draws) > 1)
    assert judge(rounded, stored=stored).answer == "holds"


def test_a_correction_shows_both_numbers() -> None:
    stored = as_kept(claim(), rows_of(*FIVE))
    corrected = Statistic("value", negated, draws).corrected("the sign was wrong")
    told = judge(claim(corrected > 1), stored=stored)
    assert told.answer == "refuted"
    assert told.remarks == ("corrected, the sign was wrong: the statistic gave 5.01, and gives -5.01",)


def test_a_corrected_statistic_is_held_against_its_own_estimates() -> None:
    first = as_kept(claim(), rows_of(*FIVE))
    corrected = claim(value().corrected("another mean") > 1)
    later = as_kept(corrected, rows_of(*FIVE))
    stored = {"c": first["c"] | later["c"]}
    assert judge(corrected, stored=stored).answer == "holds"
    mutant = claim(Statistic("value", negated, draws).corrected("another mean") > 1)
    assert judge(mutant, stored=stored).answer == "altered since the run"


def test_numbers_below_the_tolerance_are_held_against_their_verdict() -> None:
    tiny = claim(first() * 1e-12 > 0, id="tiny")
    stored = as_kept(tiny, rows_of(*FIVE))
    assert judge(tiny, stored=stored).answer == "holds"
    mutant = claim(first() * -1e-12 > 0, id="tiny")
    assert judge(mutant, stored=stored).answer == "altered since the run"


def test_more_replications_than_were_registered_decide_nothing() -> None:
    told = judge(claim(), (*FIVE, 5.2))
    assert (told.answer, told.reason) == ("not tested", "6 of 5 replications")
    twice = Statistic("twice", lambda rows: Series(FIVE, index=[0, 1, 2, 3, 3]), draws)
    assert judge(claim(twice > 1)).answer == "not tested"


def test_a_claim_s_origin_of_an_old_result_is_settled_once() -> None:
    claims = family()[:4]
    entries = {
        each.id: {name: value for name, value in each.registration(CONFIG).items() if name != "origin"}
        for each in claims
    }
    origins = {"p1": "published", "p2": "published", "p3": "published", "o1": "ours"}
    evidence = Evidence(rows=rows_of(*FIVE), config=CONFIG, registration=Registration(entries, origins))  # type: ignore[arg-type]
    relabelled = [replace(claims[0], origin="ours"), *claims[1:]]
    for judged in (claims, relabelled):
        assert evaluate(judged, evidence)[1].alpha == 0.025


def test_a_verdict_that_hangs_on_one_replication_says_so() -> None:
    told = judge(claim(value() > 1), (1.5, 1.6, 1.55, 1.4, 1.45))
    assert told.answer == "holds"
    assert not told.remarks
    leaning = judge(claim(value() > 1), (1.5, 1.2, 1.3, 1.35, 1.2))
    assert leaning.answer == "holds"
    assert leaning.remarks == ("the verdict is undecided if draw 0 is left out",)


@pytest.mark.parametrize(
    "build",
    [
        lambda: value().near(1, margin=0),
        lambda: value().near(1, margin=-0.1),
        lambda: value() > math.nan,
        lambda: claim(criterion=True),
        lambda: claim(origin="theirs"),
        lambda: claim(origin="ours", grade=True),
        lambda: value() - Statistic("other", value().compute, Replication("training", "seeds")),
    ],
)
def test_what_makes_no_sense_is_refused(build: Callable[[], object]) -> None:
    with pytest.raises(InputError):
        build()


def test_quantities_are_combined_by_replication() -> None:
    rows = rows_of(*FIVE)
    doubled = value() + value()
    assert doubled(rows).tolist() == [10.0, 10.2, 9.8, 10.0, 10.1]
    assert (doubled - first())(rows).tolist() == pytest.approx([5.0, 5.2, 4.8, 5.0, 5.1])
    assert (doubled - first()).replication == draws
    assert (first() - first())(rows).tolist() == [0.0]
    assert (value() * 2 - 1)(rows).iloc[0] == 9.0
    assert (doubled - first()).name == "value + value - first"
    assert ((value() / first()).logarithmic, (value() / 2).logarithmic) == (True, False)


def test_what_the_rows_do_not_hold_has_no_estimates() -> None:
    @draws
    def absent(rows: Rows, kind: str) -> "Series[float]":
        return rows[kind].set_index("seed").value

    @draws
    def of_setting(rows: Rows) -> "Series[float]":
        return rows["draw"].pivot_table("value", "seed", "seed")[17]

    for quantity in (absent("other"), of_setting(), absent("other") - value(), value() / absent("other")):
        assert quantity(rows_of(*FIVE)).empty
        assert judge(claim(quantity > 0)).reason.startswith("the rows hold no estimate: ")
    assert absent("other").name == "absent(other)"


def test_rows_come_by_kind_with_their_own_columns() -> None:
    rows = Rows([{"kind": "a", "x": 1}, {"kind": "b", "y": "u"}, {"kind": "a", "x": 2}])
    assert list(rows) == ["a", "b"]
    assert rows["a"].columns.tolist() == ["kind", "x"]
    assert rows["a"].x.dtype == np.int64
    changed = rows["a"]
    changed["z"] = 0
    assert "z" not in rows["a"]
    with pytest.raises(LookupError, match="no rows of the kind 'c'"):
        rows["c"]
    pd.testing.assert_frame_equal(Rows([{"t": "a"}], kind="t")["a"], pd.DataFrame({"t": ["a"]}))
    assert rows.where("a", x=2).x.tolist() == [2]
    assert rows.where("a", x=3).empty
    with pytest.raises(KeyError, match="depth"):
        rows.where("a", depth=1)
