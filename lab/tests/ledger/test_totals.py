"""Tests of withdrawn claims, statements and families in the ledger, on the terminal and on pages."""

import io
import itertools
import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import biased_coin
import pytest
from biased_coin import STUDY
from rich.console import Console

from refusals import expect_error
from trialogue_lab.ledger import (
    Entry,
    WithdrawnClaim,
    families,
    judged,
    ledger_records,
    select,
    statements,
    totals,
)
from trialogue_lab.ledger.claims.answers import LATE, ORIGINS
from trialogue_lab.ledger.claims.verdicts import Answer, Verdict
from trialogue_lab.ledger.claims.withdrawn import read_withdrawn
from trialogue_lab.ledger.counts import families_of
from trialogue_lab.ledger.pages import terminal
from trialogue_lab.ledger.pages.claim_tables import claims_text, find_measured
from trialogue_lab.ledger.pages.documents import fill
from trialogue_lab.ledger.pages.report import render_report
from trialogue_lab.ledger.pages.study_pages import studies_page, study_page
from trialogue_lab.ledger.pages.terminal import print_headlines, print_ledger

GONE = WithdrawnClaim(
    id="late-heads",
    statement="Heads come late.",
    origin="published",
    source="Textbook, chapter 3",
    published="about 0.9",
    statement_id="thesis:V-T31",
    last_verdict="refuted",
    estimate=0.25,
    low=0.125,
    high=0.375,
    result="0a1b2c3d4e5f",
    withdrawn_on="2026-11-22",
    reason="Late was not defined.",
)
SETTING = "The coin is flipped 4,000 times here, and 100 times in the textbook."


def change(entry: Entry, changes: dict[str, dict[str, Any]], **fields: Any) -> Entry:
    """Return the entry with changed claims by id, and changed fields of all verdicts."""
    verdicts = [
        replace(verdict, claim=replace(verdict.claim, **changes.get(verdict.claim.id, {})), **fields)
        for verdict in entry.verdicts
    ]
    return replace(entry, verdicts=tuple(verdicts))


@pytest.fixture(scope="module")
def entry(plain: Entry) -> Entry:
    """Return an entry with a withdrawn claim, a claim with another setting, and two claims of one statement."""
    changes = {
        "more-heads": {"statement_id": "thesis:V-T31", "setting": SETTING},
        "near-the-bias": {"statement_id": "thesis:V-T31"},
        "law": {"title": "The bias is 0.7"},
    }
    return replace(change(plain, changes), withdrawn=(GONE,))


def print_entry(entry: Entry, width: int = 80, **options: Any) -> str:
    file = io.StringIO()
    print_ledger(Console(width=width, file=file, highlight=False), [entry], **options)
    return file.getvalue()


def join_words(text: str) -> str:
    return " ".join(text.replace("│", " ").split())


def test_a_run_prints_the_refuted_statements_first(entry: Entry) -> None:
    verdicts = [
        replace(verdict, answer="refuted" if verdict.claim.id == "near-the-bias" else "holds")
        for verdict in entry.verdicts
    ]
    file = io.StringIO()
    console = Console(width=100, file=file, highlight=False)
    print_headlines(console, replace(entry, verdicts=tuple(verdicts)), count=1)
    out = file.getvalue()
    assert re.findall(r"claim: (\S+)", out) == ["near-the-bias"]
    assert "one per statement and the refuted ones first" in join_words(out)


def test_a_run_lists_decided_claims_before_those_that_only_the_committed_result_decides(entry: Entry) -> None:
    answers = ["undecided"] * (len(entry.verdicts) - 1) + ["holds"]
    mine, committed = (
        replace(
            entry, verdicts=tuple(map(lambda one, answer: replace(one, answer=answer), entry.verdicts, given))
        )
        for given in (answers, ["holds"] * len(answers))
    )
    file = io.StringIO()
    print_headlines(Console(width=100, file=file, highlight=False), mine, committed, count=1)
    out = join_words(file.getvalue())
    assert re.findall(r"claim: (\S+)", out) == [entry.verdicts[-1].claim.id]
    assert f"Claims that only the committed result decides: {len(answers) - 1}." in out


def test_withdrawn_claims_are_printed_with_their_statement_and_without_the_glossary(entry: Entry) -> None:
    out = join_words(print_entry(entry, answers=["withdrawn"]))
    assert "withdrawn Heads come late (late-heads, published)" in out
    assert "interval of that time" not in out


