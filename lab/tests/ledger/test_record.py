"""Tests of committed results: the record, stored estimates, tables and figures."""

import json
import re
from pathlib import Path

import pytest
from matplotlib.figure import Figure as Drawing

from ledger.record import record_of
from trialogue_lab.ledger import Entry, Figure
from trialogue_lab.ledger.pages.figures import svg
from trialogue_lab.ledger.pages.tables import sheet

RECORD = json.loads((Path(__file__).parent / "record.json").read_text(encoding="utf-8"))


@pytest.fixture(params=RECORD)
def entry(request: pytest.FixtureRequest, ledger_entries: list[Entry]) -> Entry:
    return next(entry for entry in ledger_entries if entry.study.name == request.param)


def committed_figure(entry: Entry, figure: Figure) -> str:
    assert entry.result is not None
    return (entry.result.folder / "figures" / f"{figure.name}.svg").read_text("utf-8")


def test_a_study_agrees_with_its_record(entry: Entry) -> None:
    recorded, found = dict(RECORD[entry.study.name]), record_of(entry)
    verdicts, seen = recorded.pop("verdicts"), found.pop("verdicts")
    results, kept = recorded.pop("results"), found.pop("results")
    assert found == recorded
    # A larger result may be added, which then counts. A recorded result must not change.
    assert results.items() <= kept.items()
    if kept == results:
        assert {claim: answer for claim, (answer, *_) in seen.items()} == {
            claim: answer for claim, (answer, *_) in verdicts.items()
        }
        for claim, (_, *numbers) in verdicts.items():
            for before, now in zip(numbers, seen[claim][1:], strict=True):
                assert now == (None if before is None else pytest.approx(before, rel=1e-9, abs=1e-12)), claim


def test_committed_rows_give_the_stored_estimates(entry: Entry) -> None:
    assert entry.result is not None
    for verdict in entry.verdicts:
        identity, statistic = verdict.claim.id, verdict.claim.statistic
        assert verdict.answer != "altered since the run", identity
        if not verdict.replications:
            continue
        stored = entry.result.estimates.get(identity, {}).get(statistic.version)
        assert stored is not None, f"{identity}: `trialogue run {entry.study.name}` stores missing estimates"
        # Differences in rounding between machines are far smaller.
        found = statistic(entry.rows).tolist()
        assert found == pytest.approx(stored, rel=1e-12, abs=0, nan_ok=True), identity


def test_tables_and_numbers_are_complete(entry: Entry) -> None:
    for table in entry.study.tables:
        assert sheet(table, entry.rows).lines, table.title
    for statistic in entry.study.numbers.values():
        assert statistic(entry.rows).notna().all(), statistic.name


def labels_of(drawn: Drawing) -> set[str]:
    """Return the lines of labels and legends without mathematics."""
    texts = [text for axes in drawn.axes for text in (axes.xaxis.label, axes.yaxis.label)]
    legends = [axes.get_legend() for axes in drawn.axes]
    texts += [text for legend in legends if legend for text in legend.get_texts()]
    lines = {line for text in texts for line in text.get_text().splitlines()}
    return {line for line in lines if line.strip() and "$" not in line}


def test_committed_figures_have_the_axes_and_labels_of_the_rows(entry: Entry) -> None:
    assert entry.result is not None
    for figure in entry.study.figures:
        assert figure.caption
        committed, drawn = committed_figure(entry, figure), figure.draw(entry.rows)
        assert committed.count('<g id="axes_') == len(drawn.axes), figure.name
        assert labels_of(drawn) <= set(re.findall("<!-- (.*?) -->", committed)), figure.name
    files = {path.stem for path in (entry.result.folder / "figures").iterdir()}
    assert files == {figure.name for figure in entry.study.figures}


@pytest.mark.slow
def test_committed_figures_agree_with_the_rows(entry: Entry) -> None:
    for figure in entry.study.figures:
        found = svg(figure, entry.rows).count("<path")
        assert found == committed_figure(entry, figure).count("<path"), figure.name
