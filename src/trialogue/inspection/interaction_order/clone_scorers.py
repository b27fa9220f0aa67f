"""Losses of models on clones, for networks saved by this package and for Hugging Face checkpoints.

A clone consists of tokens. A model with the same tokenizer is evaluated on these tokens. For a model with another
tokenizer, the clone is decoded to text and tokenized again, provided that the model's tokenizer preserves the text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.data.clones import TEXT, Clone, Clones
from trialogue.errors import InputError
from trialogue.inspection.subject import special_token_frame
from trialogue.models.hub.checkpoint_loading import load_checkpoint, select_device
from trialogue.models.hub.heads import detect_head
from trialogue.models.hub.pretrained_masked import PretrainedMasked
from trialogue.models.networks.attention_only import AttentionOnly
from trialogue.models.networks.masked import MaskedNetwork
from trialogue.models.networks.saved import load_model
from trialogue.models.networks.transformer import Transformer
from trialogue.oracles import pad_sequences
from trialogue.training.corpus_losses import Score, corpus_score, next_token_scores

MIN_PRESERVED = 0.9
"""Minimum share of texts that a tokenizer must preserve when it encodes and decodes them, up to case and spaces."""


@dataclass(frozen=True, kw_only=True)
class CloneLoss:
    """Loss of a model on a clone of a text, with its standard error.

    A clone is a copy of a text in which only interactions of tokens up to a chosen order remain.

    Args:
        model: Name of the model.
        step: Training step of the checkpoint. None if unknown.
        clone: Name of the clone.
        max_order: Highest order of interactions that remain in the clone. None if all orders remain.
        causal: True if the model predicts next tokens, False if it predicts masked tokens.
        score: Loss in nats, its standard error, and accuracy, each per token.
        tokens_per_byte: Number of tokens of the model per byte of text. None if the model uses the tokens of the clone,
            so that the text is not tokenized again.
    """

    model: str
    step: int | None
    clone: str
    max_order: int | None
    causal: bool
    score: Score
    tokens_per_byte: float | None

    @property
    def loss(self) -> float:
        """Loss in nats per token, or per byte of text if the text was tokenized again."""
        return self.score.loss * self._scale

    @property
    def error(self) -> float:
        """Standard error of `loss`, in the same unit."""
        return self.score.error * self._scale

    @property
    def _scale(self) -> float:
        return 1.0 if self.tokens_per_byte is None else self.tokens_per_byte


class CloneScorer(ABC):
    """Base class of objects that compute the loss of one model on clones of a text.

    A clone is a copy of a text in which only interactions of tokens up to a chosen order remain.

    Attributes:
        causal: True if the model predicts each token from the tokens before it, False if it predicts masked tokens.
        retokenized: Whether the clones are decoded to text and tokenized with the tokenizer of the model.
    """

    causal: bool
    retokenized: bool

    @abstractmethod
    def score(self, clone: Clone, rows: int, share: float, seed: int) -> tuple[Score, float | None]:
        """Compute the loss and the accuracy on a clone.

        Args:
            clone: The clone.
            rows: Number of rows of the clone to use, starting with the first.
            share: Fraction of the tokens of each row that a masked model predicts. Causal models predict all
                tokens.
            seed: Random seed for the choice of these tokens.

        Returns:
            Two values. The first has the loss, its standard error and the accuracy per token. The second is the
            number of tokens per byte of text, or None if the text is not tokenized again.

        Raises:
            InputError: If the rows are longer than the model's maximum length.
        """

    def loss(
        self, clone: Clone, rows: int, share: float, seed: int, *, model: str, step: int | None = None
    ) -> CloneLoss:
        """Compute the loss on a clone and return it with the names of model and clone.

        Args:
            clone: The clone.
            rows: Number of rows of the clone to use, starting with the first.
            share: Fraction of the tokens of each row that a masked model predicts. Causal models predict all
                tokens.
            seed: Random seed for the choice of these tokens.
            model: Name of the model, which is copied to the result.
            step: Training step of the checkpoint, which is copied to the result. None if unknown.

        Raises:
            InputError: If the rows are longer than the model's maximum length.
        """
        score, tokens_per_byte = self.score(clone, rows, share, seed)
        return CloneLoss(
            model=model,
            step=step,
            clone=clone.name,
            max_order=clone.max_order,
            causal=self.causal,
            score=score,
            tokens_per_byte=tokens_per_byte,
        )


def load_clone_scorer(
    place: str | Path, clones: Clones, *, device: str | torch.device | None = None, dtype: str = "float32"
) -> CloneScorer:
    """Load a model and prepare it for scoring clones.

    Args:
        place: File written by `save_model`, or Hugging Face checkpoint.
        clones: Folder of the clones to score.
        device: Torch device. By default a GPU if there is one.
        dtype: Name of the dtype of the weights of a checkpoint.

    Returns:
        An object whose method `score` computes the loss on a clone.

    Raises:
        InputError: If the model cannot be loaded, or has neither a masked nor a causal language modeling head.
            Also if its tokenizer differs from the one of the clones and does not preserve their text.
    """
    if Path(place).suffix == ".safetensors":
        return _NetworkScorer(str(place), clones, device)
    kind = detect_head(place)
    return pretrained_scorer(
        str(place), *load_checkpoint(kind, place, device=device, dtype=dtype), kind == "CausalLM", clones
    )


def pretrained_scorer(name: str, model: Any, tokenizer: Any, causal: bool, clones: Clones) -> CloneScorer:
    """Prepare a transformers model for scoring clones.

    Args:
        name: Name of the model in error messages.
        model: Model with a language modeling head.
        tokenizer: Tokenizer of the model.
        causal: True if the model predicts next tokens, False if it predicts masked tokens.
        clones: Folder of the clones to score.

    Returns:
        An object whose method `score` computes the loss on a clone.

    Raises:
        InputError: If the tokenizer differs from the one of the clones and does not preserve their text.
    """
    scorer = _CausalScorer if causal else _MaskedScorer
    return scorer(name, model, tokenizer, clones)


class _NetworkScorer(CloneScorer):
    """Scorer of a network that was saved by this package, without a tokenizer."""

    retokenized = False

    def __init__(self, place: str, clones: Clones, device: str | torch.device | None) -> None:
        self._model = load_model(place, device=select_device(device))
        shape: Any = self._model.config
        size = getattr(shape, "vocab_size", None)
        if size != clones.vocab_size:
            hint = f"use a model with {clones.vocab_size} tokens, like the tokenizer of the clones in {clones.folder}"
            raise InputError("model", place, f"its vocabulary has {size} tokens: {hint}")
        if not isinstance(self._model, Transformer | MaskedNetwork | AttentionOnly):
            hint = f"use another model, because a {type(self._model).__name__} does not score whole rows"
            raise InputError("model", place, hint)
        if isinstance(self._model, AttentionOnly) and self._model.config.context >= clones.length:
            context = self._model.config.context
            hint = (
                f"its context of {context} tokens is not shorter than the rows of the clones ({clones.length} tokens): "
                "make clones with longer rows, or use a model with a shorter context"
            )
            raise InputError("model", place, hint)
        is_causal_transformer = isinstance(self._model, Transformer) and self._model.config.causal
        self.causal = is_causal_transformer or isinstance(self._model, AttentionOnly)

    def score(self, clone: Clone, rows: int, share: float, seed: int) -> tuple[Score, float | None]:
        return corpus_score(self._model, clone.tokens[:rows], share, seed), None


class _PretrainedScorer(CloneScorer):
    """Scorer of a Hugging Face checkpoint."""

    def __init__(self, place: str, model: Any, tokenizer: Any, clones: Clones) -> None:
        self._place, self._model, self._tokenizer, self._clones = place, model.eval(), tokenizer, clones
        vocab = tokenizer.get_vocab()
        self.retokenized = any(
            vocab.get(token) != index for token, index in clones.tokenizer.get_vocab().items()
        )
        texts = clones.decode(clones[TEXT if TEXT in clones.names else clones.names[0]].tokens)
        if self.retokenized:
            self._require_preserved(texts)
        self._before, self._after = special_token_frame(tokenizer, texts[0])

    def score(self, clone: Clone, rows: int, share: float, seed: int) -> tuple[Score, float | None]:
        tokens = clone.tokens[:rows]
        if not self.retokenized:
            return self._score(tokens.tolist(), share, seed), None
        texts = self._clones.decode(tokens)
        sequences = [self._encode(text) for text in texts]
        score = self._score(sequences, share, seed)
        size = sum(len(text.encode()) for text in texts)
        return score, sum(map(len, sequences)) / size

    @abstractmethod
    def _score(self, sequences: Sequence[Sequence[int]], share: float, seed: int) -> Score:
        """Score token ids, to which special tokens have not been added."""

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return ids

    def _require_preserved(self, texts: Sequence[str]) -> None:
        """Raise `InputError` unless most texts survive encoding and decoding."""
        lost = [
            text
            for text in texts
            if _fold_text(self._tokenizer.decode(self._encode(text))) != _fold_text(text)
        ]
        if len(lost) > (1 - MIN_PRESERVED) * len(texts):
            decoded = self._tokenizer.decode(self._encode(lost[0]))
            hint = (
                f"its tokenizer does not preserve the text of the clones, {lost[0]!r} becomes {decoded!r}. "
            )
            hint += "Use a model with the tokenizer of the clones"
            raise InputError("model", self._place, hint)


class _MaskedScorer(_PretrainedScorer):
    causal = False

    def __init__(self, place: str, model: Any, tokenizer: Any, clones: Clones) -> None:
        super().__init__(place, model, tokenizer, clones)
        self._oracle = PretrainedMasked(model, tokenizer, name=place)

    def _score(self, sequences: Sequence[Sequence[int]], share: float, seed: int) -> Score:
        framed = [[*self._before, *sequence, *self._after] for sequence in sequences]
        tokens, lengths = pad_sequences(framed)
        padding = self._tokenizer.pad_token_id
        if padding is None and len(set(lengths.tolist())) > 1:
            hint = "its tokenizer has no padding token, which rows of different lengths require"
            raise InputError("model", self._place, hint)
        tokens = tokens.masked_fill(torch.arange(tokens.shape[1]) >= lengths[:, None], padding or 0)
        return corpus_score(self._oracle, tokens, share, seed, self._oracle.proposable(tokens))


class _CausalScorer(_PretrainedScorer):
    causal = True

    def __init__(self, place: str, model: Any, tokenizer: Any, clones: Clones) -> None:
        super().__init__(place, model, tokenizer, clones)
        self._vocab_size: int = model.get_output_embeddings().weight.shape[0]
        probe = torch.arange(6, device=model.device).repeat(2, 1)
        probe[1, -1] = 7
        with torch.inference_mode():
            one, other = model(input_ids=probe).logits[:, :-1]
        if not torch.allclose(one, other, atol=1e-3, rtol=1e-3):
            raise InputError("model", place, "use a causal model, because this one depends on later tokens")

    def _score(self, sequences: Sequence[Sequence[int]], share: float, seed: int) -> Score:
        del share, seed
        tokens, lengths = pad_sequences(sequences)
        longest = len(self._before) + tokens.shape[1]
        positions = getattr(self._model.config.get_text_config(decoder=True), "max_position_embeddings", None)
        if positions is not None and longest > positions:
            hint = f"its maximum length is {positions} tokens, but rows have {longest}. Make clones with shorter rows"
            raise InputError("model", self._place, hint)
        is_target = torch.arange(tokens.shape[1]) < lengths[:, None]
        return next_token_scores(self._logits, self._vocab_size, tokens, is_target).whole()

    def _logits(self, tokens: Tensor) -> Tensor:
        before = tokens.new_tensor(self._before).expand(len(tokens), -1)
        inputs = torch.cat((before, tokens[:, :-1]), 1).to(self._model.device)
        logits: Tensor = self._model(input_ids=inputs, use_cache=False).logits
        return logits[:, len(self._before) :]


def _fold_text(text: str) -> str:
    return "".join(text.split()).casefold()
