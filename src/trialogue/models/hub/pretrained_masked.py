"""Pretrained masked language models of Hugging Face as `trialogue.oracles.Masked`, by hub id, folder or short name."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.hub.adapters import unwrapped
from trialogue.models.hub.checkpoint_loading import load_checkpoint
from trialogue.models.networks.masked import MaskedNetwork
from trialogue.validation import Count, validated


def load_pretrained_masked(
    name: str | Path,
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype = "float32",
    batch_size: int = 32,
) -> "PretrainedMasked":
    """Load the masked language model `name`: a hub id, a folder, or the short name of a model set up before.

    `device` is the GPU where there is one. `dtype` is a name of torch's, or "auto" for that of the checkpoint. Code of
    the model's repository is never run. Raises `InputError` for a model that cannot be had, whose checkpoint has no
    head for masked tokens, or whose tokenizer is missing or has no mask token.
    """
    model, tokenizer = load_checkpoint("MaskedLM", name, device=device, dtype=dtype)
    return PretrainedMasked(model, tokenizer, name=str(name), batch_size=batch_size)


class PretrainedMasked(MaskedNetwork):
    """The masked Hugging Face model `model` with its `tokenizer` as a `trialogue.oracles.Masked`.

    Sequences are token ids as the tokenizer gives them, special tokens included, and padded where a batch is ragged.
    The special tokens that frame a text (padding, the classifier's, separators) stay what they are: a chain that picks
    such a site draws the token that stands there. No special token is ever proposed elsewhere, nor an id that the
    tokenizer does not know; the other tokens' probabilities are renormalised. `batch_size` is how many sequences are
    evaluated at once, `max_length` the positions the model knows (None where it states none).

    Raises `InputError` for a tokenizer without a mask token.
    """

    @validated
    def __init__(
        self, model: Any, tokenizer: Any, *, name: str | None = None, batch_size: Count = 32
    ) -> None:
        self.model = model = unwrapped(model).eval()
        self.tokenizer = tokenizer
        self.name = name or str(getattr(model.config, "_name_or_path", "")) or type(model).__name__
        self.batch_size = batch_size
        if tokenizer.mask_token_id is None:
            raise InputError("model", self.name, "its tokenizer has no mask token")
        self.mask = int(tokenizer.mask_token_id)
        head = model.get_output_embeddings()
        self.vocab_size = int(model.config.vocab_size if head is None else head.weight.shape[0])
        self._device = model.device
        self.dtype = torch.promote_types(model.dtype, torch.float32)
        self.max_length = longest_text(model, tokenizer)
        special = {token for token in tokenizer.all_special_ids if token < self.vocab_size}
        self.frame = torch.tensor(sorted(special - {self.mask, tokenizer.unk_token_id}), dtype=torch.int64)
        silent = sorted(special | set(range(len(tokenizer), self.vocab_size)))
        self._silent = torch.tensor(silent, device=self._device)
        self._padding: int | None = tokenizer.pad_token_id

    def encode(self, texts: Sequence[str]) -> Tensor:
        """Token ids (rows, N) int64 of `texts` with their special tokens, padded on the right.

        Raises `InputError` where a text has more tokens than the model has positions, and where texts of different
        lengths meet a tokenizer without a padding token.
        """
        if isinstance(texts, str) or not len(texts):
            raise InputError("texts", texts, "give a list of at least one text")
        sequences = [self.tokenizer(text, verbose=False)["input_ids"] for text in texts]
        longest = max(map(len, sequences))
        self._require_room(longest)
        if self._padding is None and min(map(len, sequences)) < longest:
            raise InputError("texts", len(texts), f"{self.name} has no padding token: give texts one by one")
        padding = 0 if self._padding is None else self._padding
        return torch.tensor([[*ids, *[padding] * (longest - len(ids))] for ids in sequences])

    def decode(self, tokens: Tensor) -> list[str]:
        """Texts of `tokens` (rows, N) without their special tokens."""
        texts: list[str] = self.tokenizer.batch_decode(
            tokens.tolist(), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return texts

    def free(self, tokens: Tensor) -> Tensor:
        """Which sites (rows, N) bool of `tokens` hold a part of the text, and not its frame or padding."""
        return ~torch.isin(tokens, self.frame.to(tokens.device))

    def proposable(self, tokens: Tensor) -> Tensor:
        """Which sites (rows, N) bool of `tokens` hold a token that it may propose: no special one, and a known one."""
        return ~torch.isin(tokens, self._silent.to(tokens.device))

    def answers(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        """Logits (q, vocab) at `sites` (q,) of `rows` (q,) of `inputs` (n, N); padding is not read."""
        self._require_room(inputs.shape[1])
        inputs, rows, sites = (part.to(self._device) for part in (inputs, rows, sites))
        real = torch.ones_like(inputs) if self._padding is None else (inputs != self._padding).long()
        logits: Tensor = self.model(input_ids=inputs, attention_mask=real).logits[rows, sites]
        return logits.index_fill_(1, self._silent, -torch.inf)

    def _require_room(self, length: int) -> None:
        if self.max_length is not None and length > self.max_length:
            raise InputError(
                "tokens", length, f"{self.name} knows {self.max_length} positions: shorten the texts"
            )


def longest_text(model: Any, tokenizer: Any) -> int | None:
    """How many tokens a model of transformers reads, which the positions it counts may exceed.

    Models like RoBERTa count from behind the position of padding, and need not say so in their tokenizer.
    """
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if positions is not None:
        tables = (part for name, part in model.named_modules() if name.endswith("position_embeddings"))
        paddings = (getattr(table, "padding_idx", None) for table in tables)
        positions -= max((padding + 1 for padding in paddings if padding is not None), default=0)
    stated = (positions, getattr(tokenizer, "model_max_length", None))
    return min((int(length) for length in stated if length is not None and 0 < length < 10**9), default=None)
