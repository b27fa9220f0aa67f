"""What a training shows of itself while it runs: a bar on standard error, and scalars for TensorBoard."""

import time
from os import PathLike
from types import TracebackType
from typing import Any

from torch import Tensor
from tqdm import tqdm

from trialogue.errors import InputError


class Progress:
    """Shows the steps from `first` to `last`, to be used in a `with` statement; counts tokens for the speed.

    Raises `InputError` for a `tensorboard_dir` where TensorBoard is not installed.
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
        """One more step is done, on so many tokens."""
        self._tokens += tokens
        self._bar.update()

    @property
    def tokens_per_second(self) -> float:
        """The mean speed so far."""
        return self._tokens / (time.perf_counter() - self._began)

    def show(self, step: int, loss: float, learning_rate: float, gradient_norm: Tensor) -> None:
        """Show the numbers of the last of `step` steps; `gradient_norm` () is read only where it is written."""
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
        hint = "TensorBoard is not installed: pip install 'trialogue[tensorboard]'"
        raise InputError("tensorboard_dir", str(folder), hint) from error
    return SummaryWriter(str(folder))
