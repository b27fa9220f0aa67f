"""Finding studies, and what a study must be."""

import importlib
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from biased_coin import STUDY, Config

from trialogue.errors import InputError
from trialogue_lab import studies
from trialogue_lab.ledger import Study


def test_a_package_of_the_user_s_own_registers() -> None:
    assert studies.find("biased-coin") is STUDY


def test_an_unknown_study_suggests_the_closest() -> None:
    with pytest.raises(InputError, match="did you mean biased-coin"):
        studies.find("biased_coins")
    with pytest.raises(InputError, match="trialogue list"):
        studies.find("zzz")


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("import nowhere_to_be_found", "cannot be imported"),
        ("nobody", "cannot be imported: NameError"),
        ("def", "cannot be imported: SyntaxError"),
        ("study = 1", "does not bind STUDY"),
        ("from biased_coin import STUDY", "rename the entry point to biased-coin"),
    ],
)
def test_a_broken_module_is_one_line(
    source: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_study.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(studies, "modules", lambda: {"broken": "broken_study"})
    monkeypatch.delitem(sys.modules, "broken_study", raising=False)
    with pytest.raises(InputError, match=told):
        studies.find("broken")


def test_a_module_that_cannot_be_read_is_told_among_the_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "unreadable_study.py").write_text("def", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(
        studies, "modules", lambda: {"broken": "unreadable_study", "biased-coin": "biased_coin"}
    )
    told = studies.questions()
    assert "unreadable_study cannot be read" in told["broken"]
    assert told["biased-coin"] == STUDY.question
    (tmp_path / "failing_package").mkdir()
    (tmp_path / "failing_package" / "__init__.py").write_text("raise RuntimeError('boom')", encoding="utf-8")
    monkeypatch.setattr(studies, "modules", lambda: {"failing": "failing_package.study"})
    told = studies.questions()
    assert told["failing"] == "(module failing_package.study cannot be imported: RuntimeError: boom)"


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
def test_a_study_that_makes_no_sense_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(InputError):
        replace(STUDY, **changes)  # type: ignore[arg-type]


def write_package(folder: Path, name: str, **modules: str) -> str:
    """Write a package of a study in `folder`, and return its name."""
    package = folder / name
    package.mkdir()
    for module, source in {"__init__": '"""Is it so?"""\n', **modules}.items():
        (package / f"{module}.py").write_text(source, encoding="utf-8")
    importlib.invalidate_caches()
    importlib.import_module(name)
    return name


def test_a_study_of_a_package_is_assembled_from_its_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    module = write_package(
        tmp_path,
        "assembled_study",
        config="from biased_coin import STUDY\nPRESETS = STUDY.presets\n",
        measure="from biased_coin import parts\n",
        claims="from biased_coin import CLAIMS, heads\nNUMBERS = {'heads': heads()}\n",
        tables="from biased_coin import STUDY\nTABLES = STUDY.tables\n",
        figures="from biased_coin import STUDY\nFIGURES = STUDY.figures\n",
    )
    study: Study[Any] = Study.of_package(module, source="Textbook", tables=())
    assert (study.name, study.question) == ("assembled-study", "Is it so?")
    assert (study.presets, study.parts, study.claims) == (STUDY.presets, STUDY.parts, STUDY.claims)
    assert (study.tables, study.figures, list(study.numbers)) == ((), STUDY.figures, ["heads"])
    assert Study.of_package(module, source="Textbook").tables == STUDY.tables


def test_a_package_without_presets_or_parts_is_no_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    module = write_package(tmp_path, "partial_study", measure="from biased_coin import parts\n")
    with pytest.raises(InputError, match=r"^study='partial_study': define presets in partial_study.config"):
        Study.of_package(module, source="Textbook")


def test_presets_by_name_and_by_value() -> None:
    assert STUDY.preset_of(STUDY.preset("paper")) == "paper"
    assert STUDY.preset_of(Config(flips=7)) is None
    with pytest.raises(InputError, match="choose one of smoke, pilot, default, night, paper"):
        STUDY.preset("large")
