"""Classes registered by other packages: lookup by name, import on first use, and one-line errors."""

import subprocess
import sys
from collections import OrderedDict
from pathlib import Path

import pytest

from refusals import expect_error
from trialogue.cli import main
from trialogue.errors import InputError
from trialogue.generation.verifiers.kinds import KINDS
from trialogue.inspection.measures.measure import MEASURES
from trialogue.models.networks.registry import MODELS
from trialogue.registry import Registry
from trialogue.samplers import CHAINS, SAMPLERS, Ancestral, Gibbs
from trialogue.testing import check_chain

PACKAGE = Path(__file__).parent / "registered"


@pytest.fixture
def installed(monkeypatch):
    monkeypatch.syspath_prepend(PACKAGE)


def test_built_in_classes_can_be_imported():
    for registry in (SAMPLERS, CHAINS, KINDS, MODELS, MEASURES):
        assert len(registry) == len(list(registry.values())) > 0
    assert list(SAMPLERS)[:2] == ["ancestral", "rejection"]
    assert (SAMPLERS["ancestral"], CHAINS["gibbs"]) == (Ancestral, Gibbs)


@pytest.mark.usefixtures("installed")
def test_registered_classes_are_found_by_name():
    import still_life

    assert SAMPLERS.find("plain") is still_life.Plain
    assert CHAINS.find("lazy-gibbs") is still_life.LazyGibbs
    assert KINDS.find("at-most") is still_life.AT_MOST
    assert MODELS.find("linear") is still_life.Linear
    assert list(SAMPLERS)[-2:] == ["lost", "plain"]
    assert {"lost", "plain"} <= set(SAMPLERS)
    check_chain(CHAINS["lazy-gibbs"]())


@pytest.mark.usefixtures("installed")
def test_a_registered_class_does_not_replace_a_built_in_class():
    assert SAMPLERS["ancestral"] is Ancestral


def test_a_package_that_is_not_installed_registers_nothing():
    assert "plain" not in SAMPLERS
    with pytest.raises(KeyError):
        SAMPLERS["plain"]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "lost",
            "sampler='lost': it is registered as nowhere_to_be_found:Sampler, which cannot be imported: Module",
        ),
        ("backtrack", "sampler='backtrack': no such sampler: did you mean backtracking?"),
        ("zzz", "sampler='zzz': no such sampler: use one of ancestral, rejection"),
    ],
)
def test_unknown_names_and_failed_imports_raise_one_line_errors(name, message):
    assert str(expect_error("", SAMPLERS.find, name)).startswith(message)


def test_registered_objects_of_the_wrong_type_are_rejected():
    places = {"ordered": "collections:OrderedDict", "number": "numbers:Number", "place": "os:curdir"}
    classes: Registry[object] = Registry("trialogue.nothing", "thing", places, base=dict)
    values: Registry[object] = Registry("trialogue.nothing", "thing", places, of=str)
    assert dict(classes.loadable()) == {"ordered": OrderedDict}
    assert dict(values.loadable()) == {"place": "."}
    for registry, expected_type in (
        (classes, "a class derived from builtins.dict"),
        (values, "an instance of builtins.str"),
    ):
        with pytest.raises(InputError) as caught:
            registry["number"]
        assert (
            str(caught.value)
            == f"thing='number': it is registered as numbers:Number, which is not {expected_type}"
        )
    assert Registry[object]("trialogue.nothing", "thing", places)["place"] == "."


@pytest.mark.usefixtures("installed")
def test_a_registered_command_runs(capsys):
    """A registered command that cannot be imported is reported, whichever command runs."""
    assert main(["greet", "you"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "hello you\n"
    assert captured.err.startswith("trialogue: command='broken': it is registered as still_life:nothing")
    assert captured.err.count("\n") == 1


def test_a_second_command_with_the_same_name_is_reported(monkeypatch, capsys):
    from trialogue.cli import COMMANDS, simulate

    monkeypatch.setitem(COMMANDS, "again", simulate.add)
    assert main(["models", "list"]) == 0
    assert "command='simulate': use another name: this command already exists" in capsys.readouterr().err


def test_names_are_listed_without_importing_the_registered_modules():
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from trialogue.samplers import CHAINS, SAMPLERS\n"
        "assert 'plain' in SAMPLERS and 'lazy-gibbs' in CHAINS\n"
        "assert not {'torch', 'still_life'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program, str(PACKAGE)], check=True)
