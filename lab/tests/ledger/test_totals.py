"""Withdrawn claims, statements and families: what the ledger lists, counts and shows."""

import io
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

from trialogue.errors import InputError
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
from trialogue_lab.ledger.claims.verdicts import Answer
from trialogue_lab.ledger.claims.withdrawn import read_withdrawn
from trialogue_lab.ledger.pages.documents import fill
from trialogue_lab.ledger.pages.report import render_report
from trialogue_lab.ledger.pages.study_pages import studies_page, study_page
from trialogue_lab.ledger.pages.terminal import print_ledger

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
    reason="Late was nowhere defined.",
)
SETTING = "The coin is flipped 4,000 times here, and 100 times in the textbook."


@pytest.fixture(scope="module")
def entry(plain: Entry) -> Entry:
    """An entry with a withdrawn claim, a claim with another setting, and two claims of one statement."""
    changes = {
        "more-heads": {"statement_id": "thesis:V-T31", "setting": SETTING},
        "near-the-bias": {"statement_id": "thesis:V-T31"},
    }
    verdicts = [
        replace(verdict, claim=replace(verdict.claim, **changes.get(verdict.claim.id, {})))
        for verdict in plain.verdicts
    ]
    return replace(plain, verdicts=tuple(verdicts), withdrawn=(GONE,))


def printed(entries: Sequence[Entry], width: int = 80, **options: Any) -> str:
    out = Console(width=width, file=io.StringIO(), highlight=False)
    print_ledger(out, entries, **options)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def words(text: str) -> str:
    return " ".join(text.split())


def answered(entry: Entry, **answers: Answer) -> Entry:
    """`entry` with other verdicts, by the id of the claim with "_" for "-"."""
    named = {name.replace("_", "-"): answer for name, answer in answers.items()}
    verdicts = [
        replace(verdict, answer=named.get(verdict.claim.id, verdict.answer)) for verdict in entry.verdicts
    ]
    return replace(entry, verdicts=tuple(verdicts))


def withdrawn_file(path: Path, **changes: object) -> Path:
    fields = {name: getattr(GONE, name) for name in GONE.__dataclass_fields__} | changes
    path.write_text(json.dumps([fields]), encoding="utf-8")
    return path


def test_a_study_lists_the_claims_in_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    ],
)
def test_bad_entries_of_withdrawn_claims_are_refused(changes: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=next(iter(changes))):
        read_withdrawn(withdrawn_file(tmp_path / "withdrawn.json", **changes))


def test_a_withdrawn_claim_is_a_record_with_all_keys(entry: Entry) -> None:
    records = ledger_records([entry])
    assert [record["verdict"] for record in records].count("withdrawn") == 1
    assert len({tuple(record) for record in records}) == 1
    last = records[-1]
    known = {
        "claim": "late-heads",
        "verdict": "withdrawn",
        "last_verdict": "refuted",
        "withdrawn_on": "2026-11-22",
        "reason": GONE.reason,
        "estimate": 0.25,
        "low": 0.125,
        "high": 0.375,
        "result": "0a1b2c3d4e5f",
        "statement_id": "thesis:V-T31",
    }
    assert known.items() <= last.items()
    assert {last[name] for name in ("alpha", "threshold", "replications", "preset", "setting")} == {None}
    json.dumps(
        ledger_records([replace(entry, withdrawn=(replace(GONE, estimate=math.nan),))]), allow_nan=False
    )
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
def test_verdicts_on_one_statement_have_one_answer(
    first: Answer, second: Answer, combined: str, entry: Entry
) -> None:
    for pair in ((first, second), (second, first)):
        found = statements([answered(entry, more_heads=pair[0], near_the_bias=pair[1])])
        named = {statement.identifier: statement for statement in found}
        # The third published claim has no statement id.
        assert sorted(named) == ["V-T31", "biased-coin/law"]
        assert named["V-T31"].answer == combined
        assert named["V-T31"].verdicts["withdrawn"] == 1
        assert sum(named["V-T31"].verdicts.values()) == 3


def test_a_statement_without_claims_is_withdrawn(entry: Entry) -> None:
    [statement] = statements([replace(entry, verdicts=())])
    assert (statement.document, statement.identifier, statement.answer) == ("thesis", "V-T31", "withdrawn")
    ours = replace(GONE, origin="ours", statement_id="")
    assert statements([replace(entry, verdicts=(), withdrawn=(ours,))]) == []


