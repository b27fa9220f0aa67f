"""Imports run one way, from the contract to the command line, in no circle, and bring in nothing before it is used."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import trialogue

SOURCE = Path(trialogue.__file__).parent
LAYERS = (
    {"__init__", "errors", "compilation", "arrays", "indices", "validation", "start_up", "source_code"},
    {"probabilities", "randomness", "enumeration", "registry", "storage", "tensor_files", "executors"},
    {"oracles", "blocks", "ledger"},
    {"data", "models"},
    {"inference"},
    {"training", "extend", "testing"},
    {"theory", "generation"},
    {"analysis", "serving"},
    {"studies"},
    {"gallery"},
    {"cli", "__main__"},
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def layer_of(module: str) -> str:
    """The layer's name: what follows `trialogue` in a module's name."""
    return [*module.split("."), "__init__"][1]


def imports(tree: ast.Module, module: str, is_package: bool) -> Iterator[str]:
    """Modules of the package that a module names in its import statements, wherever they stand."""
    for node in ast.sampler(tree):
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


def module_of(path: str) -> str:
    """The name of the module at `path` below the package."""
    return ".".join(("trialogue", *Path(path).with_suffix("").parts)).removesuffix(".__init__")


def violations(sources: dict[str, str]) -> list[str]:
    """Imports that run against the order of the layers, in `sources` by path below the package."""
    found = []
    for path, text in sources.items():
        module = module_of(path)
        for name in imports(ast.parse(text), module, Path(path).stem == "__init__"):
            # `from trialogue import __version__` names no module of a layer.
            target = layer_of(name) if layer_of(name) in LEVEL else "__init__"
            if LEVEL[target] > LEVEL[layer_of(module)]:
                found.append(f"{path} imports {name}")
    return found


def sources() -> dict[str, str]:
    return {str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}


def stubs() -> dict[str, str]:
    """The exports that packages make lazily."""
    return {str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.pyi")}


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


def test_every_module_has_a_layer() -> None:
    assert {
        layer_of(".".join(("trialogue", *Path(path).with_suffix("").parts))) for path in sources()
    } <= set(LEVEL)


def test_imports_run_one_way() -> None:
    assert violations(sources()) == []


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("ledger/claims.py", "from trialogue_lab.studies import find"),
        ("data/dyck/language.py", "from trialogue.samplers import samplers"),
        ("randomness.py", "import trialogue.data.dyck.language"),
        ("inference/distributions.py", "from trialogue import training"),
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


def test_imports_run_in_no_circle() -> None:
    assert circle(sources(), stubs()) == []


@pytest.mark.parametrize(
    ("module", "lines"),
    [
        ("models/causal_network.py", "from trialogue.models.transformer import Transformer"),
        (
            "models/causal_network.py",
            "if TYPE_CHECKING:\n    from trialogue.models.transformer import Transformer",
        ),
        ("data/site_tables.py", "def f():\n    from trialogue.data import Ising"),
        ("inference/chains/chain.py", "from trialogue.samplers import run_chain"),
        ("oracles/whole.py", "from trialogue.oracles import PrefixOracle"),
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


@pytest.mark.parametrize(
    "module",
    [
        *(
            "trialogue",
            "trialogue.data",
            "trialogue.samplers",
            "trialogue.samplers.exact",
            "trialogue_lab.ledger",
        ),
        *(
            "trialogue_lab.ledger.question",
            "trialogue.registry",
            "trialogue.cli",
            "trialogue.verifiers",
        ),
    ],
)
def test_importing_brings_in_nothing_heavy(module: str) -> None:
    assert not HEAVY & loaded(f"import {module}")


def test_using_one_thing_does_not_bring_in_another() -> None:
    program = (
        "from trialogue.data import Dyck, Ising, PottsChain, Table\n"
        "from trialogue.extend import Chain, Energy, Masked, Sampler\n"
        "from trialogue.samplers import Backtracking, FunctionVerifier, Gibbs, generate, run_chain, run_sweeps\n"
        "from trialogue.samplers.exact import exact_distribution, transition_matrix"
    )
    unused = {"accelerate", "llguidance", "matplotlib", "pandas", "sklearn", "sympy", "transformers", "tyro"}
    assert not (unused | {"scipy.signal", "scipy.stats"}) & loaded(program)


def test_importing_the_package_takes_no_time() -> None:
    """It takes a third of the bound, which is that of processor time on a machine where everything else runs too."""
    program = "import time; begun = time.process_time(); import trialogue; print(time.process_time() - begun)"
    taken = []
    for _ in range(3):
        ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
        taken.append(float(ran.stdout))
    assert min(taken) < 0.15
