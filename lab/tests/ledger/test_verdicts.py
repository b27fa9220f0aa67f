"""Tests of verdicts: decisions of intervals, error rates, and remarks next to a verdict."""

import math
import re
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
    counts_from_shares,
    exact,
)
from trialogue_lab.ledger.claims.claims import Precondition, Registration
from trialogue_lab.ledger.claims.pilots import Pilot
from trialogue_lab.ledger.claims.statistics import decide
from trialogue_lab.ledger.claims.verdicts import (
    Evidence,
    _describe_larger_run,
    evaluate,
    stored_estimates,
)

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


@draws
def share(rows: Rows, identical: bool = False) -> Counts:
    return counts_from_shares(rows["draw"].set_index("seed").value, 12, identical=identical)


def claim(criterion: Criterion | None = None, **fields: object) -> Claim:
    defaults = {"id": "c", "statement": "It is so.", "criterion": criterion or value() > 1, "source": "Here"}
    return Claim(**(defaults | fields))  # type: ignore[arg-type]


def judge(judged: Claim, values: Sequence[float] = FIVE, **evidence: object) -> Verdict:
    return evaluate([judged], Evidence(**({"rows": rows_of(*values), "config": CONFIG} | evidence)))[0]  # type: ignore[arg-type]


def registered(*claims: Claim, origin: bool = True) -> dict[str, dict[str, object]]:
    registrations = {each.id: each.registration(CONFIG) for each in claims}
    if not origin:
        for registration in registrations.values():
            del registration["origin"]
    return registrations


