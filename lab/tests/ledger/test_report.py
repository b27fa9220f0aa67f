"""Tests of tables, figures, comparisons and the report that contains them."""

import math
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from biased_coin import STUDY
from pandas import DataFrame, Series

from html_page import Page
from trialogue.display.numbers import format_number
from trialogue.errors import InputError
from trialogue_lab import studies
from trialogue_lab.ledger import Entry, ResultTable, Rows, ledger
from trialogue_lab.ledger.pages.comparison import compare, format_difference
from trialogue_lab.ledger.pages.figures import svg
from trialogue_lab.ledger.pages.report import render_report
from trialogue_lab.ledger.pages.tables import sheet
from trialogue_lab.ledger.runs.execution import execute


@pytest.fixture(scope="module")
def page(entry: Entry) -> str:
    return render_report([entry])


def test_the_page_is_self_contained_and_readable_on_a_phone(page: str) -> None:
    assert all(reference.startswith("#") for reference in Page(page).references)
    assert re.findall(r"url\((?!#)|@import|<script|<link|<iframe", page) == []
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    assert page.count("<table>") == len(re.findall(r'<div class="wide"[^>]*>\s*<table>', page)) == 1
    assert "prefers-color-scheme: dark" in page


def test_ids_of_several_figures_are_unique(entry: Entry) -> None:
    again = replace(STUDY.figures[0], name="again")
    twice = Entry(replace(STUDY, figures=(*STUDY.figures, again)), entry.result, entry.verdicts)
    counts = Counter(Page(render_report([twice])).ids)
    assert len([name for name in counts if name.startswith("biased-coin-")]) > 4
    assert max(counts.values()) == 1


def test_page_contains_claims_verdicts_tables_and_figures(page: str, entry: Entry) -> None:
    words = " ".join(" ".join(Page(page).words).split())
    for shown in (
        STUDY.question,
        *(verdict.claim.full_statement for verdict in entry.verdicts),
        *(verdict.reason for verdict in entry.verdicts),
        "Published claims (3): 3 holds",
        "Our claims (2): 1 holds · 1 refuted",
        "Table 1. Share of heads",
        "0.3 or so",
        "Share of heads by seed",
    ):
        assert shown in words
    answers = re.findall(r'<header>\s*<span class="verdict [a-z-]+">([a-z ]+)</span>', page)
    assert answers == [verdict.answer for verdict in entry.verdicts]


def test_markup_in_texts_is_escaped_except_for_backticks(page: str, entry: Entry) -> None:
    assert "<not>" not in page
    assert "&lt;not&gt;" in page
    verdict = replace(entry.verdicts[0], remarks=("see `heads < tails`, not ` alone",))
    remark = render_report([replace(entry, verdicts=(verdict,))])
    assert "see <code>heads &lt; tails</code>, not ` alone" in remark


def test_equal_results_give_equal_bytes(page: str, entry: Entry) -> None:
    with matplotlib.rc_context({"axes.facecolor": "red", "svg.hashsalt": None, "font.size": 30}):
        assert render_report([entry]) == page


def test_a_figure_depends_on_the_rows(entry: Entry) -> None:
    assert entry.result is not None
    records = entry.result.records
    other = [record | {"heads": record.get("heads", 0) + place} for place, record in enumerate(records)]
    assert svg(STUDY.figures[0], Rows(records)) == svg(STUDY.figures[0], entry.rows)
    assert svg(STUDY.figures[0], Rows(records)) != svg(STUDY.figures[0], Rows(other))


