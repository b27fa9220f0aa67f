"""Train a recipe in several processes, each of which reports the files that it writes.

python -m torch.distributed.run --nproc-per-node 2 tests/training/trained_together.py FOLDER STEPS
"""

import json
import os
import sys
from pathlib import Path

import torch
from torch import Tensor

from trialogue.models import Transformer, TransformerConfig
from trialogue.randomness import generator
from trialogue.training import Recipe, Trained, TrainingConfig, load_or_train

SHAPE = TransformerConfig(vocab_size=3, layers=1, heads=2, width=16, mlp_width=32, max_length=6)
STEPS = 12


def tokens(step: int) -> Tensor:
    """Return eight sequences of six tokens."""
    if step == int(os.environ.get("KILLED_BEFORE", STEPS)):
        raise SystemExit(9)
    return torch.randint(0, 3, (8, 6), generator=generator(step, "tokens"))


RECIPE = Recipe(
    Transformer,
    SHAPE,
    tokens,
    TrainingConfig(steps=STEPS, batch_size=8, warmup_steps=2, learning_rate=1e-2, checkpoint_every=3),
    checkpoints=(4, 12),
)


def record_written_files(folder: Path) -> list[str]:
    """Return a list that records the files in `folder` that this process writes, renames or removes from now on."""
    written: list[str] = []

    def record_event(event: str, arguments: tuple[object, ...]) -> None:
        writes = event == "open" and set(str(arguments[1])) & set("wxa+")
        if (writes or event in ("os.rename", "shutil.rmtree")) and str(arguments[0]).startswith(str(folder)):
            written.append(str(arguments[0]))

    sys.addaudithook(record_event)
    return written


def train_and_record(folder: Path) -> tuple[Trained[Transformer], list[str]]:
    """Return the result of the recipe, and the files in `folder` that this process writes."""
    written = record_written_files(folder)
    return load_or_train(RECIPE, folder), written


if __name__ == "__main__":
    # Functions of a recipe are described by module name, so the module is imported instead of run as `__main__`.
    from training import trained_together

    torch.set_num_threads(1)
    found, written = trained_together.train_and_record(Path(sys.argv[1]))
    losses = found.losses.tolist()
    weights = [parameter.tolist() for parameter in found.network.parameters()]
    record = {"losses": losses, "weights": weights, "written": written}
    Path(sys.argv[2], f"{os.environ['RANK']}.json").write_text(json.dumps(record), encoding="utf-8")
