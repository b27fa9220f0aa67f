"""Models as they are asked about clones: networks of this package's files, and checkpoints of Hugging Face.

Clones are tokens, and a model of the same tokenizer is asked about them as they are. One of another tokenizer is asked
about their text, in tokens of its own, where it gives that text back.
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
from trialogue.models.hub.checkpoint_loading import load_checkpoint, usable_device
from trialogue.models.hub.heads import kind_of
from trialogue.models.hub.pretrained_masked import PretrainedMasked
from trialogue.models.networks.attention_only import AttentionOnly
from trialogue.models.networks.masked import MaskedNetwork
from trialogue.models.networks.saved import load_model
from trialogue.models.networks.transformer import Transformer
from trialogue.oracles import padded
from trialogue.training.corpus_losses import Score, corpus_score, next_token_scores

GIVEN_BACK = 0.9
"""A model is asked about texts where its tokenizer gives back this share of them, but for case and spaces."""


@dataclass(frozen=True, kw_only=True)
class CloneLoss:
    """What a `model` makes of a clone after `step` updates, where that is known.

    `max_order` is the most bodies that the `clone` keeps interactions of, None for all. `causal` says which
    conditionals were asked for. A model that was asked in tokens of its own has `tokens_per_byte` of the text; of one
    that has those of the clones it is None.
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
        """The loss in nats: per byte of text, where the model was asked in tokens of its own, and else per token."""
        return self.score.loss * self._scale

    @property
    def error(self) -> float:
        """Its standard error."""
        return self.score.error * self._scale

    @property
    def _scale(self) -> float:
        return 1.0 if self.tokens_per_byte is None else self.tokens_per_byte


class Asker(ABC):
    """A model that answers about clones: by masked tokens, or as a causal one by those before a token."""

    causal: bool
    retokenized: bool
    """Whether it is asked about the text of the clones, in tokens of its own"""

    @abstractmethod
    def answer(self, clone: Clone, rows: int, share: float, seed: int) -> tuple[Score, float | None]:
        """What it makes of the first `rows` of a clone and, if it is a masked one, of a `share` of their sites.

        The second value is the number of tokens per byte of text if the tokens are the model's own, else None. Raises
        `InputError` where the rows are longer than it can read.
        """

    def loss(
        self, clone: Clone, rows: int, share: float, seed: int, *, model: str, step: int | None = None
    ) -> CloneLoss:
        """Return the loss on the first `rows` of a clone; see `answer`."""
        score, tokens_per_byte = self.answer(clone, rows, share, seed)
        return CloneLoss(
            model=model,
            step=step,
            clone=clone.name,
            max_order=clone.max_order,
            causal=self.causal,
            score=score,
            tokens_per_byte=tokens_per_byte,
        )


def asker_of(
    place: str | Path, clones: Clones, *, device: str | torch.device | None = None, dtype: str = "float32"
) -> Asker:
    """The model at `place`, ready to be asked about `clones`: a file of `save_model`, or a checkpoint of Hugging Face.

    `device` is the GPU where there is one. Raises `InputError` for a model that cannot be had, one with neither a
    masked nor a causal head, and one of another tokenizer than the clones' that does not give their text back.
    """
    if Path(place).suffix == ".safetensors":
        return _Network(str(place), clones, device)
    kind = kind_of(place)
    return pretrained_asker(
        str(place), *load_checkpoint(kind, place, device=device, dtype=dtype), kind == "CausalLM", clones
    )


def pretrained_asker(name: str, model: Any, tokenizer: Any, causal: bool, clones: Clones) -> Asker:
    """The transformers `model`, causal or masked, with its tokenizer, ready to be asked; errors as of `asker_of`."""
    made = _PretrainedCausal if causal else _PretrainedMasked
    return made(name, model, tokenizer, clones)


class _Network(Asker):
    """A network of this package, whose file says how many tokens it has, but not which."""

    retokenized = False

    def __init__(self, place: str, clones: Clones, device: str | torch.device | None) -> None:
        self._model = load_model(place, device=usable_device(device))
        shape: Any = self._model.config
        size = getattr(shape, "vocab_size", None)
        if size != clones.vocab_size:
            hint = f"the clones in {clones.folder} were made with another tokenizer, of {clones.vocab_size} tokens"
            raise InputError("model", place, f"it knows {size} tokens: {hint}")
        if not isinstance(self._model, Transformer | MaskedNetwork | AttentionOnly):
            hint = f"it is a {type(self._model).__name__}, which reads no whole rows: give another model"
            raise InputError("model", place, hint)
        if isinstance(self._model, AttentionOnly) and self._model.config.context >= clones.length:
            context = self._model.config.context
            hint = (
                f"it reads {context} tokens before it predicts one, and the rows of the clones have {clones.length}: "
                "make clones of longer rows, or give a model of a shorter context"
            )
            raise InputError("model", place, hint)
        reads_on = isinstance(self._model, Transformer) and self._model.config.causal
        self.causal = reads_on or isinstance(self._model, AttentionOnly)

    def answer(self, clone: Clone, rows: int, share: float, seed: int) -> tuple[Score, float | None]:
        return corpus_score(self._model, clone.tokens[:rows], share, seed), None


