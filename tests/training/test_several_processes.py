"""Test that two processes, each with half of the rows, give the same result as one process."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import trialogue
from training import commanded_together, trained_together
from training.trained_together import RECIPE
from trialogue.training import Trained, load_or_train

SCRIPT = Path(trained_together.__file__)


def launch_two(*words: str) -> str:
    """Run a script with arguments in two processes, with the variables that `torchrun` sets, and return the output."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, (Path(trialogue.__file__).parents[1], SCRIPT.parents[1]))),
        "ACCELERATE_USE_CPU": "1",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    processes = [
        subprocess.Popen(
            [sys.executable, *words],
            env=environment | {"RANK": rank, "LOCAL_RANK": rank},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in ("0", "1")
    ]
    outputs = [process.communicate(timeout=250)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    return "".join(outputs)


def run_two_processes(folder: Path, records: Path) -> list[dict[str, Any]]:
    """Run the training in two processes and return their records in `folder`."""
    records.mkdir(exist_ok=True)
    launch_two(str(SCRIPT), str(folder), str(records))
    return [json.loads((records / f"{rank}.json").read_text(encoding="utf-8")) for rank in range(2)]


def are_close(record: dict[str, Any], single_process: Trained[Any]) -> bool:
    """Return whether losses and weights are equal up to float32 summation order.

    The tolerance is large because Adam amplifies the rounding errors in the gradient of the key bias.
    """
    pairs = zip(record["weights"], single_process.network.parameters(), strict=True)
    return torch.allclose(torch.tensor(record["losses"]), single_process.losses, atol=1e-5) and all(
        torch.allclose(torch.tensor(one), other, atol=1e-3) for one, other in pairs
    )


@pytest.fixture(scope="module")
def single_process(tmp_path_factory):
    return load_or_train(RECIPE, tmp_path_factory.mktemp("alone"))


def test_two_processes_match_one_process_and_one_writes(single_process, tmp_path, monkeypatch):
    # One process is killed during the training, and two processes resume from its checkpoint.
    artifacts = tmp_path / "artifacts"
    monkeypatch.setenv("KILLED_BEFORE", "5")
    with pytest.raises(SystemExit):
        load_or_train(RECIPE, artifacts)
    monkeypatch.delenv("KILLED_BEFORE")
    assert (RECIPE.folder(artifacts) / "training.safetensors").exists()
    main, other = run_two_processes(artifacts, tmp_path / "records")
    assert are_close(main, single_process)
    assert (main["losses"], main["weights"]) == (other["losses"], other["weights"])
    assert other["written"] == []
    assert any("step-12" in path or ".partial" in path for path in main["written"])
    folder = RECIPE.folder(artifacts)
    names = {path.name for path in folder.rglob("*") if path.is_file()}
    expected = {"network.safetensors", "losses.safetensors", "recipe.json", "step-4.safetensors"}
    assert names == expected | {"step-12.safetensors"}


@pytest.mark.slow
def test_one_of_two_translation_processes_prints_and_writes(tmp_path):
    pairs = [f"{first} {second}\t{second} {first}\n" for first in "abcdef" for second in "ghijkl"]
    (tmp_path / "pairs.tsv").write_text("".join(pairs), encoding="utf-8")
    model, records = tmp_path / "model", tmp_path / "records"
    sizes = {"vocab": 262, "test": 4, "steps": 2, "layers": 1, "width": 8, "heads": 2, "mlp-width": 16}
    options = [f"--{name}={size}" for name, size in (sizes | {"batch-size": 8}).items()]
    arguments = (f"--text={tmp_path / 'pairs.tsv'}", f"--out={model}", "--distil", *options)
    records.mkdir()
    output = launch_two(
        commanded_together.__file__, str(model), str(records), "train-translation", *arguments
    )
    stages = (
        "training the twin",
        "translating the sources",
        "training the refiner",
        "held-out pairs\n",
        "twin: BLEU",
    )
    assert [output.count(stage) for stage in (*stages, "saved in")] == [1, 1, 1, 3, 1, 1]
    written, written_by_other = (
        json.loads((records / f"{rank}.json").read_text("utf-8")) for rank in range(2)
    )
    assert written_by_other == []
    assert str(model / ".unfinished") in written
    names = {path.name for path in model.iterdir()}
    assert {"translation.json", "twin.safetensors", "refiner.safetensors"} < names
    assert ".unfinished" not in names
