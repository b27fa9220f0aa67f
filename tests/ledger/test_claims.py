"""The verdict rule, exactly, and rules that are almost it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import biased_coin
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas import DataFrame
from scipy import stats

from trialogue.errors import InputError
from trialogue.ledger import Claim, Pilot, claims

NONE = DataFrame()
FIRM = Pilot(seeds=(100, 101), estimates=(5.0, 5.001))


def claim(direction: str, threshold: float = 1.0, margin: float = 0.0, **settings: object) -> Claim:
    return biased_coin.claim(
        "c", direction=direction, threshold=threshold, margin=margin, **({"pilot": FIRM} | settings)
    )


Rule = Callable[[float, float, Claim], str]

CASES = [
    ("above", 0.0, 1.1, 2.0, "holds"),
    ("above", 0.0, 0.1, 0.9, "refuted"),
    ("above", 0.0, 0.9, 1.1, "undecided"),
    ("above", 0.0, 1.0, 1.0, "refuted"),
    ("above", 0.0, -math.inf, math.inf, "undecided"),
    ("below", 0.0, 0.1, 0.9, "holds"),
    ("below", 0.0, 1.1, 2.0, "refuted"),
    ("below", 0.0, 0.9, 1.1, "undecided"),
    ("below", 0.0, 1.0, 1.0, "refuted"),
    ("below", 0.0, -math.inf, math.inf, "undecided"),
    ("equal", 0.1, 0.95, 1.05, "holds"),
    ("equal", 0.1, 0.5, 0.85, "refuted"),
    ("equal", 0.1, 1.15, 1.5, "refuted"),
    ("equal", 0.1, 0.85, 1.15, "undecided"),
    ("equal", 0.1, 0.95, 1.15, "undecided"),
    ("equal", 0.1, 0.85, 1.05, "undecided"),
    ("equal", 0.0, 1.0, 1.0, "holds"),
]


def obeys(rule: Rule) -> bool:
    return all(
        rule(low, high, claim(direction, 1.0, margin)) == answer
        for direction, margin, low, high, answer in CASES
    )


def by_the_mean(low: float, high: float, claim: Claim) -> str:
    middle = (low + high) / 2
    return claims.decide(middle, middle, claim)


def never_refuted(low: float, high: float, claim: Claim) -> str:
    answer = claims.decide(low, high, claim)
    return "undecided" if answer == "refuted" else answer


def one_sided_equal(low: float, high: float, claim: Claim) -> str:
    if claim.direction == "equal" and low >= claim.threshold - claim.margin:
        return "holds"
    return claims.decide(low, high, claim)


def crossing_is_equal(low: float, high: float, claim: Claim) -> str:
    if claim.direction == "equal" and low <= claim.threshold <= high:
        return "holds"
    return claims.decide(low, high, claim)


def turned(low: float, high: float, claim: Claim) -> str:
    flipped = {"above": "below", "below": "above", "equal": "equal"}[claim.direction]
    return claims.decide(low, high, replace(claim, direction=flipped))  # type: ignore[arg-type]


def closed_edge(low: float, high: float, claim: Claim) -> str:
    return "holds" if low == high == claim.threshold else claims.decide(low, high, claim)


def test_the_rule_obeys_its_table() -> None:
    assert obeys(claims.decide)


@pytest.mark.parametrize(
    "mutant", [by_the_mean, never_refuted, one_sided_equal, crossing_is_equal, turned, closed_edge]
)
def test_the_table_rejects_mutants(mutant: Rule) -> None:
    assert not obeys(mutant)


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=12), st.floats(1e-4, 0.5))
def test_the_interval_is_student_s(values: list[float], alpha: float) -> None:
    mean, low, high = claims.interval(values, alpha)
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    critical = stats.t(len(values) - 1).isf(alpha / 2)
    assert (mean, low, high) == pytest.approx(
        (np.mean(values), np.mean(values) - critical * error, np.mean(values) + critical * error),
        rel=1e-9,
        abs=1e-9,
    )


def test_one_replication_has_no_interval() -> None:
    assert claims.interval([3.0], 0.05) == (3.0, -math.inf, math.inf)


@pytest.mark.parametrize("direction", ["above", "below"])
@pytest.mark.parametrize("replications", [2, 5, 20])
@pytest.mark.parametrize("mean", [0.2, 1.0, 1.7])
def test_power_is_the_noncentral_t_s(direction: str, replications: int, mean: float) -> None:
    pilot = Pilot(seeds=(1, 2), estimates=(mean - 0.5, mean + 0.5))
    effect = (mean - 1.0) / (math.sqrt(0.5) / math.sqrt(replications))
    critical = stats.t(replications - 1).isf(0.01 / 2)
    law = stats.nct(replications - 1, effect) if effect else stats.t(replications - 1)
    exact = law.sf(critical) + law.cdf(-critical)
    shown = claims.power(claim(direction, pilot=pilot, replications=replications), 0.01)
    assert shown == pytest.approx(exact, abs=1e-5)


def test_power_of_equality_is_the_share_of_decided_runs() -> None:
    pilot = Pilot(seeds=(1, 2), estimates=(0.9, 1.1))
    judged = claim("equal", 1.05, 0.3, pilot=pilot, replications=4)
    deviation = float(np.std(pilot.estimates, ddof=1))
    means = stats.norm(1.0, deviation / 2).ppf((np.arange(400) + 0.5) / 400)
    halves = (
        stats.t(3).isf(0.025) * deviation / 2 * np.sqrt(stats.chi2(3).ppf((np.arange(400) + 0.5) / 400) / 3)
    )
    decided = [claims.decide(m - h, m + h, judged) != "undecided" for m in means for h in halves[::4]]
    assert claims.power(judged, 0.05) == pytest.approx(np.mean(decided), abs=5e-3)


def test_power_without_spread_or_pilot() -> None:
    still = Pilot(seeds=(1, 2), estimates=(2.0, 2.0))
    assert claims.power(claim("above", pilot=still), 0.01) == 1
    assert math.isnan(claims.power(claim("above", pilot=None), 0.01))
    assert claims.power(claim("above", unit="exact", replications=1, pilot=None), 0.01) == 1


def verdict(claim: Claim, estimates: Sequence[float], **settings: object) -> claims.Verdict:
    return claims.evaluate([replace(claim, estimate=lambda _: estimates)], NONE, **settings)[0]  # type: ignore[arg-type]


FIVE = (5.0, 5.1, 4.9, 5.0, 5.05)


def test_verdicts_with_power() -> None:
    assert verdict(claim("above"), FIVE).answer == "holds"
    assert verdict(claim("below"), FIVE).answer == "refuted"
    assert verdict(claim("above"), (0.0, 2.0, 1.0, 0.5, 1.6)).answer == "undecided"


@pytest.mark.parametrize(
    ("settings", "estimates", "reason"),
    [
        ({}, FIVE[:4], "4 of 5 replications"),
        ({}, (), "no estimate"),
        ({}, (*FIVE[:4], math.nan), "not a finite number"),
        ({}, (*FIVE[:4], math.inf), "not a finite number"),
        ({"pilot": None}, FIVE, "no pilot"),
        ({"pilot": Pilot(seeds=(1, 2), estimates=(-9.0, 11.0))}, FIVE, "power of 0.0"),
        ({"unit": "exact", "replications": 1, "pilot": None}, (1.0, 2.0), "one number, the rows give 2"),
    ],
)
def test_without_power_a_claim_is_not_tested(
    settings: dict[str, object], estimates: Sequence[float], reason: str
) -> None:
    told = verdict(claim("above", **settings), estimates)
    assert told.answer == "not tested"
    assert reason in told.reason


def test_seeds_of_the_pilot_decide_nothing() -> None:
    kept = claim("above")
    assert kept.pilot is not None
    for seed, answer in ((kept.pilot.seeds[0], "not tested"), (max(kept.pilot.seeds) + 1, "holds")):
        rows = DataFrame({"seed": [seed]})
        told = claims.evaluate([replace(kept, estimate=lambda _: FIVE)], rows)[0]
        assert told.answer == answer
        assert ("seeds of the pilot" in told.reason) == (answer == "not tested")


def test_smoke_decides_nothing() -> None:
    told = verdict(claim("above"), FIVE, preset="smoke")
    assert (told.answer, told.estimate) == ("not tested", pytest.approx(np.mean(FIVE)))


def test_a_claim_must_stand_as_it_was_registered() -> None:
    kept = claim("above")
    registered = {"c": kept.registration()}
    assert verdict(kept, FIVE, registered=registered).answer == "holds"
    assert "added" in verdict(kept, FIVE, registered={}).reason
    for changed in (
        replace(kept, threshold=4.0),
        replace(kept, direction="below"),
        replace(kept, replications=4),
        replace(kept, unit="training"),
        replace(kept, pilot=Pilot(seeds=(100, 101), estimates=(5.0, 5.002))),
    ):
        told = verdict(changed, FIVE, registered=registered)
        assert (told.answer, "altered" in told.reason) == ("not tested", True)


def test_exact_claims_have_no_width() -> None:
    exact = claim("equal", 1.0, 1e-9, unit="exact", replications=1, pilot=None)
    told = verdict(exact, [1.0 + 1e-10])
    assert (told.answer, told.low, told.high) == ("holds", told.estimate, told.estimate)
    assert verdict(exact, [1.0 + 1e-8]).answer == "refuted"
    assert verdict(exact, [1.0], registered={}).answer == "holds"


def test_alpha_is_divided_by_the_number_of_claims() -> None:
    judged = claims.evaluate([replace(claim("above"), estimate=lambda _: list(FIVE))] * 4, NONE)
    critical = stats.t(4).isf(0.05 / 4 / 2)
    half = critical * np.std(FIVE, ddof=1) / math.sqrt(5)
    assert {told.alpha for told in judged} == {0.05 / 4}
    assert judged[0].high - judged[0].estimate == pytest.approx(half)


@pytest.mark.parametrize(
    "settings",
    [
        {"direction": "above", "margin": 0.1},
        {"direction": "equal", "margin": -0.1},
        {"direction": "above", "replications": 1},
        {"direction": "above", "unit": "exact", "replications": 5, "pilot": None},
        {"direction": "above", "unit": "exact", "replications": 1},
    ],
)
def test_a_claim_that_makes_no_sense_is_refused(settings: dict[str, object]) -> None:
    with pytest.raises(InputError):
        claim(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("estimates", [(1.0,), (1.0, math.nan)])
def test_a_pilot_needs_numbers(estimates: tuple[float, ...]) -> None:
    with pytest.raises(InputError):
        Pilot(seeds=(1, 2), estimates=estimates)
