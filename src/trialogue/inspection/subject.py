"""The model under inspection, with its tokenizer and the oracles that wrap it."""

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
from trialogue.models.hub.attention_weights import AttentionModel
from trialogue.models.hub.checkpoint_loading import Checkpoint
from trialogue.models.hub.heads import detect_head
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.models.hub.pretrained_masked import PretrainedMasked, longest_text
from trialogue.models.hub.random_weights import with_random_weights

Kind = Literal["causal", "masked"]
_MAX_LOGITS = 2**25
"""Maximum number of logits per forward pass."""
_ROUNDING = 1e-4
_MAX_PER_DOCUMENT = 4
"""Maximum number of passages from one document."""


class Passages(NamedTuple):
    """Passages of equal length, sampled from documents.

    Attributes:
        tokens: Token ids, int64 of shape (n, length).
        documents: Index of the document that contains each passage, int64 of shape (n,).
    """

    tokens: Tensor
    documents: NDArray[np.int64]

    def document_means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Average values over the passages of each document, because these passages are not independent.

        Args:
            values: One value or array of values per passage, shape (n, ...).

        Returns:
            Means, shape (documents, ...).
        """
        return np.stack([values[self.documents == one].mean(0) for one in np.unique(self.documents)])


class Subject:
    """A transformers model that is inspected, with its tokenizer.

    Args:
        model: Model with a language modeling head.
        tokenizer: Fast tokenizer of the model.
        kind: "causal" if the model predicts next tokens, "masked" if it predicts masked tokens.
        name: Name of the model in messages.
        files: Identifier of the weights. Stored results are reused only for equal identifiers.

    Raises:
        InputError: If the tokenizer is not a fast tokenizer.
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
        """Load a Hugging Face checkpoint.

        Args:
            place: Hub id, folder, short name or GGUF file.
            device: Torch device, by default a GPU if there is one.
            dtype: Name of the dtype of the weights.
            remote_code: Whether to run Python code from the repository of the model.

        Raises:
            InputError: If the model cannot be loaded, or has neither a masked nor a causal head.
        """
        checkpoint = _checkpoint(place, device, dtype, remote_code)
        tokenizer = checkpoint.tokenizer
        kind: Kind = "causal" if checkpoint.kind == "CausalLM" else "masked"
        return cls(checkpoint.model(), tokenizer, kind, name=str(place), files=checkpoint.identity)

    def control(self, seed: int) -> Subject:
        """Create a model of the same architecture with random weights.

        Args:
            seed: Random seed of the weights.
        """
        model = with_random_weights(self.model, seed)
        return Subject(model, self.tokenizer, self.kind, name=f"{self.name} with random weights")

    @cached_property
    def vocab_size(self) -> int:
        """Number of logits per position."""
        head = self.model.get_output_embeddings()
        return int(self.model.config.get_text_config().vocab_size if head is None else head.weight.shape[0])

    @cached_property
    def max_length(self) -> int:
        """Maximum number of input tokens. 10**9 if the model has no limit."""
        return longest_text(self.model, self.tokenizer) or 10**9

    @cached_property
    def max_generated_length(self) -> int:
        """Maximum total number of tokens of a prompt and its continuation.

        It is smaller than `max_length` if the model attends only to a sliding window.
        """
        window = self.oracle.window
        return self.max_length if window is None else min(self.max_length, window)

    @cached_property
    def ordinary_tokens(self) -> Tensor:
        """Ids of the tokens that are not special tokens, int64 of shape (n,)."""
        known = min(len(self.tokenizer), self.vocab_size)
        special = set(self.tokenizer.all_special_ids)
        return torch.tensor([token for token in range(known) if token not in special])

    @cached_property
    def frame(self) -> tuple[list[int], list[int]]:
        """Special tokens that the tokenizer adds before a text, and those that it adds after a text."""
        # The vocabulary of a small network may lack letters.
        texts = ("a", self.tokenizer.decode(self.ordinary_tokens[:1].tolist()))
        known = (text for text in texts if self.tokenizer(text, add_special_tokens=False)["input_ids"])
        return special_token_frame(self.tokenizer, next(known, "a"))

    def framed(self, rows: Tensor, *, end: bool = False) -> Tensor:
        """Add the tokenizer's special tokens to sequences of token ids.

        Args:
            rows: Token ids, shape (n, L).
            end: Whether to add the special tokens after the text as well. Those before the text are always added.

        Returns:
            Token ids with special tokens, shape (n, L + number of special tokens).
        """
        before, after = (rows.new_tensor(part).expand(len(rows), -1) for part in self.frame)
        return torch.cat((before, rows, after) if end else (before, rows), 1)

    @cached_property
    def start_tokens(self) -> list[int]:
        """Token ids of the prompt with which a text is sampled from its beginning.

        These are the special tokens that the tokenizer adds before a text. If it adds none, the prompt is the
        BOS token, the EOS token or the first ordinary token, whichever exists first.
        """
        ids = (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id, int(self.ordinary_tokens[0]))
        return self.frame[0] or [next(token for token in ids if token is not None)]

    @cached_property
    def oracle(self) -> PretrainedOracle:
        """Oracle of the causal model, which computes its next-token distributions.

        It evaluates every prefix without a cache if tokens cannot be removed from the cache of the model.
        """
        try:
            return PretrainedOracle(self.model, self.tokenizer, name=self.name)
        except InputError:
            return PretrainedOracle(self.model, self.tokenizer, name=self.name, recompute=True)

    def processed_tokens(self, prompt: int, generated: int) -> int:
        """Return the number of tokens that the model processes to continue a prompt.

        Without a cache, each prefix is processed anew.

        Args:
            prompt: Number of tokens of the prompt.
            generated: Number of generated tokens.
        """
        return generated * prompt + generated**2 // 2 if self.oracle.recompute else prompt + generated

    @cached_property
    @torch.inference_mode()
    def sees_future_tokens(self) -> bool:
        """Whether the logits at a position depend on later tokens, as in a bidirectional model.

        The value is determined with a forward pass.
        """
        ordinary = self.ordinary_tokens
        tokens = ordinary[torch.arange(min(8, self.max_length)) % len(ordinary)][None]
        changed = tokens.clone()
        changed[0, -1] = ordinary[-1]
        one, other = (self.logits(each)[0, :-1] for each in (tokens, changed))
        return bool((one - other).abs().max() > _ROUNDING * one.std())

    @cached_property
    def masked(self) -> PretrainedMasked:
        """Oracle of the masked model, which computes its distributions of masked tokens.

        Raises:
            InputError: If the tokenizer has no mask token.
        """
        return PretrainedMasked(self.model, self.tokenizer, name=self.name)

    @contextmanager
    def attending_model(self) -> Iterator[AttentionModel]:
        """Return a context manager that gives access to the embeddings and attention weights of the model.

        The model computes attention eagerly inside the context, because other implementations return no weights.

        Raises:
            InputError: If the model returns no attention weights.
        """
        body = self.model.base_model
        before = getattr(body.config, "_attn_implementation", None)
        settable = before is not None and hasattr(body, "set_attn_implementation")
        if settable:
            body.set_attn_implementation("eager")
        try:
            found = AttentionModel(body, self.tokenizer, name=self.name)
            found.files = self.files
            yield found
        finally:
            if settable:
                body.set_attn_implementation(before)

    def batches(self, tokens: Tensor) -> tuple[Tensor, ...]:
        """Split sequences into batches small enough to bound the memory for the logits of a forward pass.

        Args:
            tokens: Token ids, shape (n, L).

        Returns:
            Batches of rows, each of shape (batch, L).
        """
        return tokens.split(max(1, _MAX_LOGITS // (tokens.shape[1] * self.vocab_size)))

    @torch.inference_mode()
    def logits(self, tokens: Tensor) -> Tensor:
        """Compute the next-token logits of a causal model after each prefix.

        Args:
            tokens: Token ids, shape (n, L).

        Returns:
            Logits, float32 of shape (n, L, vocab), on the CPU.
        """
        logits: Tensor = self.model(input_ids=tokens.to(self.model.device), use_cache=False).logits
        return logits.float().cpu()

    def sample_passages(
        self, documents: list[str], length: int, rows: int, random: np.random.Generator
    ) -> Passages:
        """Sample passages of equal length from documents.

        Each document contributes one passage that starts at a random token. If there are too few documents, each
        contributes up to four adjacent passages.

        Args:
            documents: Texts, which are read in random order.
            length: Number of tokens per passage.
            rows: Number of passages.
            random: Random number generator.

        Returns:
            The passages and the documents that contain them.

        Raises:
            InputError: If the documents are too few or too short.
        """
        found: list[list[list[int]]] = []
        for index in random.permutation(len(documents)):
            ids = self.tokenizer(documents[index], add_special_tokens=False, verbose=False)["input_ids"]
            spare = len(ids) - length
            if spare < 0:
                continue
            first = int(random.integers(0, min(spare, length) + 1))
            passages = [ids[at : at + length] for at in range(first, len(ids) - length + 1, length)]
            found.append(passages[:_MAX_PER_DOCUMENT])
            if len(found) == rows:
                break
        selected = [
            (passages[turn], document)
            for turn in range(_MAX_PER_DOCUMENT)
            for document, passages in enumerate(found)
            if turn < len(passages)
        ][:rows]
        if len(selected) < rows:
            hint = f"they contain {len(selected)} passages of {length} tokens (at most {_MAX_PER_DOCUMENT} of each), "
            hint += f"but {rows} are needed: give a longer text or longer documents"
            raise InputError(
                "text", f"{len(documents)} {'document' if len(documents) == 1 else 'documents'}", hint
            )
        tokens, document_ids = zip(*selected, strict=True)
        return Passages(torch.tensor(tokens), np.array(document_ids))


def special_token_frame(tokenizer: Any, text: str) -> tuple[list[int], list[int]]:
    """Return the special tokens that a tokenizer adds to a text.

    Args:
        tokenizer: Tokenizer of transformers.
        text: Text that is tokenized to find them.

    Returns:
        The token ids that are added before the text, and those added after it.
    """
    plain: list[int] = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    framed: list[int] = tokenizer(text, verbose=False)["input_ids"]
    for start in range(len(framed) - len(plain) + 1):
        if framed[start : start + len(plain)] == plain:
            return framed[:start], framed[start + len(plain) :]
    return [], []


class CheckpointIdentity(NamedTuple):
    """Identifiers of a checkpoint, which show whether stored results belong to it.

    Attributes:
        weights: Identifier of the weights.
        architecture: Hash of the configuration, which is equal for all checkpoints of a training run.
    """

    weights: str
    architecture: str


def read_identity(place: str | Path, remote_code: bool = False) -> CheckpointIdentity:
    """Compute identifiers of a checkpoint without loading its weights.

    Args:
        place: Hub id, folder, short name or GGUF file.
        remote_code: Whether to run Python code from the repository of the model.

    Raises:
        InputError: As for `Subject.load`.
    """
    checkpoint = _checkpoint(place, "cpu", "float32", remote_code)
    config_hash = hashlib.sha256(checkpoint.config.to_json_string().encode()).hexdigest()
    return CheckpointIdentity(checkpoint.identity, f"config sha256 {config_hash}")


def _checkpoint(place: str | Path, device: str | None, dtype: str, remote_code: bool) -> Checkpoint:
    if Path(place).suffix == ".safetensors":
        hint = (
            "it is a network trained by this package. Save it with `trialogue.models.save_gpt2` to inspect it, or "
            "with `save_masked` if it is masked"
        )
        raise InputError("model", str(place), hint)
    kind = detect_head(place, remote_code=remote_code)
    return Checkpoint(kind, place, device=device, dtype=dtype, remote_code=remote_code)
