"""Progress bar and TensorBoard logs of a training."""

import time
from os import PathLike
from types import TracebackType
from typing import Any

from torch import Tensor
from tqdm import tqdm

from trialogue.errors import InputError


class Progress:
    """Shows a progress bar and logs of a training run, as a context manager.

    Args:
        first: First step of this run.
        last: Total number of steps.
        visible: Whether to show a progress bar on standard error, if that is a terminal.
        tensorboard_dir: Folder for TensorBoard logs. None writes no logs.

    Raises:
        InputError: If TensorBoard is needed but not installed.
    """

    def __init__(
        self, first: int, last: int, visible: bool, tensorboard_dir: str | PathLike[str] | None
    ) -> None:
        self._writer = None if tensorboard_dir is None else _writer(tensorboard_dir)
        self._bar = tqdm(total=last, initial=first, unit="step", disable=not visible or None)
        self._tokens, self._began = 0, time.perf_counter()

    def __enter__(self) -> "Progress":
        self._began = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()
        if self._writer is not None:
            self._writer.close()

    def stepped(self, tokens: int) -> None:
        """Record that a step on this number of tokens is finished."""
        self._tokens += tokens
        self._bar.update()

    @property
    def tokens_per_second(self) -> float:
        """Mean speed since the start of the run."""
        return self._tokens / (time.perf_counter() - self._began)

    def show(self, step: int, loss: float, learning_rate: float, gradient_norm: Tensor) -> None:
        """Show and log the metrics of the last step.

        Args:
            step: Number of completed steps.
            loss: Loss of the last step.
            learning_rate: Learning rate of the last step.
            gradient_norm: Norm of the gradient before clipping, a scalar tensor. It is read only for TensorBoard.
        """
        speed = self.tokens_per_second
        self._bar.set_postfix({"loss": f"{loss:.4f}", "tokens/s": f"{speed:,.0f}"}, refresh=False)
        if self._writer is not None:
            scalars = {"loss": loss, "learning_rate": learning_rate, "gradient_norm": gradient_norm.item()}
            for name, scalar in (scalars | {"tokens_per_second": speed}).items():
                self._writer.add_scalar(name, scalar, step)


def _writer(folder: str | PathLike[str]) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        hint = "TensorBoard is not installed; run pip install 'trialogue[tensorboard]'"
        raise InputError("tensorboard_dir", str(folder), hint) from error
    return SummaryWriter(str(folder))
