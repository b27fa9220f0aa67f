"""The command `trialogue probe`: a verifier of prefixes from labelled texts and a model's hidden states."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trialogue.cli.commands import Commands
from trialogue.errors import InputError

if TYPE_CHECKING:
    from trialogue.training.probe_files import ProbeFile
    from trialogue.training.probe_training import ProbeTrainingConfig

_FIELDS = (
    "depths",
    "hidden",
    "epochs",
    "learning_rate",
    "weight_decay",
    "validation",
    "test",
    "split_by",
    "correct_prefixes",
    "chat",
    "eos",
    "calibration",
    "false_rejections",
    "batch_size",
    "seed",
)

_DATA = """Each line of the data is a JSON object: {"prompt": ..., "completion": ..., "error": offset of the first wrong
character of the completion, or null}, from which the prefix up to the first wrong token and a correct prefix are taken;
or the same with "label": 1 (correct) or 0 in place of "error", for whole texts; or {"text": ..., "label" or "error"}
without a prompt. The card beside the output holds the numbers of all layers and depths."""


def train(arguments: argparse.Namespace) -> None:
    """Train a verifier of prefixes from labelled texts on a model's hidden states."""
    import torch

    from trialogue.models.pretrained import load_pretrained
    from trialogue.storage import make_folder
    from trialogue.training.probe_examples import read_labelled_texts
    from trialogue.training.probe_files import save_probe
    from trialogue.training.probe_training import check_texts, train_verifier

    config = _config(arguments)
    if arguments.threads < 1:
        raise InputError("threads", arguments.threads, "use 1 or more")
    if arguments.out.is_dir() or arguments.out.suffix != ".safetensors":
        raise InputError("out", str(arguments.out), "name a file that ends in .safetensors")
    make_folder(arguments.out.parent)
    data = read_labelled_texts(arguments.data)
    check_texts(data.texts, config)
    torch.set_num_threads(arguments.threads)
    oracle = load_pretrained(
        arguments.model,
        device=arguments.device,
        dtype=arguments.dtype,
        remote_code=arguments.trust_remote_code,
    )
    file = train_verifier(oracle, data, config, name=str(arguments.data), progress=True)
    told = save_probe(file, arguments.out)
    _print(file)
    print(f"probe: {arguments.out}\ncard: {told}")


def _config(arguments: argparse.Namespace) -> "ProbeTrainingConfig":
    from trialogue.training.probe_training import ProbeTrainingConfig

    given: dict[str, Any] = {name: getattr(arguments, name) for name in _FIELDS}
    given["depths"] = tuple(arguments.depths) if arguments.depths else None
    given["threshold"] = _threshold(arguments.threshold)
    given["layers"] = _layers(arguments.layers)
    return ProbeTrainingConfig(**{name: value for name, value in given.items() if value is not None})


def _layers(words: list[str] | None) -> str | tuple[int, ...] | None:
    if not words:
        return None
    if len(words) == 1 and not words[0].lstrip("-").isdecimal():
        return words[0]
    try:
        return tuple(int(word) for word in words)
    except ValueError:
        raise InputError("layers", " ".join(words), "use numbers of layers, all, or every:N") from None


def _threshold(word: str | None) -> float | str | None:
    """The number that `word` is, or else the word itself."""
    try:
        return None if word is None else float(word)
    except ValueError:
        return word


def _print(file: "ProbeFile") -> None:
    texts = sum(part.texts for part in file.parts.values())
    numbers, best = file.numbers, file.grid[0]
    print(
        f"{texts} texts, {len(file.grid)} probes; the best reads layer {best.layer} at depth {best.depth}\n"
        f"on {file.parts['test'].texts} test texts: AUROC {numbers.auroc:.3f}, accuracy {numbers.accuracy:.3f}, "
        f"Brier {numbers.brier:.3f}, calibration error {numbers.calibration_error:.3f} "
        f"({numbers.calibration_error_before:.3f} before calibration)\n"
        f"threshold {file.threshold:.4g}: rejects {numbers.false_rejections.value:.1%} of {numbers.correct} correct "
        f"prefixes and detects {numbers.detections.value:.1%} of {numbers.erroneous} errors"
    )


def add(commands: Commands) -> None:
    """Add `trialogue probe`."""
    probing = commands.add("probe", train, epilog=_DATA)
    say = probing.add_argument
    say("--model", metavar="M", required=True, help="hub id, folder, or a name that `trialogue models` knows")
    say("--data", metavar="FILE.jsonl", type=Path, required=True, help="labelled texts, one object per line")
    say("--out", metavar="FILE", type=Path, default=Path("probe.safetensors"), help="(./probe.safetensors)")
    say("--layers", metavar="L", nargs="+", help="layers to try: numbers, all, or every:N (every:4)")
    say("--depths", metavar="D", nargs="+", type=int, help="depths to try, 1 is linear (1 2)")
    say("--hidden", metavar="N", type=int, help="units of a hidden layer (256)")
    say("--epochs", metavar="N", type=int, help="at most; a probe is taken from its best epoch (100)")
    say("--learning-rate", metavar="X", type=float, help="(0.003)")
    say("--weight-decay", metavar="X", type=float, help="(0.1)")
    say(
        "--validation",
        metavar="SHARE",
        type=float,
        help="texts to select by and calibrate on, half each (0.2)",
    )
    say("--test", metavar="SHARE", type=float, help="texts for the reported numbers (0.1)")
    say("--split-by", choices=("text", "prompt"), help="what must not be in two parts (text)")
    say("--correct-prefixes", metavar="N", type=int, help="taken from each text with an error position (8)")
    say("--chat", action="store_true", help="put prompts into the tokenizer's chat template")
    say("--eos", action="store_true", help="completions end with the end of sequence")
    say("--calibration", choices=("platt", "temperature", "none"), help="(platt)")
    threshold = probing.add_mutually_exclusive_group()
    threshold.add_argument(
        "--false-rejections",
        metavar="RATE",
        type=float,
        help="share of new correct prefixes that the threshold may reject (0.05)",
    )
    threshold.add_argument(
        "--threshold", metavar="P", help="a probability, or youden: the one with the greatest J of Youden"
    )
    say("--batch-size", metavar="N", type=int, help="texts per pass of the model (16)")
    say("--seed", metavar="N", type=int, help="(0)")
    say("--device", metavar="DEVICE", help="(the GPU where there is one)")
    say("--dtype", metavar="TYPE", default="float32", help="of the model's weights (float32)")
    say("--trust-remote-code", action="store_true", help="run code of the model's repository")
    say("--threads", metavar="N", type=int, default=1, help="threads of torch (1)")
