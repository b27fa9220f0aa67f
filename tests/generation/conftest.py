"""Fixtures for `trialogue generate`: a tiny model on disk and the command in an empty folder."""

import shlex

import pytest

from generation.command import RULES, CommandResult
from models.tiny_pretrained import save_tiny


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return str(save_tiny(tmp_path_factory.mktemp("tiny")))


@pytest.fixture
def run(model, tmp_path, monkeypatch, run_command):
    """Run `trialogue generate` with the tiny model in an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.py").write_text(RULES, encoding="utf-8")

    def run_words(*tokens: str, own_model: bool = True) -> CommandResult:
        return CommandResult(*run_command("generate", *(("--model", model) if own_model else ()), *tokens))

    return run_words


@pytest.fixture
def shell(run):
    """Run `trialogue generate` with the words of one or several texts, split like in a shell."""

    def run_words(*texts: str, own_model: bool = True) -> CommandResult:
        return run(*shlex.split(" ".join(texts)), own_model=own_model)

    return run_words
