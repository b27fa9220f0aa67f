"""What packages of users' own register: found by name, imported when it is asked for, and wrong in one line."""

import subprocess
import sys
from collections import OrderedDict
from pathlib import Path

import pytest

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
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PACKAGE)


def test_what_comes_with_the_package_can_be_imported() -> None:
    for registry in (SAMPLERS, CHAINS, KINDS, MODELS, MEASURES):
        assert len(registry) == len(list(registry.values())) > 0
    assert list(SAMPLERS)[:2] == ["ancestral", "rejection"]
    assert (SAMPLERS["ancestral"], CHAINS["gibbs"]) == (Ancestral, Gibbs)


@pytest.mark.usefixtures("installed")
def test_what_a_package_registers_is_known_by_its_name() -> None:
    import still_life

    assert SAMPLERS.find("plain") is still_life.Plain
    assert CHAINS.find("lazy-gibbs") is still_life.LazyGibbs
    assert KINDS.find("at-most") is still_life.AT_MOST
    assert MODELS.find("linear") is still_life.Linear
    assert list(SAMPLERS)[-2:] == ["lost", "plain"]
    assert {"lost", "plain"} <= set(SAMPLERS)
    check_chain(CHAINS["lazy-gibbs"]())


@pytest.mark.usefixtures("installed")
def test_a_built_in_name_is_not_taken() -> None:
    assert SAMPLERS["ancestral"] is Ancestral


def test_a_package_that_is_not_installed_registers_nothing() -> None:
    assert "plain" not in SAMPLERS
    with pytest.raises(KeyError):
        SAMPLERS["plain"]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "lost",
            "sampler='lost': it is registered as nowhere_to_be_found:Sampler, which cannot be imported: Module",
        ),
        ("backtrack", "sampler='backtrack': no such sampler: did you mean backtracking?"),
        ("zzz", "sampler='zzz': no such sampler: use one of ancestral, rejection"),
    ],
)
def test_what_cannot_be_had_is_one_line(name: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        SAMPLERS.find(name)
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)


def test_what_is_imported_is_of_the_type_that_is_registered() -> None:
    places = {"ordered": "collections:OrderedDict", "number": "numbers:Number", "place": "os:curdir"}
    classes: Registry[object] = Registry("trialogue.nothing", "thing", places, base=dict)
    values: Registry[object] = Registry("trialogue.nothing", "thing", places, of=str)
    assert dict(classes.loadable()) == {"ordered": OrderedDict}
    assert dict(values.loadable()) == {"place": "."}
    for registry, what in (
        (classes, "a class derived from builtins.dict"),
        (values, "an instance of builtins.str"),
    ):
        with pytest.raises(InputError) as told:
            registry["number"]
        assert str(told.value) == f"thing='number': it is registered as numbers:Number, which is not {what}"
    assert Registry[object]("trialogue.nothing", "thing", places)["place"] == "."


@pytest.mark.usefixtures("installed")
def test_a_command_of_a_package_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """And one that cannot be imported is named, in whatever command is run."""
    assert main(["greet", "you"]) == 0
    told = capsys.readouterr()
    assert told.out == "hello you\n"
    assert told.err.startswith("trialogue: command='broken': it is registered as still_life:nothing")
    assert told.err.count("\n") == 1


def test_a_command_s_name_is_given_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from trialogue.cli import COMMANDS, simulate

    monkeypatch.setitem(COMMANDS, "again", simulate.add)
    assert main(["models", "list"]) == 0
    assert "command='simulate': a command of this name exists already" in capsys.readouterr().err


def test_names_are_read_without_importing_what_they_name() -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from trialogue.samplers import CHAINS, SAMPLERS\n"
        "assert 'plain' in SAMPLERS and 'lazy-gibbs' in CHAINS\n"
        "assert not {'torch', 'still_life'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program, str(PACKAGE)], check=True)