def withdrawn_file(path: Path, **changes: object) -> Path:
    fields = {name: getattr(GONE, name) for name in GONE.__dataclass_fields__} | changes
    path.write_text(json.dumps([fields]), encoding="utf-8")
    return path


def test_withdrawn_claims_are_read_from_the_study_s_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    withdrawn_file(tmp_path / "coin.withdrawn.json", estimate=None)
    monkeypatch.setattr(biased_coin, "__file__", str(tmp_path / "coin.py"))
    [claim] = judged(replace(STUDY), None).withdrawn
    assert math.isnan(claim.estimate)
    assert replace(claim, estimate=GONE.estimate) == GONE


@pytest.mark.parametrize(
    "changes",
    [
        {"last_verdict": "withdrawn"},
        {"origin": "theirs"},
        {"withdrawn_on": "22 November"},
        {"statement_id": "novel:1"},
        {"because": "unknown field"},
        {"reason": None},
    ],
)
def test_invalid_withdrawn_claims_are_rejected(changes: dict[str, object], tmp_path: Path) -> None:
    expect_error(next(iter(changes)), read_withdrawn, withdrawn_file(tmp_path / "withdrawn.json", **changes))


def test_withdrawn_claim_has_a_record(entry: Entry) -> None:
    records = ledger_records([entry])
    assert [record["verdict"] for record in records].count("withdrawn") == 1
    assert len({tuple(record) for record in records}) == 1
    last = records[-1]
    fields = ("last_verdict", "withdrawn_on", "reason", "estimate", "low", "high", "result", "statement_id")
    assert {name: last[name] for name in fields} == {name: getattr(GONE, name) for name in fields}
    assert (last["claim"], last["verdict"]) == ("late-heads", "withdrawn")
    assert {last[name] for name in ("alpha", "threshold", "replications", "preset", "setting")} == {None}
    unknown = replace(entry, withdrawn=(replace(GONE, estimate=math.nan),))
    json.dumps(ledger_records([unknown]), allow_nan=False)
    first = next(record for record in records if record["claim"] == "more-heads")
    assert (first["setting"], first["statement_id"], first["last_verdict"]) == (SETTING, "thesis:V-T31", None)


@pytest.mark.parametrize(
    ("first", "second", "combined"),
    [
        ("refuted", "holds", "refuted"),
        ("undecided", "refuted", "refuted"),
        ("undecided", "holds", "undecided"),
        ("altered since the run", "holds", "undecided"),
        ("holds", "not tested", "holds"),
        ("holds", "holds", "holds"),
        ("not tested", "not tested", "not tested"),
    ],
)
def test_verdicts_are_combined_by_statement(
    first: Answer, second: Answer, combined: str, entry: Entry
) -> None:
    more, fewer, near, *others = entry.verdicts
    for one, other in ((first, second), (second, first)):
        verdicts = (replace(more, answer=one), fewer, replace(near, answer=other), *others)
        found = {each.identifier: each for each in statements([replace(entry, verdicts=verdicts)])}
        # The third published claim has no statement id.
        assert sorted(found) == ["V-T31", "biased-coin/law"]
        assert found["V-T31"].answer == combined
        assert found["V-T31"].verdicts["withdrawn"] == 1
        assert sum(found["V-T31"].verdicts.values()) == 3


def test_a_statement_without_claims_is_withdrawn(entry: Entry) -> None:
    [statement] = statements([replace(entry, verdicts=())])
    assert (statement.document, statement.identifier, statement.answer) == ("thesis", "V-T31", "withdrawn")
    ours = replace(GONE, origin="ours", statement_id="")
    assert statements([replace(entry, verdicts=(), withdrawn=(ours,))]) == []


def test_totals_and_families_are_counted(entry: Entry, plain: Entry) -> None:
    assert totals([entry]) == {
        "statements": {"holds": 2},
        "published claims": {"holds": 3, "withdrawn": 1},
        "our claims": {"holds": 1, "refuted": 1},
        "all claims": {"holds": 4, "refuted": 1, "withdrawn": 1},
    }
    assert list(totals([change(plain, {}, registered=False)])) == [
        "statements",
        "published claims",
        "of published claims, registered after the run",
        "our claims",
        "of our claims, registered after the run",
        "all claims",
    ]
    assert families([entry]).count == 2
    assert families([entry]).alpha == pytest.approx(0.1)
    assert str(families([entry])).startswith(
        "At most 0.10 of the 4 verdicts with sampling error are expected"
    )
    assert families([entry]).derivation.endswith("0.05 for each family.")
    assert families([judged(STUDY, None)]).count == 0
    assert str(families([])) == "No verdict has sampling error."


