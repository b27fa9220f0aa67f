"""The studies: the packages in this folder, and those that installed packages register.

A package of the user's own adds a study by an entry point of the group `trialogue_lab.studies`, whose name is the
study's and whose value is the module that binds `STUDY`. Modules are imported only when their study is used.
"""

import ast
import difflib
import importlib.util
import pkgutil
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trialogue.errors import InputError
from trialogue_lab.ledger.question import question_of

if TYPE_CHECKING:
    from trialogue_lab.ledger.study import Study

GROUP = "trialogue_lab.studies"


def modules() -> dict[str, str]:
    """Module of every study, by name: the packages in this folder, then the registered ones."""
    built_in = {
        module.name.replace("_", "-"): f"{__name__}.{module.name}"
        for module in pkgutil.iter_modules(__path__)
        if module.ispkg
    }
    registered = sorted(metadata.entry_points(group=GROUP), key=lambda entry: entry.name)
    return built_in | {entry.name: entry.module for entry in registered if entry.name not in built_in}


def find(name: str) -> "Study[Any]":
    """Import the study `name`; raises `InputError` that suggests the closest names where there is none."""
    known = modules()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else "see `trialogue list`"
        raise InputError("study", name, f"no such study: {hint}")
    from trialogue_lab.ledger.study import study_of

    try:
        study = study_of(known[name])
    except InputError:
        raise
    except Exception as error:  # whatever a module of a user's own does when it is imported
        told = f"{type(error).__name__}: {error}"
        raise InputError("study", name, f"its module {known[name]} cannot be imported: {told}") from error
    if study.name != name:
        raise InputError(
            "study", name, f"a study is named after its module: rename the entry point to {study.name}"
        )
    return study


def importable(complain: Callable[[str], None]) -> "list[Study[Any]]":
    """Every study that can be imported; `complain` is told in a line of each that cannot."""
    found = []
    for name in modules():
        try:
            found.append(find(name))
        except InputError as error:
            complain(f"{error}; the others go on without it")
    return found


def questions() -> dict[str, str]:
    """The question of every study, by name, read from the module's source without importing it."""
    return {name: _question(module) for name, module in modules().items()}


def _question(module: str) -> str:
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        spec = None
    except Exception as error:  # whatever a package of a user's own does when it is imported
        return f"(module {module} cannot be imported: {type(error).__name__}: {error})"
    if spec is None or spec.origin is None:
        return f"(module {module} is not installed)"
    try:
        return question_of(ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))))
    except (SyntaxError, ValueError, OSError) as error:
        return f"(module {module} cannot be read: {error})"
