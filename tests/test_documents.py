"""Generated documents equal their filled templates, so that their numbers come from the stored rows."""

from pathlib import Path

import pytest

from refusals import expect_error
from trialogue_lab import studies
from trialogue_lab.ledger import ledger
from trialogue_lab.ledger.pages.documents import fill

ROOT = Path(__file__).parents[1]
TEMPLATES = {path.name.removesuffix(".jinja"): path for path in (ROOT / "docs" / "templates").iterdir()}


@pytest.fixture(scope="module")
def entries():
    names = [name for name, module in studies.modules().items() if module.startswith("trialogue_lab.")]
    return ledger([studies.find(name) for name in names], ROOT / "lab" / "results")


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_document_equals_its_filled_template(name, entries):
    text = ROOT / name if name == "README.md" else ROOT / "docs" / name
    assert fill(TEMPLATES[name].read_text("utf-8"), entries, ROOT / "benchmarks" / "rows") == text.read_text(
        "utf-8"
    ), "run `make pages`"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ('number("dyck", "x")', "study='dyck': the ledger has no such study"),
        (
            'number("dyck-backtracking", "x")',
            "number='x': the study dyck-backtracking has no such statistic",
        ),
        ('claim("dyck-backtracking", "x")', "claim='x': the study dyck-backtracking has no such claim"),
        ("nothing", "cannot be filled: 'nothing' is undefined"),
        ("1 +", "template=1: cannot be filled"),
    ],
)
def test_unknown_studies_and_statistics_are_reported(expression, message, entries):
    expect_error(message, fill, "{{ " + expression + " }}", entries)


def test_templates_contain_estimates_statistics_and_counts(entries):
    text = (
        '{{ claim("dyck-backtracking", "forced-backtrack").estimate | points }} '
        '{{ number("dyck-backtracking", "errors without a verifier") | whole }} '
        '{{ spread("dyck-backtracking", "share out of quota").high | percent(1) }} '
        '{{ count("dyck-backtracking", "published", "holds") > 3 }}'
    )
    points, errors, share, many = fill(text, entries).replace(" %", "%").split()
    assert (points, errors, many) == ("23", "106", "True")
    assert share.endswith("%")


def test_a_statistic_equals_the_estimate_of_its_claim(entries):
    ratio, estimate = fill(
        '{{ number("interaction-order", "standing at two bodies") | digits(6) }} '
        '{{ claim("interaction-order", "stands-at-two-bodies").estimate | digits(6) }}',
        entries,
    ).split()
    assert ratio == estimate
