"""The tiny model on disk, and the command in an empty folder."""

import shlex
from pathlib import Path

import pytest

from generation.command import RULES, Say, Told
from models.tiny_pretrained import save_tiny
from trialogue import cli


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_tiny(tmp_path_factory.mktemp("tiny")))


@pytest.fixture
def say(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Say:
    """Run `trialogue generate` with the tiny model in an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.py").write_text(RULES, encoding="utf-8")

    def said(*tokens: str, own_model: bool = True) -> Told:
        capfd.readouterr()
        try:
            code = cli.main(("generate", *(("--model", model) if own_model else ()), *tokens))
        except SystemExit as error:
            code = int(error.code or 0)
        return Told(code, *capfd.readouterr())

    return said


@pytest.fixture
def shell(say: Say) -> Say:
    """Run `trialogue generate` with the words of one or several texts, as a shell reads them."""

    def said(*texts: str, own_model: bool = True) -> Told:
        return say(*shlex.split(" ".join(texts)), own_model=own_model)

    return said
