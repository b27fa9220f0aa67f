"""Translation models that predict all target tokens at once, given the current ones."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from trialogue.data.parallel.vocabulary import EOS, MASK, PAD, SPECIAL
from trialogue.errors import InputError
from trialogue.models.encoder_decoder.network import EncodedSources, EncoderDecoder, pad_sources
from trialogue.models.networks.masked import MaskedNetwork
from trialogue.oracles import SequenceModel


class Refiner:
    """Translation model that revises all tokens of a translation in parallel.

    Args:
        model: Encoder-decoder with a bidirectional decoder.

    Raises:
        InputError: If the decoder is causal.
    """

    def __init__(self, model: EncoderDecoder) -> None:
        if not isinstance(model, EncoderDecoder) or model.config.causal:
            hint = "use an EncoderDecoder with causal=False"
            raise InputError("model", type(model).__name__, hint)
        self.model = model.eval()

    def condition(self, source: Sequence[int], length: int | None = None) -> ConditionedRefiner:
        """Return a masked language model over the translations of one source.

        Args:
            source: Token ids without EOS.
            length: Number of tokens of the translation. Any length by default.

        Raises:
            InputError: If the source is too long.
        """
        _, encoded = self._encoded([source])
        return ConditionedRefiner(self.model, encoded, length)

    def condition_each(self, sources: Sequence[Sequence[int]]) -> tuple[RefinedRows, Tensor]:
        """Return a model that translates many sources in parallel, and the distributions of the target lengths.

        Args:
            sources: Token ids of each source, without EOS.

        Returns:
            Model whose row i translates source i, and log-probabilities of the lengths 0 to max_length, (n, max_length
            + 1).

        Raises:
            InputError: If a source is too long.
        """
        tokens, encoded = self._encoded(sources)
        with torch.no_grad():
            lengths = self.model.length_logits(tokens, encoded).float().log_softmax(-1)
        return RefinedRows(self.model, encoded), lengths

    def _encoded(self, sources: Sequence[Sequence[int]]) -> tuple[Tensor, EncodedSources]:
        tokens = pad_sources(sources, self.model.config.max_length, self.model.config.vocab_size).to(
            self.model.head.weight.device
        )
        with torch.no_grad():
            return tokens, self.model.encode(tokens)


class ConditionedRefiner(MaskedNetwork):
    """Masked language model over the translations of one source sentence.

    Sequences have subword tokens only; EOS is added internally. The special tokens have probability 0.

    Args:
        model: Encoder-decoder with a bidirectional decoder.
        encoded: The encoded source.
        length: Number of tokens of the translation, or None for any length.
    """

    mask = MASK

    def __init__(self, model: EncoderDecoder, encoded: EncodedSources, length: int | None = None) -> None:
        self.model, self._encoded = model, encoded
        self.vocab_size, self.sites = model.config.vocab_size, length
        self.batch_size = 256
        self.dtype = torch.promote_types(model.head.weight.dtype, torch.float32)

    def logits_at(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """Compute logits (q, vocab_size) at some sites in one forward pass. See `MaskedNetwork.logits_at`."""
        device = self.model.head.weight.device
        inputs = inputs.to(device)
        lengths = inputs.new_full((len(inputs),), inputs.shape[1])
        encoded = self._encoded.repeat(len(inputs))
        states = _decoder_states(self.model, encoded, inputs, lengths)
        return _exclude_special(self.model.head(states[rows.to(device), sites.to(device)]))

    def refined_log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Compute log-probabilities of the tokens at all sites, given the current tokens, in one pass per batch.

        Args:
            tokens: Current tokens, (rows, N) int64.
            masked: Sites at which the model reads mask tokens, (rows, N) bool.

        Returns:
            Log-probabilities, (rows, N, vocab_size).
        """
        self._require_data(tokens)
        inputs = tokens.masked_fill(masked, self.mask)
        log_probs = [
            self._evaluate(part, *torch.ones_like(part).nonzero().unbind(1)).log_softmax(-1)
            for part in inputs.split(self.batch_size)
        ]
        return torch.cat(log_probs).view(*tokens.shape, -1)


class RefinedRows(SequenceModel):
    """Model of the translations of many sources, in which row i translates source i.

    Rows of different lengths are padded with PAD, which does not change.

    Args:
        model: Encoder-decoder with a bidirectional decoder.
        encoded: Encoded sources.
    """

    def __init__(self, model: EncoderDecoder, encoded: EncodedSources) -> None:
        self._model, self._encoded = model, encoded
        self.vocab_size, self.device = model.config.vocab_size, model.head.weight.device

    def rows(self, rows: Tensor) -> RefinedRows:
        """Return a model whose row i translates source `rows[i]`."""
        return RefinedRows(self._model, self._encoded.rows(rows))

    def free(self, tokens: Tensor) -> Tensor:
        """Return a bool mask (rows, N) that excludes padding."""
        return tokens != PAD

    def refined_log_probs(self, tokens: Tensor, masked: Tensor) -> Tensor:
        """Compute log-probabilities of the tokens at all sites, given the current tokens, in one forward pass.

        Args:
            tokens: Current tokens padded with PAD, (rows, N) int64.
            masked: Sites at which the model reads mask tokens, (rows, N) bool.

        Returns:
            Log-probabilities, (rows, N, vocab_size). At padding, PAD has probability 1.
        """
        real = tokens != PAD
        with torch.no_grad():
            states = _decoder_states(
                self._model, self._encoded, tokens.masked_fill(masked & real, MASK), real.sum(1)
            )
            log_probs = _exclude_special(self._model.head(states)).float().log_softmax(-1)
            if not bool(real.all()):
                log_probs[~real] = torch.where(
                    torch.arange(self.vocab_size, device=log_probs.device) == PAD, 0.0, -torch.inf
                )
        return log_probs


def _decoder_states(
    model: EncoderDecoder, encoded: EncodedSources, tokens: Tensor, lengths: Tensor
) -> Tensor:
    """Return the hidden states (n, N, width) of the decoder at `tokens` (n, N) with `lengths` (n,)."""
    inputs = F.pad(tokens, (0, 1), value=PAD).scatter(1, lengths[:, None], EOS)
    return model.decode(inputs, encoded, lengths + 1)[:, :-1]


def _exclude_special(logits: Tensor) -> Tensor:
    """Set the logits (..., vocab_size) of special tokens to -inf."""
    return logits.index_fill(-1, torch.arange(len(SPECIAL), device=logits.device), -torch.inf)