DECISIONS = [
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


@pytest.mark.parametrize(("criterion", "low", "high", "decision"), DECISIONS)
def test_interval_decides_the_verdict(criterion: Criterion, low: float, high: float, decision: str) -> None:
    assert decide(low, high, criterion) == decision


def test_power_does_not_change_a_verdict() -> None:
    weak = Pilot(seeds=(100, 101, 102), estimates={"value": (-9.0, 11.0, 1.0)})
    for pilot in (Pilot(), weak):
        assert judge(claim(value() > 1), pilot=pilot).answer == "holds"
        assert judge(claim(value() < 1), pilot=pilot).answer == "refuted"
    undecided = judge(claim(value() > 1), (0.0, 2.0, 1.0, 0.5, 1.6), pilot=weak)
    assert undecided.answer == "undecided"
    assert f"the pilot showed a power of {undecided.power:.2f}" in undecided.reason
    assert f"{undecided.smallest_effect:.3g} from the threshold could have been detected" in undecided.reason


def test_an_undecided_claim_has_the_number_of_replications_that_would_decide_it() -> None:
    undecided = judge(claim(value() > 0), (0.0, 2.0, 1.0, -1.5, 1.6))
    assert undecided.to_decide is not None
    assert (
        f"about {undecided.to_decide} repetitions instead of 5 would probably confirm it"
        in undecided.remarks[0]
    )
    below = judge(claim(value() > 1.5), (0.0, 2.0, 1.0, -1.5, 1.6))
    assert below.remarks[0].endswith("would probably refute it")
    far = judge(claim(value() > 0.619), (0.0, 2.0, 1.0, -1.5, 1.6))
    assert far.to_decide is None
    assert far.remarks[0].startswith("more than 10,000 repetitions instead of 5 would be needed")
    assert judge(claim(value() > -9), (0.0, 2.0, 1.0, -1.5, 1.6)).to_decide is None
    assert judge(claim(share(identical=False) > 0.9), (1.0,) * 5).remarks == ()
    assert _describe_larger_run(121, 120, "holds").startswith("about 121 repetitions instead of 120 would")


TWICE = Statistic("twice", lambda rows: Series(FIVE, index=[0, 1, 2, 3, 3]), draws)


@pytest.mark.parametrize(
    ("values", "evidence", "reason"),
    [
        (FIVE[:4], {}, "4 of 5 replications"),
        ((*FIVE, 5.2), {}, "6 of 5 replications"),
        ((), {}, "no estimate"),
        (FIVE, {"preset": "smoke"}, "the preset smoke is too small to test claims"),
        (FIVE, {"preset": "pilot"}, "the preset pilot is too small to test claims"),
        (FIVE, {"pilot": Pilot(seeds=(4, 100))}, "seeds of the pilot"),
        (FIVE[:1], {"config": {"seeds": [0]}}, "one replication has no interval"),
    ],
)
def test_claims_without_sufficient_evidence_are_not_tested(
    values: Sequence[float], evidence: dict[str, object], reason: str
) -> None:
    verdict = judge(claim(value() > 1), values, **evidence)
    assert (verdict.answer, reason in verdict.reason) == ("not tested", True)
    assert judge(claim(TWICE > 1)).answer == "not tested"


@pytest.mark.parametrize(
    ("criterion", "reason"),
    [
        (value() > 5.0, "the interval lies on the claimed side"),
        (value() > 5.02, "precondition not met: It has learned."),
        (value() < 5.0098, "precondition not met: It has learned."),
        (
            value().as_ratio() < 5.0098,
            "the interval lies on the claimed side",
        ),  # the geometric mean is 5.0096
        (
            value() * math.nan > 1,
            "precondition cannot be checked because the rows hold no estimate: It has learned.",
        ),
    ],
)
def test_a_precondition_is_decided_by_a_mean(criterion: Criterion, reason: str) -> None:
    assert judge(claim(preconditions=(Precondition("It has learned.", criterion),))).reason == reason


@pytest.mark.parametrize(
    ("reduced", "shown"),
    [
        (
            {"a": (1, 9), "b": (2, 9), "c": (3, 9)},
            "a = 1 (default: 9), b = 2 (default: 9), c = 3 (default: 9)",
        ),
        (
            dict.fromkeys("abcd", (1, 9)),
            "a = 1 (default: 9), b = 1 (default: 9), c = 1 (default: 9) and 1 other setting",
        ),
        (
            dict.fromkeys("abcde", (1, 9)),
            "a = 1 (default: 9), b = 1 (default: 9), c = 1 (default: 9) and 2 other settings",
        ),
        ({"a": ([1, 2, 3, 4], [1, 2, 3, 4, 5])}, "a = [1, 2, 3, 4] (default: 1 to 5)"),
        ({"a": ([*range(24), 30], [2, 4, 6, 8, 10])}, "a = 0 to 23, 30 (default: 5 values)"),
        ({"a": (list("vwxyz"), [])}, "a = 5 values (default: [])"),
    ],
)
def test_a_smaller_run_names_up_to_three_settings(
    reduced: dict[str, tuple[object, object]], shown: str
) -> None:
    reason = f"the run is smaller than the preset default: {shown}"
    assert judge(claim(), reduced=reduced).reason == reason


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_a_failed_replication_leaves_a_claim_undecided(odd: float) -> None:
    verdict = judge(claim(), (*FIVE[:4], odd))
    assert (verdict.answer, verdict.reason) == ("undecided", "an estimate is not a finite number")


def test_the_config_gives_the_number_of_replications() -> None:
    for seeds in (3, 5):
        verdict = judge(claim(), FIVE[:3], config={"seeds": list(range(seeds))})
        assert (verdict.replications, verdict.required) == (3, seeds)
        assert verdict.answer == ("holds" if seeds == 3 else "not tested")


def test_a_chance_of_failing_is_the_error_rate_of_an_exact_claim() -> None:
    found = judge(claim(first() > 1, chance=0.016))
    assert found.alpha == 0.016
    assert found.remarks[-1] == "compares with simulations: a true statement fails with probability 0.016"
    assert math.isnan(judge(claim(first() > 1)).alpha)


def test_exact_claims_have_an_interval_of_width_zero() -> None:
    for number, answer in ((1.0 + 1e-10, "holds"), (1.0 + 1e-8, "refuted")):
        verdict = judge(claim(first().near(1, margin=1e-9)), [number])
        assert (verdict.answer, verdict.low, verdict.high) == (answer, verdict.estimate, verdict.estimate)
        assert verdict.required == 1


def test_a_ratio_is_judged_by_its_logarithm() -> None:
    ratio, values = value() / first(), (2.0, 4.0, 8.0, 1.0, 16.0)
    verdict = judge(claim(ratio > 0.01), values)
    logs = np.log(np.array(values) / 2.0)
    assert verdict.estimate == pytest.approx(math.exp(logs.mean()))
    assert math.log(verdict.low) + math.log(verdict.high) == pytest.approx(2 * logs.mean())
    reason = judge(claim(ratio > 0.01), (*values[:4], -1.0)).reason
    assert reason == "an estimate is not a finite number above zero"


def test_equal_estimates_decide_only_for_shares() -> None:
    equal = judge(claim(value() > 1), (5.0,) * 5)
    assert (equal.answer, "no interval" in equal.reason) == ("undecided", True)
    # Each of five replications counts as one trial: the lower end of Clopper and Pearson is (alpha / 2)^(1 / 5).
    ones = (1.0,) * 5
    verdict = judge(claim(share() > 0.4), ones)
    assert (verdict.answer, verdict.estimate, verdict.high) == ("holds", 1.0, 1.0)
    assert verdict.low == pytest.approx((verdict.alpha / 2) ** (1 / 5))
    for criterion, end in (
        (share() > 0.9, "if all 5 replications were 1, the interval would start at 0.478"),
        (share() < 0.9, "if all 5 replications were 0, the interval would end at 0.522"),
        (share().near(0.9, margin=0.2), "the interval crosses the threshold"),
    ):
        assert judge(claim(criterion), ones).answer == "undecided"
        assert judge(claim(criterion), ones).reason.endswith(end)


def test_only_identical_trials_are_pooled() -> None:
    ones = (1.0,) * 5
    pooled = judge(claim(share(identical=True) > 0.9), ones)
    assert (pooled.answer, pooled.low) == ("holds", pytest.approx((pooled.alpha / 2) ** (1 / 60)))
    assert pooled.remarks == ()  # four of the replications are pooled too
    assert judge(claim(share(identical=True) > 0.95), ones).answer == "undecided"
    assert judge(claim(share(identical=False) > 0.9), ones).answer == "undecided"
    # The power for shares is unknown.
    assert math.isnan(pooled.power)
    assert math.isnan(pooled.smallest_effect)


def test_counts_are_computed_from_shares() -> None:
    @draws
    def rounded(rows: Rows) -> Counts:
        return counts_from_shares(rows["draw"].set_index("seed").value, rows.config["runs"])

    values = (0.995, 1.0, 0.005, 0.145, 0.5)
    rows = Rows(rows_of(*values).records, config={"runs": 200})
    assert rounded()(rows).tolist() == list(values)
    counts = rounded().counts(rows)
    assert counts is not None
    assert counts.successes.tolist() == [199, 200, 1, 29, 100]


FAMILY = [
    claim(id="p1"),
    claim(id="p2"),
    claim(id="p3", criterion=first() > 1),
    claim(id="o1", origin="ours"),
    claim(id="late", criterion=value() > 2),
]
EVIDENCE = Evidence(rows=rows_of(*FIVE), config=CONFIG, registration=Registration(registered(*FAMILY[:4])))


def test_registered_claims_of_an_origin_share_the_error_rate() -> None:
    verdicts = {verdict.claim.id: verdict for verdict in evaluate(FAMILY, EVIDENCE)}
    alphas = {name: verdict.alpha for name, verdict in verdicts.items() if name != "p3"}
    assert alphas == {"p1": 0.025, "p2": 0.025, "o1": 0.05, "late": pytest.approx(0.05 / 3)}
    assert [name for name, verdict in verdicts.items() if not verdict.registered] == ["late"]
    assert (verdicts["late"].answer, verdicts["late"].remarks) == ("holds", ("registered after the run",))


def test_later_changes_do_not_change_the_error_rate_of_registered_claims() -> None:
    later = [claim(id=f"later{number}") for number in range(9)]
    for judged in (FAMILY, [*FAMILY, *later], FAMILY[:1]):
        assert evaluate(judged, EVIDENCE)[0].alpha == 0.025
    without_origin = registered(*FAMILY[:4], origin=False)
    evidence = replace(EVIDENCE, registration=Registration(without_origin))
    assert evaluate(FAMILY[:1], evidence)[0].alpha == pytest.approx(0.05 / 3)  # o1 might have been published
    origins = {"p1": "published", "p2": "published", "p3": "published", "o1": "ours"}
    evidence = replace(EVIDENCE, registration=Registration(without_origin, origins))  # type: ignore[arg-type]
    relabelled = [replace(FAMILY[0], origin="ours"), *FAMILY[1:4]]
    for judged in (FAMILY[:4], relabelled):
        assert evaluate(judged, evidence)[1].alpha == 0.025


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
def test_a_claim_that_was_changed_after_the_run_is_marked(changed: dict[str, object]) -> None:
    verdict = judge(claim(**changed), registration=Registration(registered(claim())))
    assert not verdict.registered
    assert "registered after the run" in verdict.remarks
    assert verdict.answer in ("holds", "refuted")


def stored(claim: Claim) -> dict[str, dict[int, list[float]]]:
    """Return the stored estimates of a claim, as a result returns them."""
    entries = stored_estimates([claim], rows_of(*FIVE))
    return {name: {entry["version"]: entry["estimates"]} for name, entry in entries.items()}


def changed_claim(compute: Callable[[Rows], "Series[float]"], *corrections: str) -> Claim:
    return claim(Statistic("value", compute, draws, corrections=corrections) > 1)


def negated(rows: Rows) -> "Series[float]":
    return -value()(rows)


def test_changed_statistic_is_detected() -> None:
    assert judge(claim(), stored=stored(claim())).answer == "holds"
    verdict = judge(changed_claim(negated), stored=stored(claim()))
    assert verdict.answer == "altered since the run"
    assert verdict.reason == "the statistic gave 5.01, and gives -5.01"
    fewer = changed_claim(lambda rows: value()(rows).iloc[1:])
    assert judge(fewer, stored=stored(claim())).answer == "altered since the run"
    rounded = changed_claim(lambda rows: value()(rows) * (1 + 1e-11))
    assert judge(rounded, stored=stored(claim())).answer == "holds"


def test_a_correction_shows_both_numbers() -> None:
    verdict = judge(changed_claim(negated, "the sign was wrong"), stored=stored(claim()))
    assert verdict.answer == "refuted"
    assert verdict.remarks == ("corrected, the sign was wrong: the statistic gave 5.01, and gives -5.01",)


def test_a_corrected_statistic_is_compared_with_its_own_estimates() -> None:
    corrected = claim(value().corrected("another mean") > 1)
    both = {"c": stored(claim())["c"] | stored(corrected)["c"]}
    assert [*both["c"]] == [1, 2]
    assert judge(corrected, stored=both).answer == "holds"
    assert judge(changed_claim(negated, "another mean"), stored=both).answer == "altered since the run"


def test_differences_below_the_tolerance_count_if_they_change_the_verdict() -> None:
    tiny = claim(first() * 1e-12 > 0)
    assert judge(tiny, stored=stored(tiny)).answer == "holds"
    assert judge(claim(first() * -1e-12 > 0), stored=stored(tiny)).answer == "altered since the run"
    assert judge(claim(first() * 2e-12 > 0), stored=stored(tiny)).answer == "holds"


def test_a_verdict_that_depends_on_one_replication_has_a_remark() -> None:
    clear = judge(claim(value() > 1), (1.5, 1.6, 1.55, 1.4, 1.45))
    assert (clear.answer, clear.remarks) == ("holds", ())
    unclear = judge(claim(value() > 1), (1.5, 1.2, 1.3, 1.35, 1.2))
    assert unclear.answer == "holds"
    assert unclear.remarks == ("the verdict is undecided if draw 0 is left out",)
    shares = judge(claim(share() > 0.5), (0.9, 0.9, 0.95, 1.0, 0.6))
    assert shares.remarks == ()


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
def test_invalid_claims_are_rejected(build: Callable[[], object]) -> None:
    with pytest.raises(InputError):
        build()


def test_statistics_are_combined_by_replication() -> None:
    rows, doubled = rows_of(*FIVE), value() + value()
    assert doubled(rows).tolist() == [10.0, 10.2, 9.8, 10.0, 10.1]
    difference = doubled - first()
    assert difference(rows).tolist() == pytest.approx([5.0, 5.2, 4.8, 5.0, 5.1])
    assert (difference.replication, difference.name) == (draws, "value + value - first")
    assert (first() - first())(rows).tolist() == [0.0]
    assert (value() * 2 - 1)(rows).iloc[0] == 9.0
    assert ((value() / first()).logarithmic, (value() / 2).logarithmic) == (True, False)


@pytest.mark.parametrize(
    ("statistic", "name"),
    [
        (value() - (value() - first()), "value - (value - first)"),
        (value() - (value() + 1), "value - (value + 1)"),
        (value() - first() / 2, "value - first / 2"),
        ((value() + first()).log(), "log(value + first)"),
    ],
)
def test_the_name_of_a_combination_shows_its_order(statistic: Statistic, name: str) -> None:
    assert statistic.name == name


def test_estimates_and_counts_are_sorted_by_replication() -> None:
    backwards = Rows(rows_of(0.25, 0.5, 1.0).records[::-1])
    counts = share().counts(backwards)
    assert counts is not None
    assert counts.successes.tolist() == [3, 6, 12]
    assert value()(backwards).tolist() == share()(backwards).tolist() == [0.25, 0.5, 1.0]


def test_a_statement_names_the_models_for_which_it_holds() -> None:
    few = replace(draws, objects="the verifiers trained")
    judged = claim(Statistic("value", value().compute, few) > 1)
    assert judged.full_statement == judged.heading == "It is so (for the verifiers trained)."
    assert claim(title="Plainly").heading == "Plainly"


def test_missing_rows_give_no_estimates() -> None:
    @draws
    def absent(rows: Rows, kind: str) -> "Series[float]":
        return rows[kind].set_index("seed").value

    @draws
    def of_setting(rows: Rows) -> "Series[float]":
        return rows["draw"].pivot_table("value", "seed", "seed")[17]

    for statistic in (absent("other"), of_setting(), absent("other") - value(), value() / absent("other")):
        assert statistic(rows_of(*FIVE)).empty
        assert judge(claim(statistic > 0)).reason.startswith("the rows hold no estimate: ")
    assert absent("other").name == "absent(other)"


def test_rows_of_a_kind_have_their_own_columns() -> None:
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
    assert rows.require("a", x=2).x.tolist() == [2]
    with pytest.raises(LookupError, match=re.escape("no rows of the kind 'a' with {'x': 3}")):
        rows.require("a", x=3)
    with pytest.raises(KeyError, match="depth"):
        rows.where("a", depth=1)


def test_a_statistic_is_computed_once_per_measurements() -> None:
    seen = []

    @draws
    def counted(rows: Rows) -> "Series[float]":
        seen.append(rows)
        return rows["draw"].set_index("seed").value

    judged, first_rows, second_rows = claim(counted() > 1), rows_of(*FIVE), rows_of(*(2 * x for x in FIVE))
    means = [
        evaluate([judged], Evidence(rows=rows, config=CONFIG))[0].estimate
        for rows in (first_rows, second_rows, first_rows)
    ]
    assert [id(rows) for rows in seen] == [id(first_rows), id(second_rows)]
    assert means == pytest.approx([np.mean(FIVE), 2 * np.mean(FIVE), np.mean(FIVE)])