def test_the_sum_of_error_rates_is_shown_term_by_term() -> None:
    records: list[dict[str, Any]] = [
        {
            "study": study,
            "origin": "ours",
            "verdict": verdict,
            "unit": unit,
            "registered": before,
            "alpha": alpha,
        }
        for study, verdict, unit, before, alpha in (
            ("a", "holds", "draw", True, 0.03),
            ("a", "not tested", "draw", True, 0.02),
            ("a", "refuted", "draw", False, 0.04),
            ("b", "holds", "exact", True, 0.01),
            ("b", "holds", "exact", True, None),
        )
    ]
    found = families_of(records)
    assert (found.count, found.registered, found.alpha) == (2, 1, pytest.approx(0.08))
    assert str(found).startswith("At most 0.08 of the 3 verdicts")
    assert found.derivation.endswith(
        "0.05 for each of 1 family with claims registered before the run, which makes 0.05, less 0.02 for claims "
        "that are not tested or withdrawn, plus 0.04 for claims registered after the run, plus 0.01 for comparisons "
        "with simulations."
    )
    late = families_of(records[2:3])
    assert late.derivation.endswith("and one origin: 0.04 for claims registered after the run.")
    assert "of the verdict with" in str(late)


def test_claims_are_selected_by_verdict_and_origin(entry: Entry) -> None:
    def ids(**options: Sequence[str]) -> list[str]:
        return [str(record["claim"]) for record in ledger_records(select([entry], **options))]

    assert ids(answers=["withdrawn"]) == ["late-heads"]
    assert ids(answers=["refuted", "withdrawn"], origins=["ours"]) == ["fewer-heads"]
    assert len(ids()) == len(STUDY.claims) + 1
    assert select([entry], answers=["undecided"]) == []


