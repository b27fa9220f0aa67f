"""Tests of the screens of `trialogue list` and `trialogue ledger`, and of the file of stored verdicts."""

import io
import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from trialogue_lab import studies
from trialogue_lab.ledger import Entry
from trialogue_lab.ledger.pages import screens
from trialogue_lab.ledger.pages.claim_tables import format_criterion
from trialogue_lab.ledger.pages.terminal import print_ledger
from trialogue_lab.ledger.stored import COMMITTED, StudySummary, stored_summaries, summarize

WIDTHS = (60, 80, 140)


@pytest.fixture(scope="module")
def stored() -> dict[str, StudySummary]:
    return stored_summaries(studies.modules())


@pytest.mark.parametrize("width", WIDTHS)
def test_screens_fit_the_width_and_split_no_word(width: int, stored: dict[str, StudySummary]) -> None:
    questions = studies.questions()
    for screen in (
        screens.studies_screen(questions, stored, width),
        screens.summary_screen(list(stored.values()), width),
        screens.claims_screen(
            [screens.select_claims(found, answers=["refuted"]) for found in stored.values()], width
        ),
    ):
        assert max(map(len, screen.splitlines())) <= width
    words = set(screens.summary_screen(list(stored.values()), width).split())
    assert {"statements", "refuted", "undecided", "dyck-backtracking"} <= words
    assert set(" ".join(questions.values()).split()) - {"non-Markov"} <= _joined(
        screens.studies_screen(questions, stored, width)
    )


def _joined(text: str) -> set[str]:
    """Return the words of a text, with words that are continued on the next line after a hyphen joined."""
    words = [line.split() for line in text.splitlines()]
    joined = [
        f"{first[-1]}{second[0]}"
        for first, second in itertools.pairwise(words)
        if first and second and first[-1].endswith("-")
    ]
    return {*text.split(), *joined}


def test_the_summary_counts_statements_by_study_and_in_total(entry: Entry) -> None:
    found = summarize(entry)
    screen = screens.summary_screen([found], 80).splitlines()
    place = next(place for place, line in enumerate(screen) if line.startswith("study"))
    head = " ".join(screen[place : place + 2])
    row = next(line for line in screen if line.startswith(found.name))
    assert head.split() == [
        *("study", "statements", "hold", "refuted", "undecided", "other"),
        *("our", "claims", "that", "hold"),
    ]
    published = [record for record in found.claims if record["origin"] == "published"]
    assert row.split()[1] == str(len(published))
    total = next(line for line in screen if line.startswith("published claims"))
    assert total.split()[2] == str(len(published))
    assert "trialogue ledger STUDY" in screen


def test_claims_are_found_by_id_statement_and_words(stored: dict[str, StudySummary]) -> None:
    record = next(one for one in stored["dyck-backtracking"].claims if one["statement_id"])
    for text in (record["claim"], record["statement_id"], record["statement_id"].partition(":")[2].lower()):
        assert screens.matches(record, text)
    assert screens.matches(record, record["title"][:12].upper())
    assert not screens.matches(record, "no such words")


@pytest.mark.parametrize(
    ("source", "text", "is_found"),
    [
        ("Table 3.16", "Table 3.16", True),
        ("Table 3.161", "Table 3.16", False),
        ("Table 3.16", "Table 3.1", False),
        ("Table 3.1.6", "Table 3.1", False),
        ("Tables 3.3, 3.4 and 3.16", "table 3.16", True),
        ("Figure 3.16, Table 3.3", "Table 3.16", False),
        ("Table 3.16", "3.16 gains", True),
        ("Table 3.16", "sampling coin-flips GAIN", True),
        ("Table 3.16", "gains of nothing", False),
        ("Table 3.16", "lips", False),
    ],
)
def test_claims_are_found_by_place_study_and_words(source: str, text: str, is_found: bool) -> None:
    record = {
        "claim": "gain",
        "statement_id": None,
        "study": "coin-flips",
        "source": source,
        "title": "Sampling without redo",
        "statement": "Gains of upsampling.",
    }
    assert screens.matches(record, text) == is_found


