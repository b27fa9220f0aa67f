"""The library works without its extras and without the laboratory: nothing imports them before it needs them."""

import subprocess
import sys

OPTIONAL = (
    *("arviz_base", "arviz_stats", "datasets", "h5netcdf", "matplotlib", "pandas", "peft", "ray"),
    *("sacrebleu", "shtab", "sklearn", "statsmodels", "tensorboard", "trialogue_lab", "xarray"),
)
"""Packages that extras install, and packages of the laboratory. Torch itself needs sympy and mpmath."""

WITHOUT = f"""
import importlib, pkgutil, sys
from contextlib import redirect_stdout
from io import StringIO

class Without:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, path=None, target=None):
        missing = name.partition(".")[0] in {OPTIONAL}
        return None if missing else self.finder.find_spec(name, path, target)

sys.meta_path[:] = map(Without, sys.meta_path)
"""

EVERY_MODULE = """
import trialogue
for module in pkgutil.walk_packages(trialogue.__path__, "trialogue."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""

EVERY_HELP = """
from trialogue import cli
commands = next(action.choices for action in cli.parser()._actions if action.choices)
for name in commands:
    page = StringIO()
    try:
        with redirect_stdout(page):
            code = cli.main([name, "--help"])
    except SystemExit as stopped:
        code = stopped.code
    assert not code and "--help" in page.getvalue(), name
print(*commands)
"""


def run(program: str) -> str:
    ran = subprocess.run([sys.executable, "-c", WITHOUT + program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_every_module_can_be_imported_without_extras() -> None:
    run(EVERY_MODULE)


def test_every_command_prints_its_help_without_extras() -> None:
    assert {"inspect", "topics", "clone", "translate", "serve"} <= set(run(EVERY_HELP).split())
