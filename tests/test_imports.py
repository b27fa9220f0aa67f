"""Imports follow the order of the layers, contain no cycle, and load a module only when it is used."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
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
        {"exponentials"},
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
"""Parts of each package, from the lowest layer to the highest. A part imports only from its own and lower layers."""
LEVEL = {
    f"{package}.{name}": level
    for package, layers in LAYERS.items()
    for level, names in enumerate(layers)
    for name in names
}


def layer_of(module: str) -> str:
    """Return the package and the part of a module, for example "trialogue.data" for "trialogue.data.dyck.language"."""
    package, part, *_ = [*module.split("."), "__init__"]
    return f"{package}.{part}"


@cache
def nodes(text: str) -> list[ast.AST]:
    """Return the import statements and the constants of a module."""
    return [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.Constant))
    ]


def imported_modules(text: str, module: str, is_package: bool) -> Iterator[str]:
    """Yield the modules of the two packages that appear in any import statement of a module."""
    for node in nodes(text):
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


def modules_in_strings(text: str) -> Iterator[str]:
    """Yield the modules of the two packages that appear in string literals, as in registries."""
    for node in nodes(text):
        if isinstance(node, ast.Constant) and MODULE_STRING.fullmatch(str(node.value)):
            yield str(node.value).replace(":", ".")


MODULE_STRING = re.compile(r"trialogue(_lab)?(\.\w+)+:[\w.]+|trialogue_lab[\w.]*")
"""Pattern of a reference to a module, either "module:attribute" (an entry point) or a path in the laboratory."""


def module_of(path: str, package: str = "trialogue") -> str:
    """Return the name of the module at `path`, relative to the package."""
    return ".".join((package, *Path(path).with_suffix("").parts)).removesuffix(".__init__")


def violations(sources: dict[str, str], package: str = "trialogue") -> list[str]:
    """Return the imports that violate the order of the layers.

    Every import of the laboratory by the library is a violation.

    Args:
        sources: Source text by path relative to the package.
        package: Name of the package.
    """
    found = []
    for path, text in sources.items():
        module = module_of(path, package)
        for name in (
            *imported_modules(text, module, Path(path).stem == "__init__"),
            *modules_in_strings(text),
        ):
            if name.split(".")[0] != package:
                wrong = package == "trialogue"
            else:
                # `from trialogue import __version__` imports an attribute, which belongs to no layer.
                target = layer_of(name) if layer_of(name) in LEVEL else f"{package}.__init__"
                wrong = LEVEL[target] > LEVEL[layer_of(module)]
            if wrong:
                found.append(f"{path} imports {name}")
    return found


def sources(root: Path = SOURCE, pattern: str = "*.py") -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in root.rglob(pattern)}


def stubs(root: Path = SOURCE) -> dict[str, str]:
    """Return the stub files, which list the lazy exports of packages."""
    return sources(root, "*.pyi")


def find_cycle(sources: dict[str, str], stubs: dict[str, str]) -> list[str]:
    """Return a cycle of imports, as a list of modules that begins and ends with the same module, or an empty list.

    All import statements count, including imports for type checkers and imports within functions, because they are
    dependencies too. A lazily exported name counts as an import from the module that defines it. The import of a
    package before its modules and the lazy exports themselves do not count.
    """
    modules = {module_of(path) for path in sources}
    defined: dict[str, str] = {}
    for path, text in stubs.items():
        package = module_of(path)
        for name in imported_modules(text, package, True):
            defined[f"{package}.{name.rpartition('.')[2]}"] = name.rpartition(".")[0]

    def imported(name: str) -> str:
        while name not in modules:
            name = defined.get(name, name.rpartition(".")[0])
        return name

    graph = {
        module_of(path): {
            imported(name)
            for name in imported_modules(text, module_of(path), Path(path).stem == "__init__")
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
def test_imports_follow_the_order_of_the_layers(package, root):
    texts = sources(root)
    assert len(texts) > 200
    assert {layer_of(module_of(path, package)) for path in texts} <= set(LEVEL)
    assert violations(texts, package) == []


INVALID_IMPORTS = [
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
VALID_IMPORTS = [
    ("trialogue", "oracles/__init__.py", "from .whole import Chain"),
    ("trialogue", "cli/__init__.py", "from trialogue import __version__, generation"),
    ("trialogue", "errors.py", "HINT = 'pip install trialogue-lab'"),
    (
        "trialogue_lab",
        "studies/ising/measure.py",
        "from trialogue.cli import main\nimport trialogue_lab.ledger",
    ),
]


def test_only_imports_against_the_order_are_violations():
    for package, path, line in INVALID_IMPORTS:
        assert len(violations({path: line}, package)) == 1, line
    for package, path, line in VALID_IMPORTS:
        assert violations({path: line}, package) == [], line


def test_imports_contain_no_cycle():
    assert find_cycle(sources(), stubs()) == []


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
def test_a_cycle_is_detected(module, lines):
    texts = sources()
    cycle = find_cycle({**texts, module: f"{texts[module]}\n{lines}"}, stubs())
    assert cycle[0] == cycle[-1]
    assert module_of(module) in cycle


def test_every_exported_name_can_be_imported():
    """Every name in a stub can be imported from its package."""
    packages = [module_of(path) for path in stubs()]
    packages += [module_of(path, "trialogue_lab") for path in stubs(LABORATORY)]
    assert {"trialogue", "trialogue.data", "trialogue.samplers", "trialogue_lab.ledger"} <= set(packages)
    for package in packages:
        module = importlib.import_module(package)
        assert module.__all__
        assert set(module.__all__) <= set(dir(module))
        assert [name for name in module.__all__ if not hasattr(module, name)] == []


HEAVY = {
    *("accelerate", "llguidance", "matplotlib", "numba", "pandas", "scipy", "sklearn", "sympy", "torch"),
    *("ray", "transformers", "tyro"),
}


def modules_loaded_by(program: str) -> set[str]:
    """Return the modules that are loaded after a program has run in a new process."""
    ending = "\nimport sys; print(*sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", program + ending], check=True, capture_output=True, text=True)
    return set(ran.stdout.split())


LIGHT = [
    *("trialogue", "trialogue.data", "trialogue.samplers", "trialogue.samplers.exact", "trialogue.registry"),
    *("trialogue.cli", "trialogue.verifiers", "trialogue_lab.ledger", "trialogue_lab.ledger.question"),
]


def test_importing_loads_no_heavy_package():
    """All modules are imported in one process. If none of them loads a heavy package together, none does alone."""
    assert not HEAVY & modules_loaded_by(f"import {', '.join(LIGHT)}")


def test_using_one_part_does_not_load_unused_packages():
    program = (
        # A built-in network is imported on demand.
        "from trialogue.models.networks.registry import get_registration\n"
        "assert get_registration('transformer')\n"
        "from trialogue.data import Dyck, Ising, PottsChain, Table\n"
        "from trialogue.extend import Chain, Energy, Masked, Sampler\n"
        "from trialogue.models import Transformer, TransformerConfig\n"
        "from trialogue.samplers import Backtracking, Gibbs, generate, run_chain, run_sweeps\n"
        "from trialogue.verifiers import FunctionVerifier\n"
        "from trialogue.samplers.exact import exact_distribution, transition_matrix\n"
        "Transformer(TransformerConfig(vocab_size=3, width=8, mlp_width=8))"
    )
    unused = {"accelerate", "llguidance", "matplotlib", "pandas", "sklearn", "sympy", "transformers", "tyro"}
    assert not (unused | {"scipy.signal", "scipy.stats", "torch._dynamo"}) & modules_loaded_by(program)


def test_no_export_has_the_name_of_a_submodule():
    """Importing such a module would replace the exported object in the package."""
    for root in (SOURCE, LABORATORY):
        for path, text in stubs(root).items():
            exports = [
                line for line in ast.parse(text).body if isinstance(line, ast.ImportFrom) and line.module
            ]
            for line in exports:
                assert str(line.module).split(".")[0] not in {name.name for name in line.names}, path
