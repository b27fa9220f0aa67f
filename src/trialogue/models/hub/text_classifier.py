"""Sequence classifiers of Hugging Face as functions of a text, for example as rewards."""

import copy
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from trialogue.errors import InputError
from trialogue.models.hub.checkpoint_loading import load_checkpoint
from trialogue.models.hub.pretrained_masked import longest_text
from trialogue.validation import Count, validated


def load_classifier(
    name: str | Path,
    label: str | int | None = None,
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype = "float32",
    batch_size: int = 32,
) -> "TextClassifier":
    """Load a sequence classifier or a reward model as a function of a text.

    Code from the model's repository is never executed.

    Args:
        name: Hub id, folder, or short name of a model that was set up with `trialogue models pull`.
        label: Name or index of the class whose logit is returned (default: the only one).
        device: Device of the model (default: the GPU if available, otherwise the CPU).
        dtype: Name of a torch dtype, or "auto" for the dtype of the checkpoint.
        batch_size: Number of texts that are evaluated together.

    Returns:
        The function, which returns the logit of the class.

    Raises:
        InputError: If the model cannot be loaded or has no classification head, if there is no such class, or if
            `label` is None and there are several classes.

    Example:
        Prefer completions that a reward model rates highly:

            reward = load_classifier("OpenAssistant/reward-model-deberta-v3-base")
            target = tilted(reward, 2.0, tokenization=oracle.tokenization)
            samples = generate(oracle, prompts, sampler=SequentialMonteCarlo(16), verifier=target)
    """
    model, tokenizer = load_checkpoint("SequenceClassification", name, device=device, dtype=dtype)
    return TextClassifier(model, tokenizer, label, batch_size=batch_size)


class TextClassifier:
    """Function that returns the logit of one class of a sequence classifier for a text.

    Texts that are longer than the classifier's maximum length lose their beginning. The logit of a text does
    not depend on the other texts of its batch, except for rounding errors.

    Args:
        model: Sequence classifier of transformers.
        tokenizer: Tokenizer of transformers. The function changes settings of a copy only.
        label: Name or index of the class (default: the only one).
        batch_size: Number of texts that are evaluated together.

    Raises:
        InputError: If there is no such class, or if `label` is None and there are several classes.
    """

    @validated
    def __init__(
        self, model: Any, tokenizer: Any, label: str | int | None = None, *, batch_size: Count = 32
    ) -> None:
        self._model = model.eval()
        self._label = _index(model.config, label)
        self._longest = _longest(model, tokenizer)
        self._tokenizer = tokenizer = copy.deepcopy(tokenizer)
        tokenizer.padding_side, tokenizer.truncation_side = "right", "left"
        padding = _padding(model.config, tokenizer)
        self._read_token = model.config.eos_token_id if model.config.is_encoder_decoder else None
        self._batch_size = 1 if padding is None else batch_size
        if padding is not None:
            tokenizer.pad_token = padding
        self._empty: str | None = "" if tokenizer("")["input_ids"] else tokenizer.eos_token

    def __call__(self, text: str) -> float:
        """Return the logit of the class for a text."""
        return self.call_all([text])[0]

    @torch.inference_mode()
    def call_all(self, texts: Sequence[str], timeout: float | None = None) -> list[float]:
        """Return the logit of the class for each of several texts.

        Args:
            texts: The texts.
            timeout: Ignored.

        Raises:
            InputError: If a text is empty and the tokenizer has neither special tokens that it adds nor an
                end-of-sequence token. Also if the model reads the end-of-sequence token and it is missing.
        """
        del timeout
        batches = (texts[i : i + self._batch_size] for i in range(0, len(texts), self._batch_size))
        return list(chain.from_iterable(map(self._logits, batches)))

    def _logits(self, texts: Sequence[str]) -> list[float]:
        if self._empty is None and not all(texts):
            raise InputError(
                "texts", "", "the tokenizer has no end-of-sequence token. Give texts that are not empty"
            )
        encoded = self._tokenizer(
            [text or self._empty for text in texts],
            padding=len(texts) > 1,
            truncation=self._longest is not None,
            max_length=self._longest,
            return_tensors="pt",
        )
        encoded = encoded.to(self._model.device)
        counts = torch.ones(len(texts))
        if self._read_token is not None:
            counts = encoded["input_ids"].eq(self._read_token).sum(1).cpu()
            self._require_read_token(texts, counts.tolist())
        results = torch.zeros(len(texts), dtype=torch.float64)
        # Transformers requires the same number of end-of-sequence tokens in all texts of a batch.
        for count in counts.unique():
            group = (counts == count).nonzero()[:, 0]
            logits = self._model(**{name: tensor[group] for name, tensor in encoded.items()}).logits
            results[group] = logits[:, self._label].double().cpu()
        answers: list[float] = results.tolist()
        return answers

    def _require_read_token(self, texts: Sequence[str], counts: Sequence[int]) -> None:
        """Raise `InputError` if a text has none of the tokens that the model reads."""
        for text, count in zip(texts, counts, strict=True):
            if not count:
                hint = (
                    f"the classifier reads the last end-of-sequence token (id {self._read_token}), which the tokenizer "
                    "has not added. Append its text, or use a tokenizer that adds it"
                )
                raise InputError("texts", text, hint)


def _longest(model: Any, tokenizer: Any) -> int | None:
    """Return the maximum number of tokens of a text, or None if unlimited."""
    # MPT has a table of attention biases for this many positions and no `max_position_embeddings`.
    limits = (longest_text(model, tokenizer), getattr(model.config, "max_seq_len", None))
    return min((limit for limit in limits if limit is not None), default=None)


def _padding(config: Any, tokenizer: Any) -> str | None:
    """Return the token with which texts are padded, or None if padding would change the logits."""
    identifier = getattr(config.get_text_config(), "pad_token_id", None)
    if identifier is None or not 0 <= identifier < len(tokenizer):
        return None
    if config.is_encoder_decoder and identifier == config.eos_token_id:
        return None
    # XLNet reads the last position even if it is padding, and FNet has no attention mask.
    if getattr(config, "summary_type", None) == "last" or "attention_mask" not in tokenizer.model_input_names:
        return None
    token: str | None = tokenizer.convert_ids_to_tokens(identifier)
    return token


def _index(config: Any, label: str | int | None) -> int:
    """Return the index of the class `label`."""
    names = {int(index): str(name) for index, name in config.id2label.items()}
    if label is None and len(names) == 1:
        return next(iter(names))
    matching = [index for index, name in names.items() if label in (index, name)]
    if not matching:
        raise InputError("label", label, f"choose one of the classes {', '.join(names.values())}")
    return matching[0]
