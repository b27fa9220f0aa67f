"""Pretrained masked language models of Hugging Face, such as BERT, and masked diffusion models, such as LLaDA."""

import inspect
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.hub.adapters import transformers_model
from trialogue.models.hub.checkpoint_loading import Checkpoint
from trialogue.models.hub.heads import DIFFUSION
from trialogue.models.networks.masked import MaskedNetwork
from trialogue.models.tokenization import Tokenization
from trialogue.validation import Count, validated

_SHIFTED = {"Dream"}
"""Model types whose logits at a position belong to the next position."""
_HEADS = {"bert": "cls", "roberta": "lm_head", "xlm-roberta": "lm_head", "camembert": "lm_head"}
"""Attribute with the head of a model, which maps the last hidden states of any sites to logits, by `model_type`."""


def load_pretrained_masked(
    name: str | Path,
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype = "float32",
    batch_size: int = 32,
    remote_code: bool = False,
) -> "PretrainedMasked":
    """Load a pretrained masked language model, or a masked diffusion model (LLaDA, Dream, MDLM).

    The architectures of the diffusion models are not part of transformers. They need code from their repositories.

    Args:
        name: Hub id, folder, or short name of a model that was set up with `trialogue models pull`.
        device: Device of the model (default: the GPU if available, otherwise the CPU).
        dtype: Name of a torch dtype, or "auto" for the dtype of the checkpoint.
        batch_size: Number of sequences that are evaluated together.
        remote_code: Allow code from the model's repository to run (default: False).

    Returns:
        The model with its tokenizer.

    Raises:
        InputError: If the model cannot be loaded, if the checkpoint has no head for masked tokens, or if the tokenizer
            is missing or has no mask token.
    """
    checkpoint = Checkpoint("MaskedLM", name, device=device, dtype=dtype, remote_code=remote_code)
    checkpoint.kind = DIFFUSION.get(checkpoint.config.model_type, "MaskedLM")
    model, tokenizer = checkpoint.model(), checkpoint.tokenizer
    return PretrainedMasked(model, tokenizer, name=str(name), batch_size=batch_size)


