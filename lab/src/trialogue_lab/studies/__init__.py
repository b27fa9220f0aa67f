"""Registry of studies: the packages in this folder, and studies that other installed packages register.

A study is a question, the code that measures it, and the claims that the measurements decide. A package registers a
study by an entry point of the group `trialogue_lab.studies`. Its name is the name of the study, and its value is the
module that defines `STUDY`. A module is imported only when its study is used.
"""

import ast
import difflib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trialogue.errors import InputError, NotFoundError
from trialogue_lab.ledger.question import first_paragraph

if TYPE_CHECKING:
    from trialogue_lab.ledger.study import Study

GROUP = "trialogue_lab.studies"


def modules() -> dict[str, str]:
    """Return the module name of every study by its name.

    The packages in this folder come first, and then the registered studies.
    """
    built_in = {
        module.name.replace("_", "-"): f"{__name__}.{module.name}"
        for module in pkgutil.iter_modules(__path__)
        if module.ispkg
    }
    registered = sorted(metadata.entry_points(group=GROUP), key=lambda entry: entry.name)
    return built_in | {entry.name: entry.module for entry in registered if entry.name not in built_in}


def find(name: str) -> "Study[Any]":
    """Import and return a study.

    Args:
        name: Name of the study, for example "potts-coherence".

    Raises:
        InputError: If no such study exists, with a suggestion of the closest names, or if its module is broken.
    """
    known = modules()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
        names = [word for word in known if len(name) > 2 and (name in word or word in name)]
        close = list(dict.fromkeys([*names, *close]))[:3]
        hint = f"Did you mean {' or '.join(close)}? " if close else ""
        raise NotFoundError("study", name, f"No study is called {name!r}. {hint}All names: `trialogue list`.")
    from trialogue_lab.ledger.study import load_study

    try:
        study = load_study(known[name])
    except InputError:
        raise
    except Exception as error:  # A user's module can raise anything when it is imported.
        reason = f"{type(error).__name__}: {error}"
        raise InputError("study", name, f"module {known[name]} cannot be imported: {reason}") from error
    if study.name != name:
        hint = f"must have the name of its module: rename the entry point to {study.name}"
        raise InputError("study", name, hint)
    return study


def importable(complain: Callable[[str], None], names: Iterable[str] | None = None) -> "list[Study[Any]]":
    """Return every study that can be imported.

    Args:
        complain: Function that is called with a one-line message for each study that cannot be imported.
        names: Names of the studies to import. None for all (default).
    """
    found = []
    for name in modules() if names is None else names:
        try:
            found.append(find(name))
        except InputError as error:
            complain(f"{error} (this study is skipped)")
    return found


def questions() -> dict[str, str]:
    """Return the question of every study by its name.

    The question is the first paragraph of the module's docstring. It is read from the source, without an import.
    """
    return {name: _read_question(module) for name, module in modules().items()}


def _read_question(module: str) -> str:
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        spec = None
    except Exception as error:  # A user's package can raise anything when it is imported.
        return f"(module {module} cannot be imported: {type(error).__name__}: {error})"
    if spec is None or spec.origin is None:
        return f"(module {module} is not installed)"
    try:
        return first_paragraph(ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))))
    except (SyntaxError, ValueError, OSError) as error:
        return f"(module {module} cannot be read: {error})"