def test_stored_verdicts_of_a_changed_study_are_not_used(tmp_path: Path) -> None:
    assert stored_summaries({"dyck-pruning": "json"}) == {}
    old = stored_summaries({"dyck-pruning": "json"}, stale=True)
    listed = screens.studies_screen({"dyck-pruning": "Why?", "new": "How?"}, old, 100)
    assert "(thesis)" in listed
    assert listed.index("Why?") < listed.index("are not stored") < listed.index("How?")


@pytest.mark.parametrize(
    ("direction", "threshold", "grade", "text"),
    [
        ("below", 1.0000000001, False, "≤ 1"),
        ("above", 0.9999999999, False, "≥ 1"),
        ("below", 1.0, False, "< 1"),
        ("above", -1e-9, False, "> -1×10⁻⁹"),
        ("below", 1 / 3, True, "< 0.333333*"),
    ],
)
def test_a_criterion_is_written_as_it_decides(
    direction: str, threshold: float, grade: bool, text: str
) -> None:
    record = {
        "direction": direction,
        "threshold": threshold,
        "grade": grade,
        "margin": 0,
        "origin": "published",
    }
    assert format_criterion(record) == text


def test_a_filter_changes_no_statement_on_the_study(entry: Entry) -> None:
    late = next(one for one in entry.verdicts if one.answer != "refuted" and one.replications)
    verdicts = tuple(replace(one, registered=one is not late) for one in entry.verdicts)
    for answers in ([], ["refuted"]):
        out = Console(width=200, file=io.StringIO())
        print_ledger(out, [replace(entry, verdicts=verdicts)], answers=answers)
        assert f"1 of {len(verdicts)} claims were registered after" in out.file.getvalue()  # type: ignore[attr-defined]


def test_claims_of_a_publication_have_the_notes_of_the_study(entry: Entry) -> None:
    noted = replace(entry.verdicts[0], remarks=("undecided if seed 1 is left out",))
    study = replace(entry.study, glossary={"toss, heads": "the side with a face", "edge": "the rim"})
    screen = screens.claims_screen([summarize(replace(entry, study=study, verdicts=(noted,)))], 100)
    assert re.search(r"^toss, heads +the side with a face$", screen, re.MULTILINE)
    assert "the rim" not in screen
    assert "            undecided if seed 1 is left out" in screen.splitlines()
    assert f"{entry.scale.partition(', ')[2]})" in screen


def test_undecided_claims_are_listed_by_the_cost_of_deciding_them(entry: Entry) -> None:
    cheap, dear, unknown = (
        replace(verdict, answer="undecided", to_decide=needed, larger_preset=preset, larger_hours=hours)
        for verdict, needed, preset, hours in zip(
            entry.verdicts, (12, 9, 700), ("weekend", "night", None), (1.5, 20.0, None), strict=False
        )
    )
    found = summarize(replace(entry, verdicts=(dear, unknown, cheap), withdrawn=()))
    rows = [line.split() for line in screens.claims_screen([found], 80, [found], brief=True).splitlines()]
    name = found.name
    assert [row for row in rows if row[:1] == [name]] == [
        [name, "1", "weekend", "1.5", "5", "12"],
        [name, "1", "night", "20", "5", "9"],
        [name, "1", "–", "5", "700"],
    ]


def test_the_stored_verdicts_have_no_stale_study(stored: dict[str, StudySummary]) -> None:
    own = {name for name, module in studies.modules().items() if module.startswith("trialogue_lab.")}
    stale = own - stored.keys()
    assert not stale, "run `make pages`"
    assert json.loads((COMMITTED / "ledger.json").read_text(encoding="utf-8")).keys() == stored.keys()
