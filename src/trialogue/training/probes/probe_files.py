"""Files of trained probes: safetensors with a Markdown card that describes the probe."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from trialogue.errors import InputError
from trialogue.models.networks.probe import Probe, hidden_states_of_prefixes
from trialogue.oracles import Autoregressive
from trialogue.storage import atomic_write
from trialogue.tensor_files import read_tensors, write_tensors
from trialogue.training.probes.calibration import Calibration, Proportion, VerifierMetrics
from trialogue.training.probes.probe_config import CalibrationMethod
from trialogue.verifiers import ProbeVerifier, Threshold

_KIND = "trialogue probe 1"
_HINT = "create it again with `trialogue probe`"


class GridEntry(NamedTuple):
    """Metrics of one probe of the grid search on the selection split.

    Attributes:
        layer: Layer whose hidden states the probe reads.
        depth: Number of linear layers.
        epoch: Epoch from which the weights are taken.
        log_loss: Log-loss in nats.
        accuracy: Accuracy of the probe.
    """

    layer: int
    depth: int
    epoch: int
    log_loss: float
    accuracy: float


class SplitSizes(NamedTuple):
    """Number of texts, correct examples and erroneous examples in one split of the data."""

    texts: int
    correct: int
    erroneous: int


@dataclass(frozen=True, kw_only=True)
class ProbeFile:
    """A calibrated probe with its threshold, metrics and a description of its training.

    Args:
        probe: The probe, with the calibration included in its weights.
        layer: Layer whose hidden states the probe reads, as a block number or -1 for the input of the output head.
        threshold: Rejection threshold.
        model: Name of the model.
        data: Name of the data.
        data_sha256: SHA-256 hash of the data file.
        method: Calibration method.
        calibration: Calibration that was applied to the raw probe.
        numbers: Metrics on the test split.
        grid: All probes of the grid search, in order of increasing log-loss.
        parts: Sizes of the splits by name.
        settings: Training options.
    """

    probe: Probe
    layer: int
    threshold: float
    model: str
    data: str
    data_sha256: str
    method: CalibrationMethod
    calibration: Calibration
    numbers: VerifierMetrics
    grid: tuple[GridEntry, ...]
    parts: dict[str, SplitSizes]
    settings: dict[str, Any]

    def verifier(self, threshold: float | None = None) -> Threshold:
        """Return the verifier that accepts prefixes with P(correct) of at least `threshold`.

        Args:
            threshold: Rejection threshold. The stored threshold by default.
        """
        return Threshold(
            ProbeVerifier(self.probe, self.layer), self.threshold if threshold is None else threshold
        )

    def check(self, oracle: Autoregressive) -> None:
        """Raise `InputError` if `oracle` does not have the layer, or if its hidden states have another width."""
        try:
            states = hidden_states_of_prefixes(oracle, [[0]], [[1]], (self.layer,))
            self.probe.probability(states[:, 0])
        except InputError as error:
            text = f"it was trained on {self.model!r} and does not fit this model ({error.field}={error.value!r})"
            raise InputError("probe", self.model, text) from error


def save_probe(file: ProbeFile, path: str | PathLike[str]) -> Path:
    """Write a probe and its Markdown card, each atomically.

    Args:
        file: Probe to save.
        path: Path of the safetensors file. The card has the same name with the suffix `.md`.

    Returns:
        Path of the card.

    Raises:
        InputError: If a file cannot be written.
    """
    shape = {"width": file.probe.width, "depth": file.probe.depth, "hidden": file.probe.hidden}
    metadata = {name: getattr(file, name) for name in _PLAIN_FIELDS} | {
        "shape": shape,
        "calibration": file.calibration._asdict(),
        "numbers": file.numbers._asdict(),
        "grid": file.grid,
        "parts": file.parts,
    }
    write_tensors(path, _KIND, file.probe.state_dict(), metadata)
    return atomic_write(Path(path).with_suffix(".md"), make_card(file, Path(path).name))


_PLAIN_FIELDS = ("layer", "threshold", "model", "data", "data_sha256", "method", "settings")


def load_probe(path: str | PathLike[str]) -> ProbeFile:
    """Load a probe from a file written by `save_probe`.

    No code in the file is executed.

    Raises:
        InputError: If the file does not exist, is damaged, or is not a probe.
    """
    tensors, metadata = read_tensors(path, _KIND, _HINT)
    try:
        probe = Probe(**metadata["shape"])
        probe.load_state_dict(tensors)
        numbers = metadata["numbers"]
        for name in ("false_rejections", "detections"):
            numbers[name] = Proportion(*numbers[name])
        return ProbeFile(
            probe=probe.eval().requires_grad_(False),
            calibration=Calibration(**metadata["calibration"]),
            numbers=VerifierMetrics(**numbers),
            grid=tuple(GridEntry(*entry) for entry in metadata["grid"]),
            parts={name: SplitSizes(*part) for name, part in metadata["parts"].items()},
            **{name: metadata[name] for name in _PLAIN_FIELDS},
        )
    except (KeyError, TypeError, RuntimeError) as error:
        raise InputError("path", str(path), f"weights and description do not agree; {_HINT}") from error


def make_card(file: ProbeFile, name: str) -> str:
    """Return the Markdown text that describes a probe stored under `name`."""
    numbers, probe = file.numbers, file.probe
    kind = "linear" if probe.depth == 1 else f"an MLP of {probe.depth} layers, {probe.hidden} units each"
    where = (
        "the input of the output head"
        if file.layer == -1
        else f"the residual stream after block {file.layer}"
    )
    slope, offset = file.calibration
    lines = [
        f"# {name}",
        "",
        f"A verifier of prefixes for `{file.model}`: {kind}, on {where} at the last position (width {probe.width}).",
        f"Its value is P(correct). It rejects a prefix if the value is below {file.threshold:.4g}.",
        "",
        "```sh",
        f"trialogue generate --model {file.model} --sampler backtracking --verifier probe:{name} --prompt ...",
        "```",
        "",
        "```python",
        "from trialogue.training.probes.probe_files import load_probe",
        "",
        f'verifier = load_probe("{name}").verifier()',
        "```",
        "",
        "## Data",
        "",
        f"`{file.data}`, SHA-256 `{file.data_sha256}`. P(correct) refers to the mixture of these examples, in which",
        "errors may be more frequent than in the output of a model.",
        "",
        *_table(
            ("split", "texts", "correct examples", "erroneous examples"),
            [(part, *sizes) for part, sizes in file.parts.items()],
        ),
        "",
        "## Metrics on the test split",
        "",
        *_table(("", ""), _test_rows(numbers)),
        "",
        f"Calibration ({file.method}): log-odds × {slope:.4g} + {offset:.4g}, at a temperature of {1 / slope:.4g}.",
        f"The threshold is {_threshold_origin(file)}.",
        "",
        "## All probes on the selection split, sorted by log-loss",
        "",
        *_table(
            ("layer", "depth", "epoch", "log-loss", "accuracy"),
            file.grid,
        ),
        "",
        "## Settings",
        "",
        "```json",
        json.dumps(file.settings, indent=1),
        "```",
        "",
    ]
    return "\n".join(lines)


def _threshold_origin(file: ProbeFile) -> str:
    wanted = file.settings["threshold"]
    if wanted is None:
        rate = file.settings["false_rejections"]
        return f"the largest that is expected to reject at most {rate:.2%} of new correct prefixes"
    return "the one with the largest Youden's J" if wanted == "youden" else "set by the user"


def _test_rows(numbers: VerifierMetrics) -> list[tuple[str, str | float]]:
    def share(of: Proportion) -> str:
        return f"{of.value:.4f} ({of.events} of {of.total}; 95 % interval {of.low:.3f} to {of.high:.3f})"

    return [
        ("accuracy at 1/2", numbers.accuracy),
        ("AUROC", numbers.auroc),
        ("log-loss", numbers.log_loss),
        ("Brier score", numbers.brier),
        ("expected calibration error", numbers.calibration_error),
        ("expected calibration error before calibration", numbers.calibration_error_before),
        ("correct prefixes rejected", share(numbers.false_rejections)),
        ("errors detected", share(numbers.detections)),
    ]


def _table(head: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> list[str]:
    def written(cell: object) -> str:
        return f"{cell:.4f}" if isinstance(cell, float) else str(cell)

    return [f"| {' | '.join(map(written, row))} |" for row in (head, ("---",) * len(head), *rows)]