class _Pretrained(Asker):
    """A checkpoint of Hugging Face with its tokenizer."""

    def __init__(self, place: str, model: Any, tokenizer: Any, clones: Clones) -> None:
        self._place, self._model, self._tokenizer, self._clones = place, model.eval(), tokenizer, clones
        known = tokenizer.get_vocab()
        self.retokenized = any(
            known.get(token) != index for token, index in clones.tokenizer.get_vocab().items()
        )
        texts = clones.decode(clones[TEXT if TEXT in clones.names else clones.names[0]].tokens)
        if self.retokenized:
            self._require_given_back(texts)
        self._before, self._behind = special_token_frame(tokenizer, texts[0])

    def answer(self, clone: Clone, rows: int, share: float, seed: int) -> tuple[Score, float | None]:
        tokens = clone.tokens[:rows]
        if not self.retokenized:
            return self._score(tokens.tolist(), share, seed), None
        texts = self._clones.decode(tokens)
        sequences = [self._encoded(text) for text in texts]
        score = self._score(sequences, share, seed)
        size = sum(len(text.encode()) for text in texts)
        return score, sum(map(len, sequences)) / size

    @abstractmethod
    def _score(self, sequences: Sequence[Sequence[int]], share: float, seed: int) -> Score:
        """What it makes of token ids without a frame."""

    def _encoded(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return ids

    def _require_given_back(self, texts: Sequence[str]) -> None:
        lost = [
            text for text in texts if _folded(self._tokenizer.decode(self._encoded(text))) != _folded(text)
        ]
        if len(lost) > (1 - GIVEN_BACK) * len(texts):
            hint = "the clones were made with another tokenizer, and the model's own does not give their text back: "
            hint += f"{lost[0]!r} becomes {self._tokenizer.decode(self._encoded(lost[0]))!r}"
            raise InputError("model", self._place, hint)


class _PretrainedMasked(_Pretrained):
    causal = False

    def __init__(self, place: str, model: Any, tokenizer: Any, clones: Clones) -> None:
        super().__init__(place, model, tokenizer, clones)
        self._oracle = PretrainedMasked(model, tokenizer, name=place)

    def _score(self, sequences: Sequence[Sequence[int]], share: float, seed: int) -> Score:
        framed = [[*self._before, *sequence, *self._behind] for sequence in sequences]
        tokens, lengths = padded(framed)
        padding = self._tokenizer.pad_token_id
        if padding is None and len(set(lengths.tolist())) > 1:
            hint = "its tokenizer has no padding token, and in its own tokens the rows differ in length"
            raise InputError("model", self._place, hint)
        tokens = tokens.masked_fill(torch.arange(tokens.shape[1]) >= lengths[:, None], padding or 0)
        return corpus_score(self._oracle, tokens, share, seed, self._oracle.proposable(tokens))


class _PretrainedCausal(_Pretrained):
    causal = True

    def __init__(self, place: str, model: Any, tokenizer: Any, clones: Clones) -> None:
        super().__init__(place, model, tokenizer, clones)
        self._vocab_size: int = model.get_output_embeddings().weight.shape[0]
        probe = torch.arange(6, device=model.device).repeat(2, 1)
        probe[1, -1] = 7
        with torch.inference_mode():
            one, other = model(input_ids=probe).logits[:, :-1]
        if not torch.allclose(one, other, atol=1e-3, rtol=1e-3):
            raise InputError("model", place, "it reads what comes after a token, and so is no causal model")

    def _score(self, sequences: Sequence[Sequence[int]], share: float, seed: int) -> Score:
        del share, seed
        tokens, lengths = padded(sequences)
        longest = len(self._before) + tokens.shape[1]
        positions = getattr(self._model.config.get_text_config(decoder=True), "max_position_embeddings", None)
        if positions is not None and longest > positions:
            raise InputError(
                "model", self._place, f"it knows {positions} positions, and rows have {longest} tokens"
            )
        asked = torch.arange(tokens.shape[1]) < lengths[:, None]
        return next_token_scores(self._logits, self._vocab_size, tokens, asked).whole()

    def _logits(self, tokens: Tensor) -> Tensor:
        before = tokens.new_tensor(self._before).expand(len(tokens), -1)
        inputs = torch.cat((before, tokens[:, :-1]), 1).to(self._model.device)
        logits: Tensor = self._model(input_ids=inputs, use_cache=False).logits
        return logits[:, len(self._before) :]


def _folded(text: str) -> str:
    return "".join(text.split()).casefold()
