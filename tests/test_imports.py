"""Imports run one way, from the contract to the command line, in no circle, and bring in nothing before it is used."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import trialogue

SOURCE = Path(trialogue.__file__).parent
LABORATORY = Path(__file__).parents[1] / "lab" / "src" / "trialogue_lab"
LAYERS = {
    "trialogue": (
        {"__init__", "errors", "compilation", "lazy_exports", "start_up", "source_code", "extras"},
        {"arrays", "indices", "validation", "registry", "storage"},
        {"probabilities", "randomness", "tensor_files", "display", "intervals", "executors"},
        {"enumeration", "blocks", "oracles"},
        {"data"},
        {"models"},
        {"verifiers"},
        {"samplers"},
        {"training"},
        {"generation", "inspection"},
        {"extend", "testing", "serving"},
        {"cli", "__main__"},
    ),
    "trialogue_lab": (
        {"__init__", "data", "models", "training", "analysis"},
        {"theory", "ledger"},
        {"studies"},
        {"gallery"},
        {"cli"},
    ),
}
"""Parts of each package, from the lowest floor up. A part imports from its own floor and from lower ones."""
LEVEL = {
    f"{package}.{name}": level
    for package, layers in LAYERS.items()
    for level, names in enumerate(layers)
    for name in names
}


def layer_of(module: str) -> str:
    """The package of a module and the part of it: "trialogue.data" of "trialogue.data.dyck.language"."""
    package, part, *_ = [*module.split("."), "__init__"]
    return f"{package}.{part}"


def imports(tree: ast.Module, module: str, is_package: bool) -> Iterator[str]:
    """Modules of the two packages that a module names in its import statements, wherever they stand."""
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
        yield from (name for name in names if name.split(".")[0] in LAYERS)


def places(tree: ast.Module) -> Iterator[str]:
    """Modules of the two packages that a module names in its strings, as registries do."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and PLACE.fullmatch(str(node.value)):
            yield str(node.value).replace(":", ".")


PLACE = re.compile(r"trialogue(_lab)?(\.\w+)+:[\w.]+|trialogue_lab[\w.]*")
"""A string that names a module: "module:attribute", as an entry point does, or anything of the laboratory."""


def module_of(path: str, package: str = "trialogue") -> str:
    """The name of the module at `path` below the package."""
    return ".".join((package, *Path(path).with_suffix("").parts)).removesuffix(".__init__")


def violations(sources: dict[str, str], package: str = "trialogue") -> list[str]:
    """Imports that run against the order of the layers, in `sources` by path below the package.

    Every import of the laboratory by the library is one.
    """
    found = []
    for path, text in sources.items():
        module = module_of(path, package)
        tree = ast.parse(text)
        for name in (*imports(tree, module, Path(path).stem == "__init__"), *places(tree)):
            if name.split(".")[0] != package:
                wrong = package == "trialogue"
            else:
                # `from trialogue import __version__` names no module of a layer.
                target = layer_of(name) if layer_of(name) in LEVEL else f"{package}.__init__"
                wrong = LEVEL[target] > LEVEL[layer_of(module)]
            if wrong:
                found.append(f"{path} imports {name}")
    return found


def sources(root: Path = SOURCE, pattern: str = "*.py") -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in root.rglob(pattern)}


def stubs(root: Path = SOURCE) -> dict[str, str]:
    """The exports that packages make lazily."""
    return sources(root, "*.pyi")