class PretrainedMasked(MaskedNetwork):
    """Masked language model of Hugging Face, for use with `unmask` and Markov chains.

    Sequences are token ids from the tokenizer, including special tokens and padding. Special tokens such as
    [CLS], [SEP] and padding never change, and are never predicted at other positions.

    Args:
        model: Masked language model of transformers, or a `PeftModel`.
        tokenizer: Tokenizer of transformers.
        name: Name in messages and results (default: the name in the model's configuration).
        batch_size: Number of sequences that are evaluated together.

    Attributes:
        vocab_size: Number of tokens that have a logit.
        mask: Id of the mask token.
        max_length: Maximum number of tokens of a sequence, or None if unlimited.
        eos: Id of the token that ends a text of a diffusion model, or None.
        frame: Ids (n,) int64 of the special tokens that never change.

    Raises:
        InputError: If the tokenizer has no mask token.
    """

    @validated
    def __init__(
        self, model: Any, tokenizer: Any, *, name: str | None = None, batch_size: Count = 32
    ) -> None:
        self.model = model = transformers_model(model).eval()
        self.tokenizer = tokenizer
        self.name = name or str(getattr(model.config, "_name_or_path", "")) or type(model).__name__
        self.batch_size = batch_size
        head = model.get_output_embeddings()
        self.vocab_size = int(model.config.vocab_size if head is None else head.weight.shape[0])
        self._device = model.device
        self.dtype = torch.promote_types(model.dtype, torch.float32)
        self.max_length = longest_text(model, tokenizer)
        self.mask = self._find_mask()
        kind = model.config.model_type
        self._accepts_timesteps = "timesteps" in inspect.signature(model.forward).parameters
        self._shift = int(kind in _SHIFTED)
        known = type(model).__module__.startswith("transformers.models.") and kind in _HEADS
        # Only the sites that are predicted need logits.
        self._head = getattr(model, _HEADS[kind], None) if known else None
        self.eos: int | None = tokenizer.eos_token_id if kind in DIFFUSION else None
        special = {token for token in tokenizer.all_special_ids if token < self.vocab_size}
        fixed = set() if kind in DIFFUSION else special - {self.mask, tokenizer.unk_token_id}
        self.frame = torch.tensor(sorted(fixed), dtype=torch.int64)
        special = {self.mask} if kind in DIFFUSION else special
        excluded = sorted(special | set(range(len(tokenizer), self.vocab_size)))
        self._excluded = torch.tensor(excluded, device=self._device, dtype=torch.int64)
        # Padding of diffusion models may be the token that ends a text, and their sequences have equal lengths.
        self._padding: int | None = None if kind in DIFFUSION else tokenizer.pad_token_id

    def _find_mask(self) -> int:
        """Return the id of the mask token, from the tokenizer or the configuration. MDLM uses the last id."""
        config = self.model.config
        found = self.tokenizer.mask_token_id
        if found is None:
            found = getattr(config, "mask_token_id", None)
        if found is None and config.model_type == "mdlm":
            found = self.vocab_size - 1
        if found is None:
            raise InputError(
                "model", self.name, "its tokenizer has no mask token. Use a masked language model"
            )
        return int(found)

    @cached_property
    def tokenization(self) -> Tokenization:
        """Conversion between text, token ids and bytes, which verifiers of texts require.

        Raises `InputError` if the tokenizer has no fast version.
        """
        return Tokenization(self.tokenizer, self.vocab_size)

    def encode(self, texts: Sequence[str]) -> Tensor:
        """Tokenize texts, with special tokens and padding on the right.

        Args:
            texts: At least one text.

        Returns:
            Token ids (rows, N) int64.

        Raises:
            InputError: If a text has more tokens than the model has positions, or if texts have different lengths and
                the tokenizer has no padding token.
        """
        if isinstance(texts, str) or not len(texts):
            raise InputError("texts", texts, "give a list of at least one text")
        sequences = [self.tokenizer(text, verbose=False)["input_ids"] for text in texts]
        longest = max(map(len, sequences))
        self._require_valid_length(longest)
        if self._padding is None and min(map(len, sequences)) < longest:
            hint = f"{self.name} has no padding token. Encode texts of different lengths separately"
            raise InputError("texts", len(texts), hint)
        padding = 0 if self._padding is None else self._padding
        return torch.tensor([[*ids, *[padding] * (longest - len(ids))] for ids in sequences])

    def masked_prompt(self, text: str, masks: int = 0) -> Tensor:
        """Tokenize a text, and append mask tokens before the special tokens that end it.

        Args:
            text: Text, which may contain the mask token of the tokenizer.
            masks: Number of mask tokens to append (default: 0).

        Returns:
            Token ids (N,) int64.

        Raises:
            InputError: If there are more tokens than the model has positions.
        """
        ids = self.tokenizer(text, verbose=False)["input_ids"]
        ending = self._count_ending_frame(ids)
        if ending == len(ids):  # The text is empty, and the special tokens that begin it are in the same run.
            ending = self._count_ending_frame(self.tokenizer("a", verbose=False)["input_ids"])
        end = len(ids) - ending
        ids[end:end] = [self.mask] * masks
        self._require_valid_length(len(ids))
        return torch.tensor(ids, dtype=torch.int64)

    def _count_ending_frame(self, ids: list[int]) -> int:
        """Return the number of special tokens after the last other token."""
        frame = self.frame.tolist()
        return next((n for n, token in enumerate(reversed(ids)) if token not in frame), len(ids))

    def decode(self, tokens: Tensor) -> list[str]:
        """Return the texts of `tokens` (rows, N) without special tokens."""
        texts: list[str] = self.tokenizer.batch_decode(
            tokens.tolist(), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return texts

    def free(self, tokens: Tensor) -> Tensor:
        """Return a mask (rows, N) bool of the sites of `tokens` (rows, N) that may change."""
        return ~torch.isin(tokens, self.frame.to(tokens.device))

    def proposable(self, tokens: Tensor) -> Tensor:
        """Return which of `tokens` (rows, N) the model can predict with positive probability, (rows, N) bool."""
        return ~torch.isin(tokens, self._excluded.to(tokens.device))

    def logits_at(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """Return the logits at single positions (sites). Padding is not attended to.

        Args:
            inputs: Token ids (n, N) int64.
            rows: Row (q,) int64 of each site.
            sites: Position (q,) int64 of each site.

        Returns:
            Logits (q, vocab), which are -inf for tokens that are never proposed.
        """
        self._require_valid_length(inputs.shape[1])
        inputs, rows, sites = (part.to(self._device) for part in (inputs, rows, sites))
        options: dict[str, Tensor] = {}
        if self._padding is not None:
            options["attention_mask"] = (inputs != self._padding).long()
        if self._accepts_timesteps:
            options["timesteps"] = torch.zeros(len(inputs), device=self._device)
        if self._head is not None:
            logits: Tensor = self._head(self.model.base_model(input_ids=inputs, **options)[0][rows, sites])
            return logits.index_fill_(1, self._excluded, -torch.inf)
        output = self.model(input_ids=inputs, **options)
        logits = getattr(output, "logits", output)[rows, (sites - self._shift).clamp_min(0)]
        return logits.index_fill_(1, self._excluded, -torch.inf)

    def _require_valid_length(self, length: int) -> None:
        if self.max_length is not None and length > self.max_length:
            raise InputError(
                "tokens", length, f"{self.name} has {self.max_length} positions. Shorten the texts"
            )


def longest_text(model: Any, tokenizer: Any) -> int | None:
    """Return the maximum number of tokens of a text, or None if unlimited.

    RoBERTa and similar models number positions from the padding index + 1, so they support fewer tokens than positions.

    Args:
        model: Model of transformers.
        tokenizer: Tokenizer of transformers.
    """
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if positions is not None:
        tables = (part for name, part in model.named_modules() if name.endswith("position_embeddings"))
        paddings = (getattr(table, "padding_idx", None) for table in tables)
        positions -= max((padding + 1 for padding in paddings if padding is not None), default=0)
    limits = (positions, getattr(tokenizer, "model_max_length", None))
    return min((int(length) for length in limits if length is not None and 0 < length < 10**9), default=None)