@pytest.mark.parametrize("width", [80, 140])
def test_terminal_shows_published_and_measured_numbers(width: int, entry: Entry) -> None:
    text = print_entry(entry, width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    words = join_words(text)
    for shown in (
        "All claims were registered before this run.",
        "Claims of the publication: 3 (3 hold)",
        "Claims of this project: 2 (1 refuted, 1 hold)",
        "Not shown: the claims of this project that hold.",
        f"[1] {SETTING}",
        "a confidence level of 97.5 %, from independent repetitions (5 × draw)",
        "*: this project chose the threshold",
        "Withdrawn claims: 1.",
    ):
        assert shown in words
    assert "published: 0.7" in words
    heading, note = next(itertools.pairwise(place for place, line in enumerate(lines) if "[1]" in line))
    assert all(
        line.startswith(" ") for line in lines[heading + 1 : note + 1]
    )  # No other claim is between them.
    more = next(verdict for verdict in entry.verdicts if verdict.claim.id == "more-heads")
    [place] = [place for place, line in enumerate(lines) if "heads more often" in line]
    assert lines[place].split()[0] == "holds"
    assert lines[place + 1].split()[0] == f"{more.estimate:.3f}"
    assert lines[place + 1].endswith("], holds if > 0.5*")
    assert words.index("is undecided otherwise") > words.index("Claims of the publication")
    assert "Two heads come" not in text
    everything = print_entry(entry, width, verbose=True)
    assert {claim.id for claim in STUDY.claims} <= set(everything.split())
    assert "withdrawn on 2026-11-22; last verdict: refuted, 0.250 [0.125, 0.375]" in join_words(everything)


def test_verbose_only_adds_lines(entry: Entry) -> None:
    titled = change(entry, {"more-heads": {"title": "Heads are frequent", "measured": "fraction of heads"}})
    brief, full = (
        print_entry(titled, verbose=verbose, origins=ORIGINS).splitlines() for verbose in (False, True)
    )
    rest = iter(full)
    assert all(line in rest for line in brief)  # In the same order.
    added = join_words("\n".join(full))
    more = next(verdict.claim for verdict in titled.verdicts if verdict.claim.id == "more-heads")
    assert (
        f"source: {more.source} claim: more-heads (5 × draw) registered statement: {more.statement}" in added
    )


def test_similar_claims_share_their_texts(plain: Entry) -> None:
    coin = plain.verdicts[0]
    claims = [
        replace(coin.claim, id=name, title=name, measured="share of heads") for name in ("A", "B", "C", "D")
    ]
    verdicts = [replace(coin, claim=claim, remarks=()) for claim in claims]
    noted = replace(verdicts[3], remarks=("undecided if draw 1 is left out",))

    def count(*chosen: Verdict, verbose: bool = False) -> int:
        text = print_entry(replace(plain, verdicts=chosen), verbose=verbose)
        assert all(f" {verdict.claim.title} (" in text for verdict in chosen)
        return text.count("measured: share of heads")

    assert count(*verdicts) == count(*verdicts[:3]) == 1
    assert count(*verdicts[:3], noted) == count(*verdicts[:2]) == 2
    assert count(*verdicts[:3], verbose=True) == 3
    assert "3 claims, each holds if > 0.5*; measured" in print_entry(
        replace(plain, verdicts=tuple(verdicts[:3]))
    )


def test_terms_and_measured_numbers_are_explained(plain: Entry) -> None:
    changed = change(plain, {"more-heads": {"title": "Heads are frequent", "measured": "fraction of heads"}})
    explained = replace(changed, study=replace(plain.study, glossary={"bias": "probability of heads"}))
    words = join_words(print_entry(explained))
    assert "bias probability of heads" in words
    assert "measured: fraction of heads" in words
    assert "| bias | probability of heads |" in study_page(explained)
    assert "<br>*Measured: fraction of heads*" in study_page(explained)
    assert "Measured: fraction of heads" in render_report([explained])


def test_a_law_of_a_registered_statement_is_called_distribution() -> None:
    record = {"title": "T", "measured": None, "statement": "It falls (largest error, all laws of the law)."}
    assert find_measured(record) == "largest error, all distributions of the distribution"
    assert find_measured(record | {"title": None}) == ""
    assert find_measured(record | {"measured": "mean"}) == "mean"


def test_terminal_marks_claims_registered_after_the_run(entry: Entry) -> None:
    words = join_words(print_entry(change(entry, {}, registered=False)))
    assert "5 of 5 claims were registered after this run and are marked" in words
    assert words.count(f" {LATE} ") == 4  # The claim of this project that holds is not shown.


def test_a_remark_is_shown_only_if_it_changes_the_meaning_of_the_verdict(entry: Entry) -> None:
    remarks = (
        "corrected, by logarithms: the mean, 0.5, is unchanged",
        "corrected, by pairs: the statistic gave 0.4, and gives 0.5",
        "the verdict is undecided if draw 1 is left out",
    )
    remarked = change(entry, {}, remarks=remarks)
    words = join_words(print_entry(remarked))
    assert "by logarithms" not in words
    assert (
        "corrected, by pairs: the statistic gave 0.4, and gives 0.5 undecided if draw 1 is left out" in words
    )
    assert "by logarithms" in join_words(print_entry(remarked, verbose=True))


def test_a_common_setting_and_the_answer_are_printed_once(
    plain: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = [verdict.claim.id for verdict in plain.verdicts if verdict.claim.origin == "published"]
    settings = {identity: {"setting": "Coins are fair. The source tosses dice."} for identity in published}
    changed = change(plain, settings | {"more-heads": {"setting": "Coins are fair. Tosses are few."}})
    assert plain.result is not None
    monkeypatch.setattr(terminal, "COMMITTED", plain.result.folder.parents[1])
    words = join_words(print_entry(replace(changed, study=replace(plain.study, answer="Heads."))))
    assert words.count("Coins are fair.") == words.count("answer: Heads.") == 1


def test_terminal_shows_totals_of_several_studies(entry: Entry) -> None:
    for verbose in (False, True):
        file = io.StringIO()
        print_ledger(Console(width=80, file=file), [entry, entry], verbose=verbose)
        words = join_words(file.getvalue())
        for shown in ("our claims 4 2 2 0", "sampling error are expected to be wrong"):
            assert shown in words
        assert ("sum of the error rates of 2 families" in words) == verbose


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        ("natural logarithm of the ratio", "without the logarithm: 2.0 [1.5, 3.0], holds if > 1"),
        ("smallest decimal logarithm of the ratio", "without the logarithm: 4.9 [2.5, 12.5], holds if > 1"),
        ("slope of the natural logarithm", ""),
    ],
)
def test_a_logarithm_is_also_printed_without_the_logarithm(
    measured: str, expected: str, entry: Entry
) -> None:
    numbers = {"estimate": math.log(2), "low": math.log(1.5), "high": math.log(3), "threshold": 0.0}
    record = (
        ledger_records([entry])[0] | numbers | {"direction": "above", "margin": 0.0, "measured": measured}
    )
    shown = join_words(claims_text([record | {"title": "Twice as many", "unit": "seed"}], 100))
    assert expected in shown
    assert ("without the logarithm" in shown) == bool(expected)


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [
        (0.9, "at least 36 repetitions are needed to confirm it (now 20)"),
        (0.6, "repetitions that would decide it: not estimated for shares"),
    ],
)
def test_an_undecided_claim_on_shares_says_how_many_repetitions_it_needs(
    threshold: float, expected: str, entry: Entry
) -> None:
    record = ledger_records([entry])[0] | {
        "verdict": "undecided",
        "reason": "the interval crosses the threshold; if all 20 replications were 1, the interval would start at 0.8",
        "direction": "above",
        "threshold": threshold,
        "alpha": 0.05,
        "replications": 20,
    }
    assert expected in join_words(claims_text([record], 100))


