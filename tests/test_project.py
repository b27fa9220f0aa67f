"""Consistency of the configuration files of the project."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import trialogue

ROOT = Path(__file__).parents[1]
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
    assert targets == ["test", "lint", "types"]
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in [*targets, "demo", "clean"])


def test_all_files_state_the_same_version():
    (cited,) = re.findall(
        r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE
    )
    changed = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert trialogue.__version__ == cited == changed[0]
