"""The bidirectional decoder as an oracle: a masked one of one source for chains, of many for translating together."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from trialogue.data.parallel.vocabulary import EOS, MASK, PAD, SPECIAL
from trialogue.errors import InputError
from trialogue.models.encoder_decoder.network import Encoded, EncoderDecoder, source_rows
from trialogue.models.networks.masked import MaskedNetwork
from trialogue.oracles import SequenceModel


class Refiner:
    """The bidirectional `model`, which answers for a translation of a given length when it is told the source.

    Raises `InputError` for a model whose decoder is causal.
    """

    def __init__(self, model: EncoderDecoder) -> None:
        if not isinstance(model, EncoderDecoder) or model.config.causal:
            hint = "give an EncoderDecoder whose decoder is not causal"
            raise InputError("model", type(model).__name__, hint)
        self.model = model.eval()

    def condition(self, source: Sequence[int], length: int | None = None) -> ConditionedRefiner:
        """The oracle of translations of `source`, tokens without EOS, of any `length` or of one.

        Raises `InputError` where the source is too long.
        """
        _, encoded = self._encoded([source])
        return ConditionedRefiner(self.model, encoded, length)

    def condition_each(self, sources: Sequence[Sequence[int]]) -> tuple[RefinedRows, Tensor]:
        """The model of rows of which row i translates source i, and the distributions (n, max_length + 1) of their
        lengths.

        Lengths are log-probabilities. Raises `InputError` for a source that is too long.
        """
        tokens, encoded = self._encoded(sources)
        with torch.no_grad():
            lengths = self.model.length_logits(tokens, encoded).float().log_softmax(-1)
        return RefinedRows(self.model, encoded), lengths

    def _encoded(self, sources: Sequence[Sequence[int]]) -> tuple[Tensor, Encoded]:
        tokens = source_rows(sources, self.model.config.max_length, self.model.config.vocab_size).to(
            self.model.head.weight.device
        )
        with torch.no_grad():
            return tokens, self.model.encode(tokens)


class ConditionedRefiner(MaskedNetwork):
    """A masked oracle of translations of one source.

    Tokens (rows, N) are pieces, without the EOS that the model reads behind them; a distribution gives the four tokens
    that are none no probability.
    """

    mask = MASK

    def __init__(self, model: EncoderDecoder, encoded: Encoded, length: int | None = None) -> None:
        self.model, self._encoded = model, encoded
        self.vocab_size, self.sites = model.config.vocab_size, length
        self.batch_size = 256
        self.dtype = torch.promote_types(model.head.weight.dtype, torch.float32)

    def answers(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """Logits (q, vocab) at `sites` (q,) of `rows` (q,) of `inputs` (n, N)."""
        device = self.model.head.weight.device
        inputs = inputs.to(device)
        lengths = inputs.new_full((len(inputs),), inputs.shape[1])
        encoded = self._encoded.repeated(len(inputs))
        states = _states(self.model, encoded, inputs, lengths)
        return _only_pieces(self.model.head(states[rows.to(device), sites.to(device)]))

    def refined_log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Log-probabilities (rows, N, vocab) of every token given all of what `tokens` now are, in one pass."""
        self._require_data(tokens)
        inputs = tokens.masked_fill(masked, self.mask)
        distributions = [
            self._answered(part, *torch.ones_like(part).nonzero().unbind(1)).log_softmax(-1)
            for part in inputs.split(self.batch_size)
        ]
        return torch.cat(distributions).view(*tokens.shape, -1)


class RefinedRows(SequenceModel):
    """What refinement asks of a model of many sources at once: row i of the tokens translates source i.

    Rows may differ in length: PAD fills them up, and stays.
    """

    def __init__(self, model: EncoderDecoder, encoded: Encoded) -> None:
        self._model, self._encoded = model, encoded
        self.vocab_size, self.device = model.config.vocab_size, model.head.weight.device

    def rows(self, rows: Tensor) -> RefinedRows:
        """The model of rows of which row i translates source `rows[i]`."""
        return RefinedRows(self._model, self._encoded.rows(rows))

    def free(self, tokens: Tensor) -> Tensor:
        """Where `tokens` (rows, N) are no PAD."""
        return tokens != PAD

    def refined_log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Log-probabilities (rows, N, vocab) of every token given all of what `tokens` (rows, N) now are, in one pass.

        At `masked` (rows, N) the model reads masks. PAD has probability one where it stands.
        """
        real = tokens != PAD
        with torch.no_grad():
            states = _states(self._model, self._encoded, tokens.masked_fill(masked & real, MASK), real.sum(1))
            distributions = _only_pieces(self._model.head(states)).float().log_softmax(-1)
            if not bool(real.all()):
                distributions[~real] = torch.where(
                    torch.arange(self.vocab_size, device=distributions.device) == PAD, 0.0, -torch.inf
                )
        return distributions


def _states(model: EncoderDecoder, encoded: Encoded, tokens: Tensor, lengths: Tensor) -> Tensor:
    """What the head reads (n, N, width) at every one of `tokens` (n, N), of which `lengths` (n,) are real."""
    inputs = F.pad(tokens, (0, 1), value=PAD).scatter(1, lengths[:, None], EOS)
    return model.decode(inputs, encoded, lengths + 1)[:, :-1]


def _only_pieces(logits: Tensor) -> Tensor:
    """`logits` (..., vocab) that give the tokens which are no pieces no probability."""
    return logits.index_fill(-1, torch.arange(len(SPECIAL), device=logits.device), -torch.inf)
