"""Tests of the discovery and validation of studies."""

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from biased_coin import STUDY, Config

from refusals import expect_error
from trialogue.errors import InputError
from trialogue_lab import studies
from trialogue_lab.ledger import Study

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write an importable package of the given modules, and return its name."""
    monkeypatch.syspath_prepend(tmp_path)

    def write_package(name: str, **modules: str) -> str:
        (tmp_path / name).mkdir()
        for module, source in {"__init__": '"""Is it so?"""\n', **modules}.items():
            (tmp_path / name / f"{module}.py").write_text(source, encoding="utf-8")
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, name, raising=False)
        return name

    return write_package


def test_registered_studies_are_found() -> None:
    assert studies.find("biased-coin") is STUDY
    expect_error("Did you mean biased-coin", studies.find, "biased_coins")
    expect_error("trialogue list", studies.find, "zzz")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import nowhere_to_be_found", "cannot be imported"),
        ("nobody", "cannot be imported: NameError"),
        ("def", "cannot be imported: SyntaxError"),
        ("study = 1", "does not bind STUDY"),
        ("from biased_coin import STUDY", "rename the entry point to biased-coin"),
    ],
)
def test_invalid_module_raises_a_one_line_error(
    source: str, message: str, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = write("broken_study", __init__=source)
    monkeypatch.setattr(studies, "modules", lambda: {"broken": module})
    expect_error(message, studies.find, "broken")


def test_invalid_modules_have_an_error_instead_of_a_question(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = write("failing_package", __init__="raise RuntimeError('boom')")
    modules = {
        "broken": write("unreadable_study", __init__="def"),
        "biased-coin": "biased_coin",
        "failing": f"{failing}.study",
    }
    monkeypatch.setattr(studies, "modules", lambda: modules)
    questions = studies.questions()
    assert "unreadable_study cannot be read" in questions["broken"]
    assert questions["biased-coin"] == STUDY.question
    error = "(module failing_package.study cannot be imported: RuntimeError: boom)"
    assert questions["failing"] == error


@dataclass(frozen=True, kw_only=True)
class Reserved:
    force: bool = False


@pytest.mark.parametrize(
    "changes",
    [
        {"module": "not.a name"},
        {"presets": {"smoke": Config()}},
        {"presets": {"default": Config(), "huge": Config()}},
        {"presets": {"default": {"flips": 1}}},
        {"presets": {"default": Reserved()}},
        {"claims": STUDY.claims[:1] * 2},
        {"figures": (*STUDY.figures, *STUDY.figures)},
    ],
)
def test_invalid_studies_are_rejected(changes: dict[str, object]) -> None:
    with pytest.raises(InputError):
        replace(STUDY, **changes)  # type: ignore[arg-type]


def test_a_study_is_assembled_from_the_modules_of_its_package(write: Write) -> None:
    module = write(
        "assembled_study",
        config="from biased_coin import STUDY\nPRESETS = STUDY.presets\n",
        measure="from biased_coin import parts\n",
        claims="from biased_coin import CLAIMS, heads\nNUMBERS = {'heads': heads()}\n",
        tables="from biased_coin import STUDY\nTABLES = STUDY.tables\n",
        figures="from biased_coin import STUDY\nFIGURES = STUDY.figures\n",
    )
    titles = Path(str(importlib.import_module(module).__file__)).with_name("titles.toml")
    titles.write_text('law = "The bias is 0.7"\n', encoding="utf-8")
    study: Study[Any] = Study.of_package(module, source="Textbook", tables=())
    assert (study.name, study.question) == ("assembled-study", "Is it so?")
    assert (study.presets, study.parts) == (STUDY.presets, STUDY.parts)
    assert (study.tables, study.figures, list(study.numbers)) == ((), STUDY.figures, ["heads"])
    assert [replace(claim, title="") for claim in study.claims] == list(STUDY.claims)
    assert [claim.title for claim in study.claims] == ["", "", "", "", "The bias is 0.7"]
    assert Study.of_package(module, source="Textbook").tables == STUDY.tables
    titles.write_text(
        '[measured]\nlaw = "mean"\n[glossary]\nbias = "probability of heads"\n', encoding="utf-8"
    )
    explained: Study[Any] = Study.of_package(module, source="Textbook")
    assert [claim.measured for claim in explained.claims] == ["", "", "", "", "mean"]
    assert explained.glossary == {"bias": "probability of heads"}
    titles.write_text('tails = "Not a claim"\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"^titles=\['tails'\]: use ids of claims of the study"):
        Study.of_package(module, source="Textbook")


def test_package_without_presets_is_rejected(write: Write) -> None:
    module = write("partial_study", measure="from biased_coin import parts\n")
    importlib.import_module(module)
    with pytest.raises(InputError, match=r"^study='partial_study': define presets in partial_study.config"):
        Study.of_package(module, source="Textbook")


def test_presets_are_found_by_name_and_by_value() -> None:
    assert STUDY.preset_of(STUDY.preset("paper")) == "paper"
    assert STUDY.preset_of(Config(flips=7)) is None
    expect_error("choose one of smoke, pilot, default, night, paper", STUDY.preset, "large")
