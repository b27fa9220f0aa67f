"""Tests of the HTML report, the gallery and the pictures of README in headless Chromium, on three widths of screens.

They need Chromium. Tests of accessibility also need axe-core: `npm install --no-save axe-core@4.14.1` in the root
folder.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trialogue_lab import studies
from trialogue_lab.ledger import ledger
from trialogue_lab.ledger.pages.report import render_report

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
STUDIES = ("constrained-law", "test-cases")
WIDTHS = (390, 800, 1280)
Open = Callable[..., Any]


@pytest.fixture(scope="session")
def report(browser: Open, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a report of two studies with wide tables."""
    del browser  # The report is not built without a browser.
    entries = ledger([studies.find(name) for name in STUDIES], ROOT / "lab" / "results")
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(render_report(entries), encoding="utf-8")
    return file


@pytest.fixture(params=["report", "page"])
def address(request: pytest.FixtureRequest, browser: Open) -> str:
    """Return the addresses of the report and of the gallery."""
    del browser
    path: Path = request.getfixturevalue(request.param)
    return path.as_uri()


@pytest.mark.parametrize("width", WIDTHS)
def test_pages_do_not_overflow(browser: Open, address: str, width: int) -> None:
    driver = browser(address, width)
    driver.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    assert driver.get_log("browser") == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dark", [False, True])
def test_pages_are_accessible(browser: Open, address: str, width: int, dark: bool) -> None:
    """axe-core finds no serious problem, and in particular no text below the contrast of WCAG AA."""
    if not AXE.is_file():
        pytest.skip("no axe-core: npm install --no-save axe-core@4.14.1")
    driver = browser(address, width, dark=dark, reduced=True)
    driver.execute_script("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    driver.execute_script(AXE.read_text("utf-8"))
    # Plotted figures are pictures with a description. Their markup is not text for readers.
    found = driver.execute_async_script("""
        const done = arguments[arguments.length - 1];
        axe.run({ exclude: [["figure svg"]] }, { resultTypes: ["violations"] }).then((all) => done(all.violations));
    """)
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    assert [(one["id"], [node["target"] for node in one["nodes"]][:5]) for one in serious] == []


def test_tables_of_the_report_fit_a_laptop(browser: Open, report: Path) -> None:
    driver = browser(report.as_uri(), 1280)
    cut_off = driver.execute_script("""
        const tables = [...document.querySelectorAll(".wide[role=region]")];
        return tables.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.ariaLabel);
    """)
    assert cut_off == []


def test_the_report_has_no_literal_backticks(report: Path) -> None:
    text = re.sub(r"<(style|svg).*?</\1>", "", report.read_text("utf-8"), flags=re.DOTALL)
    assert "`" not in re.sub(r"<[^>]*>", "", text)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["hero", "decoding-rules"])
def test_texts_of_pictures_stay_inside_and_apart(browser: Open, name: str, dark: bool) -> None:
    driver = browser((ROOT / "docs" / "figures" / f"{name}.svg").as_uri(), 390, dark=dark, reduced=True)
    outside, crossing = driver.execute_script("""
        const view = document.documentElement.getBoundingClientRect();
        const shown = [...document.querySelectorAll("text")].filter((one) => getComputedStyle(one).opacity > 0);
        const boxes = shown.map((one) => [one.textContent, one.getBoundingClientRect()]);
        const inside = ([, box]) => box.left >= view.left && box.right <= view.right && box.bottom <= view.bottom;
        const crosses = (a, b) => a.left < b.right && b.left < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom;
        const pairs = boxes.flatMap(([text, box], index) => boxes.slice(index + 1)
            .filter(([, other]) => crosses(box, other)).map(([other]) => [text, other]));
        return [boxes.filter((one) => !inside(one)).map(([text]) => text), pairs];
    """)
    assert outside == []
    assert crossing == []
    moving = driver.execute_script("return document.getAnimations().length")
    assert moving == 0
