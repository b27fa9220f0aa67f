"""Imports run one way, from the contract to the command line."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import trialogue

SOURCE = Path(trialogue.__file__).parent
LAYERS = (
    {"__init__", "errors", "compilation", "arrays"},
    {"probabilities", "randomness", "storage"},
    {"oracles", "blocks", "ledger"},
    {"data", "models"},
    {"inference"},
    {"training"},
    {"theory", "generation"},
    {"analysis"},
    {"studies"},
    {"cli"},
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def layer_of(module: str) -> str:
    """The layer's name: what follows `trialogue` in a module's name."""
    return [*module.split("."), "__init__"][1]


def imports(tree: ast.Module, module: str, is_package: bool) -> Iterator[str]:
    """Modules of the package that a module names in its import statements, wherever they stand."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = module.split(".")[
                    : None if is_package and node.level == 1 else is_package - node.level
                ]
                base = ".".join([*above, base] if base else above)
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == "trialogue")


def violations(sources: dict[str, str]) -> list[str]:
    """Imports that run against the order of the layers, in `sources` by path below the package."""
    found = []
    for path, text in sources.items():
        parts = Path(path).with_suffix("").parts
        module = ".".join(("trialogue", *parts)).removesuffix(".__init__")
        for name in imports(ast.parse(text), module, parts[-1] == "__init__"):
            # `from trialogue import __version__` names no module of a layer.
            target = layer_of(name) if layer_of(name) in LEVEL else "__init__"
            if LEVEL[target] > LEVEL[layer_of(module)]:
                found.append(f"{path} imports {name}")
    return found


def sources() -> dict[str, str]:
    return {str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}


def test_every_module_has_a_layer() -> None:
    assert {
        layer_of(".".join(("trialogue", *Path(path).with_suffix("").parts))) for path in sources()
    } <= set(LEVEL)


def test_imports_run_one_way() -> None:
    assert violations(sources()) == []


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("ledger/claims.py", "from trialogue.studies import find"),
        ("data/dyck/language.py", "from trialogue.inference import walks"),
        ("randomness.py", "import trialogue.data.dyck.language"),
        ("inference/laws.py", "from trialogue import training"),
        ("models/transformer.py", "def f():\n    from ..training import loop"),
        ("ledger/__init__.py", "from .. import cli"),
    ],
)
def test_a_wrong_import_is_found(path: str, line: str) -> None:
    assert len(violations({path: line})) == 1


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("ledger/__init__.py", "from .claims import Claim"),
        ("ledger/study.py", "from ..ledger.claims import Claim"),
        ("cli/__init__.py", "from trialogue import __version__, studies"),
    ],
)
def test_a_right_import_is_not(path: str, line: str) -> None:
    assert violations({path: line}) == []
