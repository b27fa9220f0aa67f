"""Oracles whose scores pass through functions of the prefix, such as the logits processors of transformers."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from trialogue.errors import InputError
from trialogue.models.wrappers.altered import DerivedContext, pass_on
from trialogue.oracles import Autoregressive, Context, as_oracle

Process = Callable[[Tensor, Tensor], Tensor]
"""From a prefix (1, length) int64 and the scores (1, vocab) of the next token to other scores (1, vocab)"""


class Processed(Autoregressive):
    """The oracle `base`, the scores of every next token passed through `process`, which is given the prefix.

    `process` is asked row by row, with whole prefixes that nothing pads; what it answers depends on them alone. Scores
    are what `Context.scores` says: logits of a network. Samples still report their log-probability under `base`, and
    verifiers read its hidden states.

    Raises `InputError` for an oracle that is truncated, which comes last of all, and, when it is asked, for an answer
    of another shape, one that is NaN, and one that leaves no token.
    """

    def __init__(self, base: Autoregressive, process: Process) -> None:
        self.base, self.process = as_oracle(base, "base"), process
        base = self.base
        if base.cuts:
            raise InputError("base", type(base).__name__, "it is truncated: truncate last of all")
        self.vocab_size, self.eos, self.max_length = base.vocab_size, base.eos, base.max_length
        pass_on(base, self)

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Return the oracle's own context, its scores processed."""
        return _ProcessedContext(self.base.open(rows, capacity, layers), self.process, capacity)


class _ProcessedContext(DerivedContext):
    """The context `base`; features are its own, and behind them the prefix that they are of.

    The prefix, of up to `capacity` tokens, in place of its distribution, which is many times as wide.
    """

    def __init__(self, base: Context, process: Process, capacity: int) -> None:
        super().__init__(base)
        self._process, self._capacity = process, capacity

    def features(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        features = super().features(tokens, start, stop, rows)
        prefixes = torch.cat((stop[:, None], tokens[:, : self._capacity]), 1)
        prefixes = pad(prefixes, (0, 1 + self._capacity - prefixes.shape[1]))
        # Bit by bit: no type of less than 32 bits holds every token as a number.
        bits = prefixes.to(_whole(features)).view(features.dtype).to(features.device)
        return torch.cat((features, bits), 1)

    def log_probs(self, features: Tensor) -> Tensor:
        return self.distributions(features)[0]

    def distributions(self, features: Tensor, cut: bool = True) -> tuple[Tensor, Tensor]:
        del cut
        own, bits = self._parts(features)
        scores = self._base.scores(own)
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        prefixes = bits.contiguous().view(_whole(features)).long()
        processed = torch.cat(
            [
                _checked(self._process(prefix[None, 1 : 1 + length], row[None].clone()), row)
                for prefix, length, row in zip(prefixes, prefixes[:, 0].tolist(), scores, strict=True)
            ]
        )
        return self._base.law_of(processed), self._base.law_of(scores)

    def hidden(self, features: Tensor, layer: int) -> Tensor:
        return super().hidden(self._parts(features)[0], layer)

    def _parts(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """The features of the base, and the bits of the prefixes."""
        numbers = (1 + self._capacity) * _whole(features).itemsize // features.element_size()
        return features[:, :-numbers], features[:, -numbers:]


def _whole(like: Tensor) -> torch.dtype:
    """The type of tokens that becomes whole columns of the type of `like`."""
    return torch.int64 if like.element_size() == 8 else torch.int32


def _checked(answer: Tensor, scores: Tensor) -> Tensor:
    """The `answer` of a process; raises `InputError` unless it has the shape of `scores` and leaves some token."""
    if tuple(answer.shape) != (1, len(scores)):
        hint = f"return scores of shape {(1, len(scores))}, as they were given"
        raise InputError("processed scores", tuple(answer.shape), hint)
    greatest = float(answer.amax())  # NaN where any is
    if not greatest > -torch.inf:
        hint = "a logits processor answers NaN" if greatest != greatest else "processors leave no token"
        raise InputError("processed scores", greatest, f"{hint}: leave out what contradicts itself")
    return answer