def test_totals_count_statements_claims_and_families(entry: Entry, plain: Entry) -> None:
    assert totals([entry]) == {
        "statements": {"holds": 2},
        "published claims": {"holds": 3, "withdrawn": 1},
        "our claims": {"holds": 1, "refuted": 1},
    }
    late = [replace(verdict, registered=False) for verdict in plain.verdicts]
    assert list(totals([replace(plain, verdicts=tuple(late))])) == [
        "statements",
        "published claims, registered after the run",
        "our claims, registered after the run",
    ]
    found = families([entry])
    assert found.count == 2
    assert found.alpha == pytest.approx(0.1)
    assert "2 families" in str(found)
    # Without a result nothing can be wrong; the exact claim alone has no sampling error.
    assert families([judged(STUDY, None)]).count == 0
    assert str(families([])) == "No verdict has sampling error."


def test_selected_claims(entry: Entry) -> None:
    def ids(**options: Any) -> list[str]:
        return [str(record["claim"]) for record in ledger_records(select([entry], **options))]

    assert ids(answers=["withdrawn"]) == ["late-heads"]
    assert ids(answers=["refuted", "withdrawn"], origins=["ours"]) == ["fewer-heads"]
    assert len(ids()) == len(STUDY.claims) + 1
    assert select([entry], answers=["undecided"]) == []


@pytest.mark.parametrize("width", [80, 140])
def test_the_terminal_shows_the_ledger_without_splitting_words(width: int, entry: Entry) -> None:
    text = printed([entry], width)
    assert max(map(len, text.splitlines())) <= width
    for verdict in entry.verdicts:
        [line] = [line for line in text.splitlines() if verdict.claim.id in line.split()]
        assert line.startswith(verdict.answer)
    for shown in (
        f"setting: {SETTING}",
        "late-heads (published)",
        "withdrawn on 2026-11-22; last verdict: refuted, 0.250 [0.125, 0.375] (in print: about 0.9). Late",
        "statements 2 2 0 0",
        "published claims 4 3 0 1",
        "our claims 2 1 1 0",
        "belong to 2 families",
        "at most 0.1 verdicts are expected to be wrong",
    ):
        assert shown in words(text)
    # The source's number follows the estimate.
    estimate = next(verdict.estimate for verdict in entry.verdicts if verdict.claim.id == "more-heads")
    assert re.search(rf"^ +{estimate:.3f}  0\.7 +\[", text, re.MULTILINE)


def test_headline_claims_come_first_and_once(entry: Entry) -> None:
    text = printed([replace(entry, study=replace(STUDY, headline=("odds", "law")))])
    named = re.findall(r"^(?:holds|refuted) +([a-z-]+) ", text, re.MULTILINE)
    assert named == ["odds", "law", "more-heads", "near-the-bias", "fewer-heads"]
    assert "(ours, 5 × draw)" in text
    for headline in (("odds", "odds"), ("tails",)):
        with pytest.raises(InputError, match="headline"):
            replace(STUDY, headline=headline)


def test_power_is_shown_on_request(entry: Entry) -> None:
    reason = "the interval crosses the threshold; 0.1 from the threshold could have been seen"
    verdicts = [replace(verdict, answer="undecided", reason=reason) for verdict in entry.verdicts]
    unclear = replace(entry, verdicts=tuple(verdicts))
    assert "could have been seen" not in words(printed([unclear]))
    assert words(printed([unclear], verbose=True)).count("could have been seen") == len(verdicts)
    # A reason that is not about power is always shown.
    lost = replace(verdicts[0], low=math.nan, reason="an estimate is not a finite number")
    assert lost.reason in words(printed([replace(entry, verdicts=(lost,))]))


def test_the_report_shows_what_the_terminal_shows(entry: Entry) -> None:
    page = render_report([entry])
    text = words(re.sub(r"<[^>]+>", " ", page))
    for shown in (
        "Statements (2): 2 holds",
        "Published claims (4): 3 holds · 1 withdrawn",
        "belong to 2 families",
        f"Setting: {SETTING}",
        "Withdrawn claims: 1",
        "last verdict: refuted, 0.250 [0.125, 0.375]",
        GONE.reason,
    ):
        assert shown in text
    assert re.search(r"Estimate</dt><dd>[\d.]+</dd></div>\s*<div><dt>In print</dt><dd>0.7</dd>", page)


def test_pages_of_studies_show_it_too(entry: Entry) -> None:
    page = study_page(entry)
    [line] = [line for line in page.splitlines() if line.startswith("| A coin shows heads more")]
    assert f"<br>*Setting: {SETTING}*" in line
    assert re.search(r"\*\*holds\*\* \| 0\.\d+ \| 0\.7 \| \\?\[", line)
    assert "### Withdrawn claims: 1" in page
    assert "`late-heads`): withdrawn on 2026-11-22; last verdict: refuted" in page
    overview = studies_page([entry])
    assert "| published claims | 4 | 3 | 0 | 1 |" in overview
    assert "belong to 2 families" in overview


def test_texts_quote_statements_families_and_traces(entry: Entry) -> None:
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
    with pytest.raises(InputError, match="document='novel'"):
        fill('{{ statement_count(document="novel") }}', [entry])
