"""Speed of factored attention, compared with an `nn.TransformerEncoder` with equally many layers and parameters.

Both receive the same batches of rows with one masked token each, predict only that token, and train with the same loss
and SGD. They alternate on one thread. The tables show the CPU time of the fastest round in microseconds per masked row.
For "all sites", each site of a sequence is masked in turn, and computations that these copies share are done once.

    python benchmarks/factored_training.py
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from record import Record
from trialogue.models.networks.factored import FactoredAttention, FactoredAttentionConfig
from trialogue.models.networks.masked import MaskReader
from trialogue.randomness import generator
from trialogue.training import masked_token_loss

SIZES = ((320, 16, 32), (320, 32, 64))
"""Vocabulary size, sequence length, and rank of the value matrices."""
LAYERS = (1, 2, 4)
HEADS, ROWS, ROUNDS = 4, 256, 20


class Encoder(nn.Module, MaskReader):
    """Encoder of torch with token and position embeddings, pre-norm layers, and a head at the masked tokens."""

    def __init__(self, vocab_size: int, sites: int, layers: int, width: int) -> None:
        super().__init__()
        self.mask, self._tokens = vocab_size, vocab_size
        self.embedding = nn.Embedding(vocab_size + 1, width)
        self.positions = nn.Parameter(
            torch.empty(sites, width).normal_(std=0.02, generator=generator(0, "positions"))
        )
        layer = nn.TransformerEncoderLayer(
            width, HEADS, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, vocab_size)

    @property
    def data_tokens(self) -> int:
        """Number of tokens without the mask token."""
        return self._tokens

    def masked_logits(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """Return the logits (q, data tokens) at the given rows (q,) and sites (q,) of the inputs (n, L)."""
        logits: Tensor = self.head(self.encoder(self.embedding(inputs) + self.positions)[rows, sites])
        return logits


class Contender(NamedTuple):
    """A network with its timed tasks, which are a training step, a masked pass and, if supported, all sites."""

    name: str
    parameters: int
    training: Callable[[], float]
    masked: Callable[[], float]
    all_sites: Callable[[], float] | None


def size_of(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def encoder_of(vocab_size: int, sites: int, layers: int, size: int) -> Encoder:
    """Return the encoder whose number of parameters is closest to `size`."""
    widths = range(HEADS, 400, HEADS)
    with torch.device("meta"):
        sizes = {width: size_of(Encoder(vocab_size, sites, layers, width)) for width in widths}
    return Encoder(vocab_size, sites, layers, min(widths, key=lambda width: abs(sizes[width] - size)))


def timed(act: Callable[[], object], rows: int) -> Callable[[], float]:
    """Return a function that measures the CPU time of `act` in microseconds per row."""

    def round_of() -> float:
        began = time.process_time()
        act()
        return 1e6 * (time.process_time() - began) / rows

    return round_of


def contender(name: str, model: nn.Module, batch: tuple[Tensor, Tensor, Tensor]) -> Contender:
    inputs, tokens, targets = batch
    rows, sites = targets.nonzero().unbind(1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def train() -> None:
        masked_token_loss(model.train(), *batch).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def answer() -> None:
        with torch.inference_mode():
            model.eval().masked_logits(inputs, rows, sites)

    every = None
    if isinstance(model, FactoredAttention):
        model.dtype = torch.float32
        length = tokens.shape[1]
        some = tokens[: max(1, ROWS // length)]
        every = timed(lambda: model.site_logits(some), some.numel())
    return Contender(name, size_of(model), timed(train, len(tokens)), timed(answer, len(tokens)), every)


def batch_of(vocab_size: int, sites: int) -> tuple[Tensor, Tensor, Tensor]:
    draw = generator(0, "batch")
    tokens = torch.randint(0, vocab_size, (ROWS, sites), generator=draw)
    masked = torch.randint(0, sites, (ROWS, 1), generator=draw)
    targets = torch.zeros(ROWS, sites, dtype=torch.bool).scatter_(1, masked, True)
    return tokens.masked_fill(targets, vocab_size), tokens, targets


def measured(contenders: list[Contender]) -> dict[tuple[str, str], float]:
    """Run the contenders in alternation and return the fastest round of each one at each task."""
    tasks = {"training": 1, "masked": 2, "all_sites": 3}
    found: dict[tuple[str, str], list[float]] = {}
    for turn in range(ROUNDS + 2):
        for one in contenders:
            for task in tasks:
                act = getattr(one, task)
                if act is not None:
                    value = act()
                    if turn > 1:  # The first two rounds are a warm-up.
                        found.setdefault((one.name, task), []).append(value)
    return {key: min(values) for key, values in found.items()}


def main() -> None:
    torch.set_num_threads(1)
    record, out = Record("factored_training"), Console()
    for vocab_size, sites, rank in SIZES:
        of = f"V = {vocab_size}, L = {sites}, r = {rank}"
        table = Table(title=f"{of}: microseconds of CPU per masked row")
        for head in ("layers", "network", "parameters", "training", "masked pass", "all sites"):
            table.add_column(head, justify="left" if head == "network" else "right", no_wrap=True)
        batch = batch_of(vocab_size, sites)
        for layers in LAYERS:
            config = FactoredAttentionConfig(vocab_size=vocab_size, sites=sites, layers=layers, rank=rank)
            factored = FactoredAttention(config)
            encoder = encoder_of(vocab_size, sites, layers, size_of(factored))
            contenders = [
                contender("FactoredAttention", factored, batch),
                contender("nn.TransformerEncoder", encoder, batch),
            ]
            times = measured(contenders)
            for one in contenders:
                cells = []
                for task in ("training", "masked", "all_sites"):
                    value = times.get((one.name, task))
                    cells.append("" if value is None else f"{value:.1f}")
                    if value is not None:
                        setting = {"what": f"{task}, us/row", "layers": layers, "of": of}
                        record.add(one.name, round(value, 1), parameters=one.parameters, **setting)
                table.add_row(str(layers), one.name, f"{one.parameters:,}", *cells)
        out.print(table)
    record.write()


if __name__ == "__main__":
    main()
