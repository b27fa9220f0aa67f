"""Fixtures for `trialogue generate`: a tiny model on disk and the command in an empty folder."""

import shlex

import pytest

from generation.command import RULES, CommandResult
from models.tiny_pretrained import save_tiny
from trialogue import cli


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return str(save_tiny(tmp_path_factory.mktemp("tiny")))


@pytest.fixture
def run(model, tmp_path, monkeypatch, capfd):
    """Run `trialogue generate` with the tiny model in an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.py").write_text(RULES, encoding="utf-8")

    def run_words(*tokens: str, own_model: bool = True) -> CommandResult:
        capfd.readouterr()
        try:
            code = cli.main(("generate", *(("--model", model) if own_model else ()), *tokens))
        except SystemExit as error:
            code = int(error.code or 0)
        return CommandResult(code, *capfd.readouterr())

    return run_words


@pytest.fixture
def shell(run):
    """Run `trialogue generate` with the words of one or several texts, split like in a shell."""

    def run_words(*texts: str, own_model: bool = True) -> CommandResult:
        return run(*shlex.split(" ".join(texts)), own_model=own_model)

    return run_words
