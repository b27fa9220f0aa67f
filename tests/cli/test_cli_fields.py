"""Dataclasses as command-line options: parsing, help and errors of one line."""

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

import trialogue
from refusals import expect_error
from trialogue import cli
from trialogue.cli.parsing.fields import Group, parse
from trialogue.errors import InputError


@dataclass(frozen=True)
class Sampling:
    """Settings of a sampler."""

    texts: tuple[str, ...] = ()
    """Texts to
    continue."""
    max_new_tokens: int = 5
    top_k: int | None = None
    top_p: float = 1.0
    reads: Literal["text", "tokens"] = "text"
    name: str | None = None
    chat: bool = False

    def __post_init__(self) -> None:
        if self.max_new_tokens < 1:
            raise InputError("max_new_tokens", self.max_new_tokens, "use at least 1")


@dataclass(frozen=True)
class SamplerOptions:
    quota: int | None = 4
    most: int | None = None
    lazy: bool = True
    ids: tuple[int, ...] = (1, 2)
    top_p: float = 0.5


def parsed(*tokens: str, **own: Any) -> tuple[Sampling, SamplerOptions]:
    groups = {"sampling": Group(Sampling, "What is drawn."), "own": Group(SamplerOptions(**own), terse=False)}
    groups_by_name = parse(groups, tokens, prog="draw", description="Draw.", unknown="nobody has it")
    return groups_by_name["sampling"], groups_by_name["own"]


@pytest.mark.parametrize(
    ("tokens", "texts"),
    [
        (("--texts", "a", "--texts", "b"), ("a", "b")),
        (("--texts", "a", "--chat", "--texts", "b"), ("a", "b")),
        (("--texts=-a", "--texts", "-", "--texts", "-1", "--texts", "-.5"), ("-a", "-", "-1", "-.5")),
        (
            ("--texts", "- an item", "--texts", "-v is", "--texts", "--chat or not"),
            ("- an item", "-v is", "--chat or not"),
        ),
        (("--texts=a=b", "--texts", "", "--texts="), ("a=b", "", "")),
        ((), ()),
    ],
)
def test_repeated_texts_are_collected(tokens, texts):
    assert parsed(*tokens)[0].texts == texts


def test_values_have_the_types_of_the_fields():
    plain, own = parsed(
        *("--max-new-tokens", "3", "--max_new_tokens", "7", "--top-k=2", "--top-p", "1e-1", "--reads=tokens"),
        *("--name", "None", "--quota", "None", "--no-lazy", "--ids", "5", "-6"),
    )
    assert plain == Sampling((), 7, 2, 0.1, "tokens", "None", False)
    # An option that belongs to both groups sets the first.
    assert own == SamplerOptions(None, None, False, (5, -6), 0.5)
    assert parsed(quota=9, ids=(3,))[1] == SamplerOptions(9, ids=(3,))
    assert parsed("--lazy", lazy=False)[1].lazy is True


REFUSED = [
    ("--max-new-tokens x", "max_new_tokens='x': --max-new-tokens: invalid: use a whole number"),
    ("--top-k None", "top_k='None': --top-k: invalid: use a whole number"),
    ("--top-p=x", "top_p='x': --top-p: invalid: use a number"),
    ("--reads both", "reads='both': --reads: invalid: use text or tokens"),
    ("--texts", "texts=None: --texts: add a value"),
    ("--top-k --chat", "top_k=None: --top-k: add a value"),
    ("--ids x --chat", "ids='x': --ids: invalid: "),
    ("--max-new-tokens -1", "max_new_tokens=-1: use at least 1"),
    ("--texts a b", "word='b': quote texts of several words"),
    ("stray --chat", "word='stray': quote texts of several words"),
    ("--chat=x", "word='x': quote texts of several words"),
    ("--no-chat", "option='--no-chat': nobody has it"),
    ("--reeds text", "option='--reeds': nobody has it: did you mean --reads?"),
    ("--zzz", "option='--zzz': nobody has it: see `draw --help`"),
]


def test_invalid_options_are_reported():
    for command, words in REFUSED:
        assert words in str(expect_error("", parsed, *command.split()))


def test_help_describes_the_fields(capsys):
    with pytest.raises(SystemExit):
        parsed("--help")
    message = capsys.readouterr().out
    for words in (
        "usage: draw",
        "What is drawn.",
        "Texts to continue.",
        "--max-new-tokens INT",
        "(5)",
        "--no-lazy",
        "--most INT",
    ):
        assert words in message
    assert "--no-chat" not in message
    assert message.count("--top-p") == 1


def modules_after(program):
    """Return the modules that a new process has loaded after `program`."""
    environment = os.environ | {"PYTHONPATH": str(Path(trialogue.__file__).parents[1])}
    code = f"{program}\nimport sys; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return set(result.stdout.split())


def test_options_of_generate_are_available_without_torch():
    program = (
        "from trialogue.generation import settings\nfrom trialogue.generation.verifiers import kinds\n"
        "assert settings.OPTIONS and kinds.KINDS"
    )
    assert not {"torch", "numpy", "pandas", "transformers"} & modules_after(program)


@pytest.mark.parametrize(("module", "limit"), [("trialogue", 80), ("trialogue.cli", 200)])
def test_an_import_loads_few_modules(module, limit):
    """The number of modules bounds the time of the import without depending on the machine."""
    assert len(modules_after(f"import {module}") - modules_after("pass")) < limit


def test_the_list_of_commands_fits_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, cli.parser().format_help().splitlines())) <= 80


def test_every_option_of_every_command_has_a_help_text():
    def options(parser, path):
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, command in action.choices.items():
                    yield from options(command, (*path, name))
            elif action.help is not argparse.SUPPRESS:
                yield path, action

    found = list(options(cli.parser(), ()))
    assert len(found) > 100
    assert [(path, action.dest) for path, action in found if not action.help] == []