def test_the_reason_of_an_undecided_claim_is_shown_on_request(entry: Entry) -> None:
    reason = "the interval includes the threshold; 0.1 from the threshold could have been detected"
    unclear = change(entry, {}, answer="undecided", reason=reason)
    assert "could have been detected" not in join_words(print_entry(unclear))
    verbose = join_words(print_entry(unclear, verbose=True))
    assert verbose.count("could have been detected") == len(entry.verdicts)
    # A reason that is not about power is always shown.
    lost = change(entry, {}, answer="undecided", low=math.nan, reason="an estimate is not a finite number")
    assert "an estimate is not a finite number" in join_words(print_entry(lost))


def test_report_shows_withdrawn_claims_and_totals(entry: Entry) -> None:
    page = render_report([entry])
    text = join_words(re.sub(r"<[^>]+>", " ", page))
    for shown in (
        "Statements (2): 2 holds",
        "Published claims (4): 3 holds · 1 withdrawn",
        "error rates of 2 families",
        f"Setting: {SETTING}",
        "The bias is 0.7 Registered statement: The law is the bias.",
        "Withdrawn claims (1)",
        "last verdict: refuted, 0.250 [0.125, 0.375]",
        GONE.reason,
    ):
        assert shown in text
    assert re.search(r"Estimate</dt><dd>[\d.]+</dd></div>\s*<div><dt>Published</dt><dd>0.7</dd>", page)


def test_study_pages_show_withdrawn_claims_and_totals(entry: Entry) -> None:
    page = study_page(entry)
    [line] = [line for line in page.splitlines() if line.startswith("| A coin shows heads more")]
    assert f"<br>*Setting: {SETTING}*" in line
    assert re.search(r"\*\*holds\*\* \| 0\.\d+ \\\[0\.\d+, 0\.\d+\\\] \| \\> 0\.5\\\* \| 0\.7 \|", line)
    assert "### Withdrawn claims (1)" in page
    assert "`late-heads`): withdrawn on 2026-11-22; last verdict: refuted" in page
    overview = studies_page([entry])
    assert "| published claims | 4 | 3 | 0 | 1 |" in overview
    assert "error rates of 2 families" in overview


def test_templates_quote_statements_families_and_traces(entry: Entry) -> None:
    text = fill(
        '{{ statement_count() }} {{ statement_count("biased-coin", "holds", "thesis") }} '
        '{{ statement_count(None, None, "potts") }} {{ count() }} {{ count(None, "published", "withdrawn") }} '
        "{{ families().count }}\n\n{{ totals() }}\n\n"
        '{% for claim in traced("thesis:V-T31", "thesis:V-T31.*") %}{{ claim.id }}: {{ claim.answer }}; {% endfor %}'
        '{{ traced("thesis:V-T3") | length }}{{ traced("thesis:V-*") | length }}',
        [entry],
    )
    first, table, traced = text.strip().split("\n\n")
    assert first == "2 1 0 5 1 2"
    assert "| published claims | 4 | 3 | 0 | 1 |" in table
    assert traced == "more-heads: holds; near-the-bias: holds; late-heads: withdrawn; 03"
    expect_error("document='novel'", fill, '{{ statement_count(document="novel") }}', [entry])
