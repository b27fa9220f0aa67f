"""Models whose next-token scores are modified by functions of the prefix, like logits processors of transformers."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from trialogue.errors import InputError
from trialogue.models.wrappers.altered import DerivedContext, copy_attributes
from trialogue.oracles import Autoregressive, Context, as_oracle

Process = Callable[[Tensor, Tensor], Tensor]
"""Function of a prefix (1, length) int64 and next-token scores (1, vocab) that returns new scores (1, vocab)."""


class Processed(Autoregressive):
    """Model that applies a logits processor to the next-token scores of another model.

    Samples report their log-probability under `base`, and verifiers read the hidden states of `base`.

    Args:
        base: Oracle without truncation.
        process: Function of an unpadded prefix and the scores from `Context.scores`. It is called for each row, and its
            output must depend on these arguments only.

    Raises:
        InputError: If `base` is truncated. During evaluation, if `process` returns scores of a wrong shape, NaN, or no
            token of positive probability.
    """

    def __init__(self, base: Autoregressive, process: Process) -> None:
        self.base, self.process = as_oracle(base, "base"), process
        base = self.base
        if base.cuts:
            raise InputError(
                "base", type(base).__name__, "it is truncated. Apply truncation after logits processors"
            )
        self.vocab_size, self.eos, self.max_length = base.vocab_size, base.eos, base.max_length
        copy_attributes(base, self)

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> Context:
        """Return a context of `base` whose scores are processed."""
        return _ProcessedContext(self.base.open(rows, capacity, layers), self.process, capacity)


class _ProcessedContext(DerivedContext):
    """Context that stores the prefix next to the features of `base`, from which scores are processed."""

    def __init__(self, base: Context, process: Process, capacity: int) -> None:
        super().__init__(base)
        self._process, self._capacity = process, capacity

    def features(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        features = super().features(tokens, start, stop, rows)
        prefixes = torch.cat((stop[:, None], tokens[:, : self._capacity]), 1)
        prefixes = pad(prefixes, (0, 1 + self._capacity - prefixes.shape[1]))
        # Tokens are stored as bit patterns, because 16-bit floats cannot represent all token ids.
        bits = prefixes.to(_integer_dtype(features)).view(features.dtype).to(features.device)
        return torch.cat((features, bits), 1)

    def log_probs(self, features: Tensor) -> Tensor:
        return self.distributions(features)[0]

    def distributions(self, features: Tensor, cut: bool = True) -> tuple[Tensor, Tensor]:
        del cut
        base_features, bits = self._split_features(features)
        scores = self._base.scores(base_features)
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        prefixes = bits.contiguous().view(_integer_dtype(features)).long()
        processed = torch.cat(
            [
                _checked(self._process(prefix[None, 1 : 1 + length], row[None].clone()), row)
                for prefix, length, row in zip(prefixes, prefixes[:, 0].tolist(), scores, strict=True)
            ]
        )
        return self._base.log_probs_from_scores(processed), self._base.log_probs_from_scores(scores)

    def hidden(self, features: Tensor, layer: int) -> Tensor:
        return super().hidden(self._split_features(features)[0], layer)

    def _split_features(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return the features of the base context, and the bit patterns of the prefixes."""
        columns = (1 + self._capacity) * _integer_dtype(features).itemsize // features.element_size()
        return features[:, :-columns], features[:, -columns:]


def _integer_dtype(like: Tensor) -> torch.dtype:
    """Return the integer dtype in which tokens are stored next to features of the dtype of `like`."""
    return torch.int64 if like.element_size() == 8 else torch.int32


def _checked(processed: Tensor, scores: Tensor) -> Tensor:
    """Return `processed` after checking its shape and its values."""
    if tuple(processed.shape) != (1, len(scores)):
        hint = f"return scores with the shape of the input, {(1, len(scores))}"
        raise InputError("processed scores", tuple(processed.shape), hint)
    largest = float(processed.amax())  # NaN if any score is NaN.
    if not largest > -torch.inf:
        problem = "a logits processor returned NaN" if largest != largest else "processors exclude all tokens"
        raise InputError("processed scores", largest, f"{problem}. Remove contradictory processors")
    return processed
