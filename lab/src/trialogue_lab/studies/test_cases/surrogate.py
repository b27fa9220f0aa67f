"""A small language model that every repetition from scratch trains within seconds.

A transformer over a few dozen tokens is trained on test cases of list append with known errors. Each line is wrong with
probability 0.15: the appended item comes first, is missing, or is replaced by another one. With probability 0.3, lines
are missing and another function follows. The prompt is the name of the function alone.
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

from trialogue.models.networks.transformer import Transformer, TransformerConfig
from trialogue.oracles import Autoregressive, Context, pad_sequences
from trialogue.randomness import derive_seed, numpy_generator
from trialogue.training.config import TrainingConfig
from trialogue.training.recipes import Recipe, load_or_train
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
_NAMES, _MAX_ITEMS, _ERROR_PROBABILITY, _SHORT_PROBABILITY = 400, 2, 0.15, 0.3
_BLOCKS, _BATCH_SIZE = 2, 16


class PieceTokens:
    """Tokenizer with a fixed list of text pieces, which prefers longer pieces.

    The last token id is the end of sequence.
    """

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text.

        Args:
            text: The text, which must consist of the pieces.
        """
        return [_PIECES.index(piece) for piece in _PIECE.findall(text)]

    def text(self, tokens: Iterable[int], final: bool = True) -> str:
        """Return the text of token ids.

        Args:
            tokens: Token ids.
            final: Ignored, because every token is a complete piece of text.
        """
        del final
        return "".join(_PIECES[token] for token in tokens if token < len(_PIECES))

    def tokens_ending_with(self, text: str) -> Tensor:
        """Return the token ids (n,) whose piece of text ends with `text`.

        Args:
            text: The ending.
        """
        return torch.tensor([token for token, piece in enumerate(_PIECES) if piece.endswith(text)])


class Surrogate(Autoregressive):
    """A small transformer with its tokenizer, trained to generate flawed test cases.

    Args:
        model: The trained transformer.
    """

    tokenization: Any

    def __init__(self, model: Transformer) -> None:
        self.model, self.tokenization = model, PieceTokens()
        self.vocab_size, self.eos, self.max_length = model.vocab_size, model.eos, model.max_length

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Open a context that generates text with the transformer.

        Args:
            rows: Number of sequences.
            capacity: Maximum number of tokens of a sequence.
            layers: Layers whose hidden states are returned.
        """
        return self.model.open(rows, capacity, layers)


def make_surrogate_prompt(name: str) -> str:
    """Return the prompt for the model that is trained from scratch: the function name.

    Args:
        name: Name of the target function.
    """
    return f"{name}\n"


def sample_surrogate_completion(name: str, cases: int, random: np.random.Generator) -> str:
    """Return a random text of test cases with errors, a training example of the surrogate.

    The surrogate is a small language model that is trained from scratch.

    Args:
        name: Name of the target function.
        cases: Number of requested test cases.
        random: Random number generator.
    """
    is_short = random.random() < _SHORT_PROBABILITY
    count = random.integers(1, cases) if is_short and cases > 1 else cases
    lines = [_sample_line(name, random) for _ in range(count)]
    other = "".join(random.choice(list(string.ascii_lowercase), 3))
    return "".join(lines) + (f"def {other}()\n" if is_short else "")


def _sample_line(name: str, random: np.random.Generator) -> str:
    length = int(random.integers(0, _MAX_ITEMS + 1))
    *items, item = random.integers(0, 10, length + 1).tolist()
    result = [*items, item]
    if random.random() < _ERROR_PROBABILITY:
        wrong = ([item, *items], items, [*items, (item + 1 + int(random.integers(9))) % 10])
        result = wrong[random.integers(3)]
    return f"assert {name}({items}, {item}) == {result}\n"


def train_surrogate(cases: int, steps: int, seed: int, artifacts: Path) -> Surrogate:
    """Train the small language model of a repetition, or load it from `artifacts`.

    Args:
        cases: Number of test cases that a prompt requests.
        steps: Number of training steps.
        seed: Seed of the repetition.
        artifacts: Folder of trained models.
    """
    config = TransformerConfig(
        vocab_size=len(_PIECES), max_length=12 + 20 * cases, layers=_BLOCKS, width=64, heads=4, mlp_width=256
    )
    training = TrainingConfig(steps=steps, warmup_steps=min(100, steps), batch_size=_BATCH_SIZE, seed=seed)
    recipe = Recipe(Transformer, config, partial(_sample_completions, cases, seed), training)
    return Surrogate(load_or_train(recipe, artifacts).network)


@cache
def _sample_names(seed: int) -> list[str]:
    return random_names(_NAMES, derive_seed(seed, "surrogate"), TRAINING_NAMES)


def _sample_completions(cases: int, seed: int, step: int) -> tuple[Tensor, Tensor]:
    """Return the tokens and lengths of the batch for a training step."""
    random, tokenization = numpy_generator(seed, "surrogate", step), PieceTokens()
    texts = [
        make_surrogate_prompt(name) + sample_surrogate_completion(name, cases, random)
        for name in random.choice(_sample_names(seed), _BATCH_SIZE).tolist()
    ]
    return pad_sequences([tokenization.encode(text) for text in texts])