def circle(sources: dict[str, str], stubs: dict[str, str]) -> list[str]:
    """Modules each of which imports the next, from one back to itself; none where there are no circles.

    Every import statement counts: at the top, for type checkers only, and within functions, which put off what an
    import costs and not what depends on what. A name that a package exports lazily is imported from the module that
    defines it. That a module's package runs before it does not count, nor do the exports themselves: a package may show
    what its modules define.
    """
    modules = {module_of(path) for path in sources}
    defined: dict[str, str] = {}
    for path, text in stubs.items():
        package = module_of(path)
        for name in imports(ast.parse(text), package, True):
            defined[f"{package}.{name.rpartition('.')[2]}"] = name.rpartition(".")[0]

    def imported(name: str) -> str:
        while name not in modules:
            name = defined.get(name, name.rpartition(".")[0])
        return name

    graph = {
        module_of(path): {
            imported(name)
            for name in imports(ast.parse(text), module_of(path), Path(path).stem == "__init__")
            if imported(name) != module_of(path)
        }
        for path, text in sources.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found[::-1]
    return []


@pytest.mark.parametrize(("package", "root"), [("trialogue", SOURCE), ("trialogue_lab", LABORATORY)])
def test_imports_run_one_way(package: str, root: Path) -> None:
    texts = sources(root)
    assert len(texts) > 200
    assert {layer_of(module_of(path, package)) for path in texts} <= set(LEVEL)
    assert violations(texts, package) == []


WRONG = [
    ("trialogue", "data/dyck/language.py", "from trialogue.samplers import samplers"),
    ("trialogue", "randomness.py", "import trialogue.data.dyck.language"),
    ("trialogue", "models/networks/transformer.py", "def f():\n    from ...training import loop"),
    ("trialogue", "samplers/registered.py", "CHAINS = {'new': 'trialogue.generation.run:New'}"),
    ("trialogue", "cli/parsing/fields.py", "import trialogue_lab.ledger"),
    (
        "trialogue",
        "cli/parsing/fields.py",
        "if TYPE_CHECKING:\n    from trialogue_lab.ledger.study import Study",
    ),
    ("trialogue", "cli/parsing/fields.py", "importlib.import_module('trialogue_lab.studies')"),
    ("trialogue", "samplers/registered.py", "CHAINS = {'new': 'trialogue_lab.theory.chains:New'}"),
    ("trialogue_lab", "ledger/claims.py", "from trialogue_lab.studies import find"),
    ("trialogue_lab", "theory/order.py", "def f():\n    from ..gallery import pages"),
]
RIGHT = [
    ("trialogue", "oracles/__init__.py", "from .whole import Chain"),
    ("trialogue", "cli/__init__.py", "from trialogue import __version__, generation"),
    ("trialogue", "errors.py", "HINT = 'pip install trialogue-lab'"),
    (
        "trialogue_lab",
        "studies/ising/measure.py",
        "from trialogue.cli import main\nimport trialogue_lab.ledger",
    ),
]


def test_a_wrong_import_is_found_and_a_right_one_is_not() -> None:
    for package, path, line in WRONG:
        assert len(violations({path: line}, package)) == 1, line
    for package, path, line in RIGHT:
        assert violations({path: line}, package) == [], line


def test_imports_run_in_no_circle() -> None:
    assert circle(sources(), stubs()) == []


@pytest.mark.parametrize(
    ("module", "lines"),
    [
        ("models/caching/causal_network.py", "from trialogue.models.networks.transformer import Transformer"),
        (
            "models/caching/causal_network.py",
            "if TYPE_CHECKING:\n    from trialogue.models.networks.transformer import Transformer",
        ),
        ("samplers/chains/chain.py", "from trialogue.samplers import run_chain"),
    ],
)
def test_a_circle_is_found(module: str, lines: str) -> None:
    texts = sources()
    found = circle({**texts, module: f"{texts[module]}\n{lines}"}, stubs())
    assert found[0] == found[-1]
    assert module_of(module) in found


def test_what_is_exported_is_there() -> None:
    """Every name of a stub can be had from its package, and is what the module defines."""
    program = (
        "import importlib, sys\n"
        "for package in sys.argv[1:]:\n"
        "    module = importlib.import_module(package)\n"
        "    assert module.__all__\n"
        "    for name in module.__all__:\n"
        "        getattr(module, name)\n"
        "    assert set(module.__all__) <= set(dir(module))\n"
    )
    packages = [module_of(path) for path in stubs()]
    packages += [module_of(path, "trialogue_lab") for path in stubs(LABORATORY)]
    assert {"trialogue", "trialogue.data", "trialogue.samplers", "trialogue_lab.ledger"} <= set(packages)
    subprocess.run([sys.executable, "-c", program, *packages], check=True)


HEAVY = {
    *("accelerate", "llguidance", "matplotlib", "numba", "pandas", "scipy", "sklearn", "sympy", "torch"),
    *("ray", "transformers", "tyro"),
}


def loaded(program: str) -> set[str]:
    """The modules that a program of its own has loaded when it ends."""
    ending = "\nimport sys; print(*sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", program + ending], check=True, capture_output=True, text=True)
    return set(ran.stdout.split())


LIGHT = [
    *("trialogue", "trialogue.data", "trialogue.samplers", "trialogue.samplers.exact", "trialogue.registry"),
    *("trialogue.cli", "trialogue.verifiers", "trialogue_lab.ledger", "trialogue_lab.ledger.question"),
]


def test_importing_brings_in_nothing_heavy() -> None:
    """One process imports all of them: if together they load nothing heavy, none does alone."""
    assert not HEAVY & loaded(f"import {', '.join(LIGHT)}")


def test_using_one_thing_does_not_bring_in_another() -> None:
    program = (
        "from trialogue.data import Dyck, Ising, PottsChain, Table\n"
        "from trialogue.extend import Chain, Energy, Masked, Sampler\n"
        "from trialogue.samplers import Backtracking, Gibbs, generate, run_chain, run_sweeps\n"
        "from trialogue.verifiers import FunctionVerifier\n"
        "from trialogue.samplers.exact import exact_distribution, transition_matrix"
    )
    unused = {"accelerate", "llguidance", "matplotlib", "pandas", "sklearn", "sympy", "transformers", "tyro"}
    assert not (unused | {"scipy.signal", "scipy.stats"}) & loaded(program)


def test_no_export_has_the_name_of_a_module_of_its_package() -> None:
    """Importing the module would put it in place of what the package exports."""
    for root in (SOURCE, LABORATORY):
        for path, text in stubs(root).items():
            exports = [
                line for line in ast.parse(text).body if isinstance(line, ast.ImportFrom) and line.module
            ]
            for line in exports:
                assert str(line.module).split(".")[0] not in {name.name for name in line.names}, path
