"""A language model small enough for seconds, which every repetition of the scratch part trains from scratch.

A transformer over a few dozen tokens learns completions with known flaws: each line is wrong with probability 0.15
(the item comes first, is dropped, or is another one), and with probability 0.3 lines are missing and a further function
follows. Its prompt is the name of the function alone.
"""

import re
import string
from collections.abc import Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trialogue.models.transformer import Transformer, TransformerConfig
from trialogue.oracles import Autoregressive, Context, padded
from trialogue.randomness import numpy_generator, seed_of
from trialogue.training.config import TrainingConfig
from trialogue.training.recipes import Recipe, trained
from trialogue_lab.data.list_append.prompts import TRAINING_NAMES, random_names

_PIECES = (
    "assert ",
    ") == [",
    "([",
    "], ",
    "]\n",
    ", ",
    "def ",
    "()",
    "\n",
    *string.digits,
    *string.ascii_lowercase,
)
_PIECE = re.compile("|".join(map(re.escape, sorted(_PIECES, key=len, reverse=True))))
_NAMES, _LONGEST, _WRONG, _SHORT = 400, 2, 0.15, 0.3
_BLOCKS, _BATCH = 2, 16


class PieceTokens:
    """Tokens that stand for a fixed piece of text each, the longest first; the last id, EOS, stands for nothing."""

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`, which must be made of the pieces."""
        return [_PIECES.index(piece) for piece in _PIECE.findall(text)]

    def text(self, tokens: Iterable[int], final: bool = True) -> str:
        """The text of `tokens`."""
        del final
        return "".join(_PIECES[token] for token in tokens if token < len(_PIECES))

    def tokens_ending_with(self, text: str) -> Tensor:
        """Ids (n,) of the tokens that end in `text`."""
        return torch.tensor([token for token, piece in enumerate(_PIECES) if piece.endswith(text)])


class Surrogate(Autoregressive):
    """The trained transformer as an oracle that has a tokenization."""

    tokenization: Any

    def __init__(self, model: Transformer) -> None:
        self.model, self.tokenization = model, PieceTokens()
        self.vocab_size, self.eos, self.max_length = model.vocab_size, model.eos, model.max_length

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """The transformer's own context."""
        return self.model.open(rows, capacity, layers)


def surrogate_prompt(name: str) -> str:
    """What the surrogate reads in place of a prompt."""
    return f"{name}\n"


def surrogate_completion(name: str, cases: int, draw: np.random.Generator) -> str:
    """A completion with the flaws that the surrogate is to learn."""
    short = draw.random() < _SHORT
    lines = [_line(name, draw) for _ in range(draw.integers(1, cases) if short and cases > 1 else cases)]
    other = "".join(draw.choice(list(string.ascii_lowercase), 3))
    return "".join(lines) + (f"def {other}()\n" if short else "")


def _line(name: str, draw: np.random.Generator) -> str:
    length = int(draw.integers(0, _LONGEST + 1))
    *items, item = draw.integers(0, 10, length + 1).tolist()
    right = [*items, item]
    if draw.random() < _WRONG:
        wrong = ([item, *items], items, [*items, (item + 1 + int(draw.integers(9))) % 10])
        right = wrong[draw.integers(3)]
    return f"assert {name}({items}, {item}) == {right}\n"


def trained_surrogate(cases: int, steps: int, seed: int, artifacts: Path) -> Surrogate:
    """The surrogate of a repetition for prompts of so many `cases`, from `artifacts` if it is there."""
    config = TransformerConfig(
        vocab_size=len(_PIECES), max_length=12 + 20 * cases, layers=_BLOCKS, width=64, heads=4, mlp_width=256
    )
    training = TrainingConfig(steps=steps, warmup_steps=min(100, steps), batch_size=_BATCH, seed=seed)
    recipe = Recipe(Transformer, config, partial(_completions, cases, seed), training)
    return Surrogate(trained(recipe, artifacts).network)


@cache
def _names(seed: int) -> list[str]:
    return random_names(_NAMES, seed_of(seed, "surrogate"), TRAINING_NAMES)


def _completions(cases: int, seed: int, step: int) -> tuple[Tensor, Tensor]:
    """The batch of a step: tokens and lengths."""
    draw, tokenization = numpy_generator(seed, "surrogate", step), PieceTokens()
    texts = [
        surrogate_prompt(name) + surrogate_completion(name, cases, draw)
        for name in draw.choice(_names(seed), _BATCH).tolist()
    ]
    return padded([tokenization.encode(text) for text in texts])
