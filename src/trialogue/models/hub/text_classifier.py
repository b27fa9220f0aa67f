"""Sequence classifiers of Hugging Face as functions of a text, for example as rewards."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from trialogue.errors import InputError
from trialogue.models.hub.checkpoint_loading import load_checkpoint
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

    Texts that are longer than the classifier's maximum length lose their beginning. If the tokenizer adds no special
    tokens, an empty text is evaluated as the end-of-sequence token.

    Args:
        model: Sequence classifier of transformers.
        tokenizer: Tokenizer of transformers.
        label: Name or index of the class (default: the only one).
        batch_size: Number of texts that are evaluated together.

    Raises:
        InputError: If there is no such class, or if `label` is None and there are several classes.
    """

    @validated
    def __init__(
        self, model: Any, tokenizer: Any, label: str | int | None = None, *, batch_size: Count = 32
    ) -> None:
        self._model, self._tokenizer, self._batch_size = model.eval(), tokenizer, batch_size
        self._label = _index(model.config, label)
        longest = getattr(model.config, "max_position_embeddings", None) or tokenizer.model_max_length
        self._longest = min(longest, tokenizer.model_max_length)
        tokenizer.truncation_side = "left"
        self._empty = "" if tokenizer("")["input_ids"] else str(tokenizer.eos_token)

    def __call__(self, text: str) -> float:
        """Return the logit of the class for a text."""
        return self.call_all([text])[0]

    @torch.inference_mode()
    def call_all(self, texts: Sequence[str], timeout: float | None = None) -> list[float]:
        """Return the logit of the class for each of several texts.

        Args:
            texts: The texts.
            timeout: Ignored.
        """
        del timeout
        batches = (texts[i : i + self._batch_size] for i in range(0, len(texts), self._batch_size))
        return list(chain.from_iterable(map(self._logits, batches)))

    def _logits(self, texts: Sequence[str]) -> list[float]:
        encoded = self._tokenizer(
            [text or self._empty for text in texts],
            padding=True,
            truncation=True,
            max_length=self._longest,
            return_tensors="pt",
        )
        logits = self._model(**encoded.to(self._model.device)).logits
        answers: list[float] = logits[:, self._label].double().tolist()
        return answers


def _index(config: Any, label: str | int | None) -> int:
    """Return the index of the class `label`."""
    names = {int(index): str(name) for index, name in config.id2label.items()}
    if label is None and len(names) == 1:
        return next(iter(names))
    matching = [index for index, name in names.items() if label in (index, name)]
    if not matching:
        raise InputError("label", label, f"choose one of the classes {', '.join(names.values())}")
    return matching[0]
