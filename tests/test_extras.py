"""The library works without its extras and without the laboratory."""

import subprocess
import sys

from refusals import calls_without_expected_error
from trialogue.display.figures import panels
from trialogue.generation.translation.scores import translation_quality
from trialogue.inspection.topic_structure.words import tokenize_passages
from trialogue.models.hub.opening import open_pretrained

OPTIONAL = (
    *(
        "arviz_base",
        "arviz_stats",
        "datasets",
        "h5netcdf",
        "joblib",
        "matplotlib",
        "openvino",
        "pandas",
        "peft",
    ),
    *("prometheus_client", "ray", "sacrebleu", "shtab", "sklearn", "statsmodels", "tensorboard"),
    *("trialogue_lab", "xarray"),
)
"""Packages of the extras and of the laboratory. Torch requires sympy and mpmath, so they are not listed."""

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

SERVE = """
from trialogue import cli
sys.modules["uvicorn"] = None
assert cli.main(["serve", "--model", "x"]) == 2
del sys.modules["uvicorn"]
"""

EVERY_HELP = """
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


def test_without_extras_every_module_can_be_imported_and_every_command_prints_its_help():
    program = WITHOUT + SERVE + EVERY_HELP + EVERY_MODULE
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "pip install 'trialogue[serve]'" in ran.stderr
    assert {"inspect", "topics", "clone", "translate", "serve"} <= set(ran.stdout.split())


def test_a_missing_extra_is_reported(monkeypatch):
    for name in ("matplotlib.figure", "openvino", "sacrebleu.metrics", "sklearn.feature_extraction.text"):
        monkeypatch.setitem(sys.modules, name, None)
    cases = [
        (r"matplotlib.*trialogue\[plot\]", panels),
        (r"openvino.*trialogue\[openvino\]", lambda: open_pretrained("openvino:smollm2")),
        (r"sacrebleu.*trialogue\[score\]", lambda: translation_quality(["a"], ["a"])),
        (r"sklearn.*trialogue\[topics\]", lambda: tokenize_passages(None, ["a"])),
    ]
    assert not calls_without_expected_error(cases)
