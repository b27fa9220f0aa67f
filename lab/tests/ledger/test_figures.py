"""Tests of functions that draw figures."""

import pytest
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue_lab.ledger import COLORS, Figure, Rows, curves, figure, finish, panels
from trialogue_lab.ledger.pages.figures import svg


def test_a_decorated_function_becomes_a_figure() -> None:
    @figure("lines", "Two lines.")
    def lines(rows: Rows) -> Drawing:
        drawing, [axes] = panels()
        axes.plot([0, len(rows.records)])
        return drawing

    assert isinstance(lines, Figure)
    assert (lines.name, lines.caption) == ("lines", "Two lines.")
    assert svg(lines, Rows([{"kind": "a"}])).startswith("<?xml")


@pytest.mark.parametrize(("legend", "shown"), [(False, False), (True, True), ("upper left", True)])
def test_figures_have_titles_labels_and_legends(legend: str | bool, shown: bool) -> None:
    _, [axes] = panels()
    axes.plot([0, 1], label="line")
    finish(axes, "Loss", legend=legend, xlabel="step", yscale="log")
    assert (axes.get_title(loc="left") or axes.get_title(), axes.get_xlabel()) == ("Loss", "step")
    assert axes.get_yscale() == "log"
    assert (axes.get_legend() is not None) == shown


def test_curves_show_means_and_deviations() -> None:
    table = DataFrame(
        [
            {"x": x, "y": y, "width": width}
            for width in (0.5, 8.0)
            for x, values in ((1, (1, 3)), (2, (5, 5)))
            for y in values
        ]
    )
    _, [axes] = panels()
    curves(axes, table, "x", "y", "width", label="width {}")
    first, second = axes.containers
    assert [each.get_label() for each in (first, second)] == ["width 0.5", "width 8"]
    line, _, (bars,) = first
    assert line.get_color() == COLORS[0] != second[0].get_color()
    assert line.get_xydata().tolist() == [[1.0, 2.0], [2.0, 5.0]]
    ends = [segment[:, 1].tolist() for segment in bars.get_segments()]
    assert ends[0] == pytest.approx([2 - 2**0.5, 2 + 2**0.5])
    assert ends[1] == [5.0, 5.0]
