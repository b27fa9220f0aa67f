"""Documents equal their filled templates, decision records are uniform, and configuration files agree."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import trialogue
from refusals import expect_error
from trialogue_lab.ledger import ledger_records
from trialogue_lab.ledger.claims.documents import DOCUMENTS
from trialogue_lab.ledger.pages.documents import fill

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs" / "templates"
TEMPLATES = {str(path.relative_to(FOLDER)).removesuffix(".jinja"): path for path in FOLDER.rglob("*.jinja")}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_document_equals_its_filled_template(name, ledger_entries):
    text = ROOT / name if name == "README.md" else ROOT / "docs" / name
    assert fill(
        TEMPLATES[name].read_text("utf-8"), ledger_entries, ROOT / "benchmarks" / "rows"
    ) == text.read_text("utf-8"), "run `make pages`"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ('number("dyck", "x")', "study='dyck': the ledger has no such study"),
        ('number("dyck-backtracking", "x")', "number='x': the study dyck-backtracking has no such statistic"),
        ('claim("dyck-backtracking", "x")', "claim='x': the study dyck-backtracking has no such claim"),
        ("nothing", "cannot be filled: 'nothing' is undefined"),
        ("1 +", "template=1: cannot be filled"),
    ],
)
def test_unknown_studies_and_statistics_are_reported(expression, message, ledger_entries):
    expect_error(message, fill, "{{ " + expression + " }}", ledger_entries)


def test_templates_contain_estimates_statistics_and_counts(ledger_entries):
    text = (
        '{{ claim("dyck-backtracking", "forced-backtrack").estimate | points }} '
        '{{ number("dyck-backtracking", "errors without a verifier") | whole }} '
        '{{ spread("dyck-backtracking", "share out of quota").high | percent(1) }} '
        '{{ count("dyck-backtracking", "published", "holds") > 3 }}'
    )
    points, errors, share, many = fill(text, ledger_entries).replace(" %", "%").split()
    assert (points, errors, many) == ("23", "106", "True")
    assert share.endswith("%")


def test_templates_contain_the_estimate_of_a_claim_and_its_criterion(ledger_entries):
    text = (
        '{{ estimate("dyck-copying", "attention-of-one-layer-says-nothing", "percent") }}, '
        '{{ condition("dyck-copying", "attention-of-one-layer-says-nothing", "percent") }}'
    )
    assert fill(text, ledger_entries).strip() == "0.00 % [0.00, 1.96], < 2 %\\*"
    unknown = '{{ estimate("dyck-backtracking", "no-such-claim") }}'
    expect_error("claim='no-such-claim': the study dyck-backtracking has no", fill, unknown, ledger_entries)


def test_a_statistic_equals_the_estimate_of_its_claim(ledger_entries):
    ratio, estimate = fill(
        '{{ number("interaction-order", "standing at two bodies") | digits(6) }} '
        '{{ claim("interaction-order", "stands-at-two-bodies").estimate | digits(6) }}',
        ledger_entries,
    ).split()
    assert ratio == estimate


RECORDS = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_a_record_is_short_and_has_all_sections(record):
    lines = record.read_text().splitlines()
    assert len(lines) <= 40
    assert lines[0].startswith("# ")
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", lines[2])
    sections = [line for line in lines if line.startswith("## ")]
    assert sections == ["## Context", "## Decision", "## Consequences", "## Evidence"]


def test_the_bibliography_has_an_entry_for_every_publication_and_names_its_studies(ledger_entries):
    page = (ROOT / "docs" / "bibliography.md").read_text(encoding="utf-8")
    entries = {text.partition('"')[0]: text for text in page.split('<a id="')[1:]}
    assert [key for key in DOCUMENTS if key not in entries] == []
    listed = {key: set(re.findall("`([a-z0-9-]+)`", entries[key].partition("\n## ")[0])) for key in DOCUMENTS}
    found = {key: set() for key in DOCUMENTS}
    for record in ledger_records(ledger_entries):
        if record["statement_id"]:
            found[record["statement_id"].partition(":")[0]].add(record["study"])
    assert listed == found


def test_every_record_is_listed():
    index = (ROOT / "docs/decisions/index.md").read_text()
    navigation = (ROOT / "mkdocs.yml").read_text()
    listed = [
        f"| {int(record.stem[:2])} | [{record.read_text().splitlines()[0][2:]}]({record.name})"
        for record in RECORDS
    ]
    assert [line for line in listed if line not in index] == []
    assert [record.name for record in RECORDS if f"decisions/{record.name}" not in navigation] == []


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
GROUPS = (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
REQUIRED = list({line: Requirement(line) for group in GROUPS for line in group}.values())
PINS = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").split())
TESTED = {canonicalize_name(name): version for name, version in PINS.items()}


@pytest.mark.parametrize("requirement", REQUIRED, ids=str)
def test_every_requirement_allows_its_tested_version(requirement):
    assert requirement.specifier.contains(TESTED[canonicalize_name(requirement.name)])


def test_no_requirement_has_an_upper_bound():
    assert all(spec.operator == ">=" for requirement in REQUIRED for spec in requirement.specifier)


def test_no_file_sets_a_package_index():
    for name in ("Makefile", "constraints.txt", "pyproject.toml", ".ci/run"):
        assert not re.search(r"index-url|find-links|https?://", (ROOT / name).read_text(encoding="utf-8")), (
            name
        )


def test_continuous_integration_runs_the_make_targets():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [target for line in re.findall(r"^make (.+)$", script, re.MULTILINE) for target in line.split()]
    assert targets == ["test", "lint", "types", "docs"]
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in [*targets, "demo", "clean"])


def test_all_files_state_the_same_version():
    (cited,) = re.findall(
        r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE
    )
    changed = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert trialogue.__version__ == cited == changed[0]
