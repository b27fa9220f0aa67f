"""The packages in `examples` run, and the examples in docstrings are correct."""

import doctest
import importlib
import json
import re
import shlex
import sys
import tomllib
from pathlib import Path

from models.tiny_pretrained import save_tiny
from trialogue import cli
from trialogue_lab.ledger import judged
from trialogue_lab.ledger.runs.execution import execute
from trialogue_lab.ledger.study import load_study

EXAMPLES = Path(__file__).parents[1] / "examples"
SOURCES = {"trialogue": EXAMPLES.parent / "src", "trialogue_lab": EXAMPLES.parent / "lab" / "src"}
UNDEFINED = {
    "trialogue.samplers.confidence",
    "trialogue.samplers.judging",
    "trialogue.training.running.checkpoints",
}
"""Modules whose examples use names that they do not define."""


def test_a_study_in_a_separate_package_runs(tmp_path, monkeypatch):
    folder = EXAMPLES / "nucleus_depth"
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    [(name, module)] = project["entry-points"]["trialogue_lab.studies"].items()
    monkeypatch.syspath_prepend(folder)
    study = load_study(module)
    assert study.name == name
    entry = judged(study, execute(study, study.preset("smoke"), tmp_path))
    assert [verdict.replications for verdict in entry.verdicts] == [2]
    assert entry.verdicts[0].estimate < 0
    assert study.tables[0].evaluate(entry.rows)["top-p 1.0", "depth"].deviation > 0
    del sys.modules[module]


def test_completions_of_the_documented_prompts_satisfy_their_verifiers(tmp_path, monkeypatch, capfd):
    """The command in the documentation runs with a tiny model instead of the documented one."""
    root = EXAMPLES.parent
    page = (root / "docs" / "how-to" / "prompts.md").read_text(encoding="utf-8")
    [command] = re.findall(
        r"^trialogue (generate [^`]*?examples/questions/questions[^`]*?)^```", page, re.MULTILINE
    )
    tokens = shlex.split(command.replace("\\\n", " "))
    tokens[tokens.index("smollm2")] = str(save_tiny(tmp_path))
    questions = (EXAMPLES / "questions" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    assert questions[0] in page
    monkeypatch.chdir(root)
    capfd.readouterr()
    assert cli.main(tokens) == 0
    records = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    inputs = [json.loads(line) for line in questions]
    assert [record["id"] for record in records] == [line["id"] for line in inputs for _ in range(2)]
    assert [record.get("metadata") for record in records[::2]] == [line.get("metadata") for line in inputs]
    accepted = [record["text"] for record in records if record["accepted"]]
    assert len(accepted) > 3
    for record in records:
        assert len(record["log_probs"]) == len(record["tokens"])
        if record["accepted"] and record["id"] == "number":
            assert int(record["text"]) % 2 == 0
        if record["accepted"] and record["id"] == "review":
            assert json.loads(record["text"])["stars"] in range(1, 6)


def test_the_examples_in_docstrings_are_correct():
    names = [
        ".".join(file.relative_to(source).with_suffix("").parts)
        for package, source in SOURCES.items()
        for file in (source / package).rglob("*.py")
        if ">>>" in file.read_text(encoding="utf-8")
    ]
    runner, finder = doctest.DocTestRunner(), doctest.DocTestFinder()
    for name in set(names) - UNDEFINED:
        module = importlib.import_module(name)
        own = [thing for thing in vars(module).values() if getattr(thing, "__module__", "") == name]
        for thing in own:
            for example in finder.find(thing, thing.__name__, module=False, globs=dict(vars(module))):
                assert runner.run(example).failed == 0, example.name
    assert runner.tries > 100
