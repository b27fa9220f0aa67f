"""The command `trialogue probe`."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

from trialogue.cli.parsing.commands import Commands
from trialogue.cli.parsing.fields import Group, join_option_values, parse
from trialogue.cli.parsing.words import find_option_value
from trialogue.errors import InputError, require_model
from trialogue.validation import Count, validated

if TYPE_CHECKING:
    from trialogue.training.probes.probe_config import ProbeTrainingConfig
    from trialogue.training.probes.probe_files import ProbeFile

_DATA = """Each line of the data is a JSON object {"prompt": ..., "completion": ..., "error": ...}, where "error" is the
offset of the first wrong character of the completion, or null if there is none. Use "label" (1 for correct, 0 for
wrong) instead of "error" to label whole texts, and "text" instead of "prompt" and "completion" if there is no prompt. A
JSON card next to the output lists the accuracy of all layers and depths."""


@validated
@dataclass(frozen=True)
class Files:
    """Input, output and hardware."""

    model: Annotated[str | None, arg(metavar="MODEL")] = None
    """Load this model: a Hugging Face id, a folder, or a name from `trialogue models list`."""
    data: Annotated[Path | None, arg(metavar="FILE.jsonl")] = None
    """Train on these labelled texts, one JSON object per line."""
    out: Annotated[Path, arg(metavar="FILE")] = Path("probe.safetensors")
    """Write the probe to this file, and a card of accuracies next to it."""
    device: Annotated[str | None, arg(metavar="DEVICE")] = None
    """Compute on this device: cpu, cuda, cuda:1 or mps (default: the GPU if there is one)."""
    dtype: Annotated[str, arg(metavar="TYPE")] = "float32"
    """Load the weights in this type: float32, bfloat16, float16 or float64."""
    trust_remote_code: bool = False
    """Execute Python code from the model's repository."""
    threads: Annotated[Count, arg(metavar="N")] = 1
    """Use this many PyTorch threads."""

    def __post_init__(self) -> None:
        require_model(self.model)
        if self.data is None:
            raise InputError("data", None, "use a file of labelled texts (see `trialogue probe --help`)")
        if self.out.is_dir() or self.out.suffix != ".safetensors":
            raise InputError("out", str(self.out), "use a file name that ends in .safetensors")


def train(arguments: argparse.Namespace) -> None:
    """Train a probe on a model's hidden states that predicts whether a prefix is correct."""
    files, config = _parse_settings(arguments.overrides)

    import torch

    from trialogue.models.hub.pretrained import load_pretrained
    from trialogue.storage import require_folder
    from trialogue.training.probes.probe_examples import read_labelled_texts
    from trialogue.training.probes.probe_files import save_probe
    from trialogue.training.probes.probe_training import require_enough_texts, train_verifier

    model, data_path = str(files.model), Path(str(files.data))  # `Files` ensures that neither is None.
    require_folder(files.out)
    data = read_labelled_texts(data_path)
    require_enough_texts(data.texts, config)
    torch.set_num_threads(files.threads)
    oracle = load_pretrained(
        model, device=files.device, dtype=files.dtype, remote_code=files.trust_remote_code
    )
    file = train_verifier(oracle, data, config, name=str(data_path), progress=True)
    card = save_probe(file, files.out)
    _print(file)
    print(f"probe: {files.out}\ncard: {card}")


def _parse_settings(tokens: Sequence[str]) -> "tuple[Files, ProbeTrainingConfig]":
    from trialogue.training.probes.probe_config import ProbeTrainingConfig

    groups = {
        "files and machine": Group(Files, Files.__doc__ or ""),
        "training": Group(ProbeTrainingConfig, "Training of the verifier.", terse=False),
    }
    words = join_option_values(groups, tokens)
    threshold = find_option_value("--threshold", words)
    if threshold is not None and find_option_value("--false-rejections", words) is not None:
        raise InputError("threshold", threshold, "not allowed with --false-rejections: leave out one of them")
    description = f"{train.__doc__}\n\n{_DATA}"
    parsed = parse(groups, words, prog="trialogue probe", description=description, unknown="unknown option")
    return parsed["files and machine"], parsed["training"]


def _print(file: "ProbeFile") -> None:
    texts = sum(part.texts for part in file.parts.values())
    numbers, best = file.numbers, file.grid[0]
    print(
        f"{texts} texts, {len(file.grid)} probes; the best one uses layer {best.layer} at depth {best.depth}\n"
        f"on {file.parts['test'].texts} test texts: AUROC {numbers.auroc:.3f}, accuracy {numbers.accuracy:.3f}, "
        f"Brier {numbers.brier:.3f}, calibration error {numbers.calibration_error:.3f} "
        f"({numbers.calibration_error_before:.3f} before calibration)\n"
        f"threshold {file.threshold:.4g}: rejects {numbers.false_rejections.value:.1%} of {numbers.correct} correct "
        f"prefixes and detects {numbers.detections.value:.1%} of {numbers.erroneous} errors"
    )


def add(commands: Commands) -> None:
    """Add the command `trialogue probe` to a parser.

    Args:
        commands: Commands of the parser.
    """
    commands.add("probe", train, group="Train", fields=True, add_help=False)