def test_a_study_without_a_result_is_shown(tmp_path: Path) -> None:
    page = render_report(ledger([STUDY, STUDY], tmp_path))
    assert page.count("no finished run of a preset") == 2 * len(STUDY.claims)
    assert "<svg" not in page


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.69871, 3, "0.699"),
        (9.996, 3, "10.0"),
        (1234.5, 3, "1234"),
        (12345678.9, 3, "1.23×10⁷"),
        (0.00012345, 3, "0.000123"),
        (-0.5, 2, "-0.50"),
        (0.0, 3, "0"),
        (np.float32(0.25), 2, "0.25"),
        (math.inf, 3, "∞"),
        (math.nan, 3, "–"),
        (None, 3, "–"),
        ("0.3 or so", 3, "0.3 or so"),
    ],
)
def test_numbers_are_formatted_as_text(value: object, digits: int, text: str) -> None:
    assert format_number(value, digits) == text


def test_a_table_shows_published_numbers_next_to_ours() -> None:
    table = ResultTable(
        title="t",
        source="s",
        published={"a": {"x": 0.5}, "c": {"x": 0.25, "y": "many"}},
        cells={"a": {"x": Series([0.49, 0.53]), "z": 3}, "b": {"x": 0.1, "z": Series([4.0])}},
        row_heading="name",
    )
    shown = sheet(table, Rows([]))
    columns = [(head, origin) for head in "xzy" for origin in ("published", "ours")]
    assert (shown.corner, shown.columns) == (
        "name",
        [column for column in columns if column != ("z", "published")],
    )
    assert shown.lines == [
        ("a", ["0.500", "0.510 ± 0.028", "3", "–", "–"]),
        ("b", ["–", "0.100", "4.00", "–", "–"]),
        ("c", ["0.250", "–", "–", "many", "–"]),
    ]
    assert shown.legend == (
        "–: not measured by this run, or no number in the publication; ±: standard deviation over the repetitions"
    )


def test_cells_may_be_a_data_frame() -> None:
    table = ResultTable(title="t", source="s", cells=lambda _: DataFrame({"x": [1, 2], "y": [0.5, True]}))
    assert sheet(table, Rows([])).lines == [("0", ["1", "0.500"]), ("1", ["2", "True"])]


def test_comparison_lists_changed_settings_verdicts_and_cells(entry: Entry, tmp_path: Path) -> None:
    assert entry.result is not None
    other = execute(STUDY, replace(STUDY.presets["default"], bias=0.4), tmp_path)
    compared = compare(STUDY, entry.result, other)
    assert compared.config == [("bias", "0.7", "0.4")]
    by_claim = {claim.id: line for claim, line in zip(STUDY.claims, compared.claims, strict=True)}
    exact = ("holds: 0.700 (exact)", "refuted: 0.400 (exact)", "-0.300")
    assert by_claim["law"][:4] == ("The law is the bias.", *exact)
    assert by_claim["law"].criterion == "= 0.7 ± 1×10⁻¹²*"
    assert by_claim["more-heads"][2].startswith("refuted: 0.4")
    changed = "The settings differ in bias, 5 of 5 claims differ, 2 of 2 table cells differ, and 5 of the 5 verdicts"
    assert str(compared).startswith(changed)
    same = compare(STUDY, entry.result, entry.result)
    assert "0 of 5 claims differ" in str(same)
    assert "none of the 5 verdicts changed" in str(same)
    (title, lines), *_ = compared.tables
    assert title == "Table 1. Share of heads"
    assert ("law · heads", "0.700", "0.400", "-0.300") in lines
    with pytest.raises(InputError, match="compare results of one study"):
        compare(studies.find("dyck-backtracking"), entry.result, other)


def test_differences_are_signed_numbers_or_a_dash() -> None:
    assert (format_difference(1, 1.5), format_difference(1.5, 1.0)) == ("+0.500", "-0.500")
    # Differences of rounding count as none, and others do not.
    assert (format_difference(1.0, 1.0 + 1e-7), format_difference(3e-15, 1e-15)) == ("0", "0")
    assert (format_difference(1.0, 1.0 + 1e-5), format_difference(1e-10, 2e-10)) == (
        "+1.00×10⁻⁵",
        "+1.00×10⁻¹⁰",
    )
    assert (
        format_difference("a", 1.0)
        == format_difference(True, False)
        == format_difference(math.nan, 1.0)
        == "–"
    )
