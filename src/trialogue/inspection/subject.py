"""A checkpoint as measures ask it: its network, its tokenizer, and the oracles of it, each read when first needed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.hub.attention_weights import AttendingModel
from trialogue.models.hub.checkpoint_loading import Checkpoint
from trialogue.models.hub.heads import kind_of
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.models.hub.pretrained_masked import PretrainedMasked, longest_text
from trialogue.models.hub.random_weights import with_random_weights

Kind = Literal["causal", "masked"]
_ENTRIES_AT_ONCE = 2**25
"""Logits that one pass may give."""
_ROUNDING = 1e-4
_OF_ONE = 4
"""Most stretches of one document."""


class Stretches(NamedTuple):
    """Stretches of documents: `tokens` (rows, length) int64, and `documents` (rows,) int64, which they are of."""

    tokens: Tensor
    documents: NDArray[np.int64]

    def by_document(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Means (documents, ...) of `values` (rows, ...): stretches of one document are not independent."""
        return np.stack([values[self.documents == one].mean(0) for one in np.unique(self.documents)])


class Subject:
    """The transformers `model` with its `tokenizer`, of the `kind` that its head is, as measures ask it.

    `files` says what its weights are known by. Raises `InputError` for a tokenizer that is not fast.
    """

    def __init__(self, model: Any, tokenizer: Any, kind: Kind, *, name: str, files: str = "") -> None:
        if not getattr(tokenizer, "is_fast", False):
            hint = "use a model whose tokenizer has a fast version (a tokenizer.json)"
            raise InputError("tokenizer", type(tokenizer).__name__, hint)
        self.model, self.tokenizer, self.kind = model.eval(), tokenizer, kind
        self.name, self.files = name, files

    @classmethod
    def load(
        cls,
        place: str | Path,
        *,
        device: str | None = None,
        dtype: str = "float32",
        remote_code: bool = False,
    ) -> Subject:
        """The checkpoint of Hugging Face at `place`: a hub id, a folder, a short name or a GGUF file.

        Code that comes with a model runs only with `remote_code`. Raises `InputError` for a model that cannot be had,
        and for one with neither a masked nor a causal head.
        """
        checkpoint = _checkpoint(place, device, dtype, remote_code)
        tokenizer = checkpoint.tokenizer
        kind: Kind = "masked" if checkpoint.kind == "MaskedLM" else "causal"
        return cls(checkpoint.model(), tokenizer, kind, name=str(place), files=checkpoint.identity)

    def control(self, seed: int) -> Subject:
        """The same architecture with random weights."""
        drawn = with_random_weights(self.model, seed)
        return Subject(drawn, self.tokenizer, self.kind, name=f"{self.name} with random weights")

    @cached_property
    def vocab_size(self) -> int:
        """How many tokens it answers for."""
        head = self.model.get_output_embeddings()
        return int(self.model.config.get_text_config().vocab_size if head is None else head.weight.shape[0])

    @cached_property
    def longest(self) -> int:
        """How many tokens it reads: a billion where nothing limits them."""
        return longest_text(self.model, self.tokenizer) or 10**9

    @cached_property
    def writes(self) -> int:
        """How many tokens a causal model reads and writes one by one: as `longest`, but within a sliding window."""
        window = self.oracle.window
        return self.longest if window is None else min(self.longest, window)

    @cached_property
    def ordinary(self) -> Tensor:
        """The ids (n,) int64 of its tokens that are no special ones."""
        known = min(len(self.tokenizer), self.vocab_size)
        special = set(self.tokenizer.all_special_ids)
        return torch.tensor([token for token in range(known) if token not in special])

    @cached_property
    def frame(self) -> tuple[list[int], list[int]]:
        """What its tokenizer puts before and behind the tokens of a text."""
        return frame_of(self.tokenizer, "a")

    def framed(self, rows: Tensor, *, end: bool = False) -> Tensor:
        """Return `rows` (n, N) after the tokens that begin a text and, with `end`, before those that end one."""
        before, behind = (rows.new_tensor(part).expand(len(rows), -1) for part in self.frame)
        return torch.cat((before, rows, behind) if end else (before, rows), 1)

    @cached_property
    def opening(self) -> list[int]:
        """What stands before a text that is to be drawn: at least one token, of those that say that a text begins."""
        ids = (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id, int(self.ordinary[0]))
        return self.frame[0] or [next(token for token in ids if token is not None)]

    @cached_property
    def oracle(self) -> PretrainedOracle:
        """The causal model as an oracle, which evaluates whole prefixes where its passes cannot be rewound."""
        try:
            return PretrainedOracle(self.model, self.tokenizer, name=self.name)
        except InputError:
            return PretrainedOracle(self.model, self.tokenizer, name=self.name, recompute=True)

    def fed(self, prompt: int, written: int) -> int:
        """How many tokens the network is fed when it writes `written` tokens behind a prompt of so many."""
        return written * prompt + written**2 // 2 if self.oracle.recompute else prompt + written

    @cached_property
    @torch.inference_mode()
    def reads_ahead(self) -> bool:
        """Whether what it answers at a place depends on tokens behind it, as of no causal model."""
        tokens = self.ordinary[torch.arange(min(8, self.longest)) % len(self.ordinary)][None]
        changed = tokens.clone()
        changed[0, -1] = self.ordinary[-1]
        one, other = (self.logits(each)[0, :-1] for each in (tokens, changed))
        return bool((one - other).abs().max() > _ROUNDING * one.std())

    @cached_property
    def masked(self) -> PretrainedMasked:
        """The masked model as an oracle; raises `InputError` where its tokenizer has no mask token."""
        return PretrainedMasked(self.model, self.tokenizer, name=self.name)

    @contextmanager
    def attending(self) -> Iterator[AttendingModel]:
        """The model without its head, as what embeds and attends; raises `InputError` where it gives no attention."""
        body = self.model.base_model
        before = getattr(body.config, "_attn_implementation", None)
        settable = before is not None and hasattr(body, "set_attn_implementation")
        if settable:
            body.set_attn_implementation("eager")
        try:
            found = AttendingModel(body, self.tokenizer, name=self.name)
            found.files = self.files
            yield found
        finally:
            if settable:
                body.set_attn_implementation(before)

    def parts(self, tokens: Tensor) -> tuple[Tensor, ...]:
        """`tokens` (rows, N) in as many rows as one pass takes."""
        return tokens.split(max(1, _ENTRIES_AT_ONCE // (tokens.shape[1] * self.vocab_size)))

    @torch.inference_mode()
    def logits(self, tokens: Tensor) -> Tensor:
        """Logits (rows, N, vocab) float32 of the token after each prefix of `tokens` (rows, N) of a causal model."""
        answered: Tensor = self.model(input_ids=tokens.to(self.model.device), use_cache=False).logits
        return answered.float().cpu()

    def texts(self, documents: list[str], length: int, rows: int, random: np.random.Generator) -> Stretches:
        """So many stretches of `length` tokens of `documents`, begun anywhere in them.

        Documents are read in an order drawn by `random`, and each gives one stretch. Where they are too few, they give
        up to four each, which lie side by side. Raises `InputError` where that does not suffice.
        """
        found: list[list[list[int]]] = []
        for place in random.permutation(len(documents)):
            ids = self.tokenizer(documents[place], add_special_tokens=False, verbose=False)["input_ids"]
            spare = len(ids) - length
            if spare < 0:
                continue
            first = int(random.integers(0, min(spare, length) + 1))
            found.append(
                [ids[at : at + length] for at in range(first, len(ids) - length + 1, length)][:_OF_ONE]
            )
            if len(found) == rows:
                break
        chosen = [
            (stretches[turn], document)
            for turn in range(_OF_ONE)
            for document, stretches in enumerate(found)
            if turn < len(stretches)
        ][:rows]
        if len(chosen) < rows:
            hint = f"its documents have {len(chosen)} stretches of {length} tokens, of each {_OF_ONE} at most, and "
            hint += f"this takes {rows}: give a longer text, of longer documents"
            raise InputError("text", f"{len(documents)} documents", hint)
        tokens, of = zip(*chosen, strict=True)
        return Stretches(torch.tensor(tokens), np.array(of))


def frame_of(tokenizer: Any, text: str) -> tuple[list[int], list[int]]:
    """Return the special tokens that `tokenizer` puts before and after the tokens of `text`."""
    own: list[int] = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    framed: list[int] = tokenizer(text, verbose=False)["input_ids"]
    for start in range(len(framed) - len(own) + 1):
        if framed[start : start + len(own)] == own:
            return framed[:start], framed[start + len(own) :]
    return [], []


class Identity(NamedTuple):
    """What a checkpoint is known by: its `weights`, and its `architecture`, that of all of one training."""

    weights: str
    architecture: str


def identity_of(place: str | Path, remote_code: bool = False) -> Identity:
    """What tells the checkpoint at `place` from others, without loading it; raises `InputError` as `Subject.load`."""
    checkpoint = _checkpoint(place, "cpu", "float32", remote_code)
    described = hashlib.sha256(checkpoint.config.to_json_string().encode()).hexdigest()
    return Identity(checkpoint.identity, f"config sha256 {described}")


def _checkpoint(place: str | Path, device: str | None, dtype: str, remote_code: bool) -> Checkpoint:
    if Path(place).suffix == ".safetensors":
        hint = "it is a network of a training here: `trialogue interaction-order` and `balance` ask those"
        raise InputError("model", str(place), hint)
    kind = kind_of(place, remote_code=remote_code)
    return Checkpoint(kind, place, device=device, dtype=dtype, remote_code=remote_code)
