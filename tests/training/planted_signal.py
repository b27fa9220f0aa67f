"""Oracle with random hidden states, except for one layer that encodes whether the prefix has a mark."""

from collections.abc import Sequence

import torch
from torch import Tensor

from models.tiny_pretrained import tiny_tokenizer
from trialogue.models.tokenization import Tokenization
from trialogue.randomness import generator, numpy_generator
from trialogue.training.probes.probe_examples import LabelledText, LabelledTexts

MARK = "!"
WIDTH = 12


class Planted:
    """Autoregressive oracle with 5 blocks, where the third block has the signal in its first coordinate."""

    name = "planted"
    layers = 5
    signal = 3
    max_length: int | None = 64

    def __init__(self) -> None:
        self.tokenization = Tokenization(tiny_tokenizer())
        self.vocab_size, self.eos = self.tokenization.vocab_size, self.tokenization.eos
        self._noise: dict[tuple[int, ...], Tensor] = {}

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> "Planted":
        """Return a context without cached state."""
        return self

    def features(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        found = torch.empty(len(tokens), self.layers + 1, WIDTH)
        for row, length in enumerate(stop.tolist()):
            prefix = tuple(tokens[row, :length].tolist())
            if prefix not in self._noise:
                draw = generator(0, "planted", prefix)
                self._noise[prefix] = torch.randn(self.layers + 1, WIDTH, generator=draw)
            found[row] = self._noise[prefix]
            marked = MARK.encode() in self.tokenization.bytes(prefix)
            found[row, self.signal, 0] = -3.0 if marked else 3.0
        return found.flatten(1)

    def hidden(self, features: Tensor, layer: int) -> Tensor:
        return features.unflatten(1, (self.layers + 1, WIDTH))[:, layer]


def marked_texts(n: int, seed: int = 0) -> LabelledTexts:
    """Return short texts, half of them with a mark at the position of an error."""
    draw = numpy_generator(seed, "marked")
    texts = []
    for index in range(n):
        words = [str(word) for word in draw.choice(["the cat", " sat", " 42", " mat", ", yes", " café"], 5)]
        completion, error = "".join(words), None
        if index % 2:
            error = int(draw.integers(0, len(completion)))
            completion = completion[:error] + MARK + completion[error:]
        texts.append(LabelledText(f"line {index + 1}", f"{index} cats:", completion, error=error))
    return LabelledTexts(texts, "0" * 64)
