"""Conversion between text, tokens and bytes with a Hugging Face tokenizer."""

from __future__ import annotations

import builtins
import codecs
import inspect
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from trialogue.errors import InputError, describe_error, require_text
from trialogue.models.decoders.tokenizer_file import TokenizerFile
from trialogue.models.messages import validate_conversation


class Tokenization:
    """Conversion between text, token ids and bytes, by a fast Hugging Face tokenizer.

    Special tokens, including EOS, have an empty byte string. The same holds for padded entries of the embedding matrix,
    which have no token in the tokenizer.

    Args:
        tokenizer: Fast tokenizer of transformers, or a `TokenizerFile`.
        vocab_size: Number of tokens that have a logit (default: the size of the tokenizer).

    Attributes:
        eos: Id of the token that ends a sequence, or None.
        bos: Id of the token that begins a sequence, or None.

    Raises:
        InputError: If the tokenizer is not fast.
    """

    def __init__(self, tokenizer: Any, vocab_size: int | None = None) -> None:
        if not getattr(tokenizer, "is_fast", False):
            hint = "use a model whose tokenizer has a fast version (a tokenizer.json)"
            raise InputError("tokenizer", type(tokenizer).__name__, hint)
        self._source = tokenizer
        self.vocab_size: int = len(tokenizer) if vocab_size is None else vocab_size
        self.eos: int | None = tokenizer.eos_token_id
        self.bos: int | None = tokenizer.bos_token_id

    @cached_property
    def tokenizer(self) -> Any:
        """Fast tokenizer of transformers."""
        return self._source.load() if isinstance(self._source, TokenizerFile) else self._source

    def resize(self, vocab_size: int) -> Tokenization:
        """Return the same tokenization for a model with another number of tokens.

        Args:
            vocab_size: Number of tokens that have a logit.
        """
        return self if vocab_size == self.vocab_size else Tokenization(self._source, vocab_size)

    def encode(self, text: str) -> list[int]:
        """Return the token ids of `text`. An empty text gives the BOS token, if there is one.

        Raises:
            InputError: If `text` is not a string, or UTF-8 cannot encode it.
        """
        require_text("text", text)
        tokens: list[int] = self._source(text)["input_ids"]
        return tokens or ([] if self.bos is None else [self.bos])

    def encode_completion(self, text: str, prompt: str = "") -> list[int]:
        """Return the token ids of a text that follows a prompt, without special tokens.

        The result contains the tokens after the prompt in the concatenation of both. If the tokens of the prompt are
        different there, because a token spans the boundary, the text is tokenized alone.

        Args:
            text: The text.
            prompt: Text before it (default: none, so that the text is tokenized alone).

        Raises:
            InputError: If `text` is not a string, or UTF-8 cannot encode it.
        """
        require_text("text", text)
        if prompt:
            before, whole = self.encode(prompt), self.encode(prompt + text)
            if whole[: len(before)] == before:
                return whole[len(before) :]
        tokens: list[int] = self._source(text, add_special_tokens=False)["input_ids"]
        return tokens

    def chat(
        self,
        messages: str | Sequence[Mapping[str, Any]],
        *,
        system: str | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        template_options: Mapping[str, Any] = MappingProxyType({}),
    ) -> list[int]:
        """Apply the chat template of the tokenizer.

        The prompt ends where the answer of the assistant begins. If the last message has the role "assistant", the
        prompt ends with its text, which the model continues.

        Args:
            messages: Messages of a conversation in the format of chat templates, or the text of a user message.
            system: Text of a system message to insert before the messages.
            tools: Definitions of functions that the template lists.
            template_options: Further variables of the template, such as `enable_thinking` (default: none).

        Returns:
            Token ids of the prompt.

        Raises:
            InputError: If the tokenizer has no chat template, or if a message is not valid or not supported by it.
        """
        if isinstance(messages, str):
            require_text("text", messages)
            messages = [{"role": "user", "content": messages}]
        checked_messages = validate_conversation(messages, system)
        if not self.tokenizer.chat_template:
            raise InputError(
                "chat", True, "the tokenizer of the model has no chat template. Remove this option"
            )
        reserved = (
            inspect.signature(self.tokenizer.apply_chat_template).parameters.keys() & template_options.keys()
        )
        if reserved:
            raise InputError("template_options", min(reserved), "use the name of a variable of the template")
        is_continued = checked_messages[-1]["role"] == "assistant"
        from jinja2 import TemplateError

        try:
            output = self.tokenizer.apply_chat_template(
                checked_messages,
                tools=None if tools is None else list(tools),
                add_generation_prompt=not is_continued,
                continue_final_message=is_continued,
                return_dict=True,
                **template_options,
            )
        except (TemplateError, ValueError, TypeError) as error:
            hint = f"the chat template of the model does not accept these messages: {describe_error(error)}"
            raise InputError("messages", [message["role"] for message in checked_messages], hint) from error
        tokens: list[int] = output["input_ids"]
        return tokens

    def bytes(self, tokens: Iterable[int]) -> builtins.bytes:
        """Return the bytes of `tokens`, where special tokens have an empty byte string."""
        table = self.token_bytes
        return b"".join(table[token] for token in tokens)

    def text(self, tokens: Iterable[int], final: bool = True) -> str:
        """Return the text of `tokens`, with the replacement character for invalid UTF-8.

        Args:
            tokens: Token ids.
            final: Decode an incomplete last character. Use False for prefixes, so that the text of a prefix is a prefix
                of the complete text.
        """
        return codecs.getincrementaldecoder("utf-8")("replace").decode(self.bytes(tokens), final)

    def tokens_containing(self, text: str) -> Tensor:
        """Return the ids (n,) int64 of the tokens whose bytes contain `text`."""
        encoded = text.encode()
        containing = [token for token, spelling in enumerate(self.token_bytes) if encoded in spelling]
        return torch.tensor(containing, dtype=torch.int64)

    def tokens_ending_with(self, text: str) -> Tensor:
        """Return the ids (n,) int64 of the tokens whose bytes end with `text`."""
        encoded = text.encode()
        ending = [token for token, spelling in enumerate(self.token_bytes) if spelling.endswith(encoded)]
        return torch.tensor(ending, dtype=torch.int64)

    @cached_property
    def matcher_tokenizer(self) -> Any:
        """`llguidance.LLTokenizer` with the same vocabulary.

        Raises:
            InputError: If llguidance does not support the decoder of the tokenizer.
        """
        from llguidance import LLTokenizer

        backend = self._source.backend_tokenizer
        if backend.padding or backend.truncation:
            backend = copy(backend)
            backend.no_padding()
            backend.no_truncation()
        # Without an end-of-sequence token, llguidance would end texts with a token that has bytes.
        end = min(self.special, default=None) if self.eos is None else self.eos
        try:
            return LLTokenizer(backend.to_str(), eos_token=end)
        except ValueError as error:
            name = type(backend.decoder).__name__
            hint = f"its decoder ({name}) does not define the bytes of a token. Use one with a byte-level decoder"
            raise InputError("tokenizer", type(self._source).__name__, hint) from error

    @cached_property
    def special(self) -> frozenset[int]:
        """Ids of the special tokens."""
        added = self._source.added_tokens_decoder
        return frozenset(token for token, content in added.items() if content.special) | frozenset(
            self._source.all_special_ids
        )

    @cached_property
    def token_bytes(self) -> list[builtins.bytes]:
        """Bytes of every token, in the order of the token ids."""
        matcher, special = self.matcher_tokenizer, self.special
        num_tokens = min(self.vocab_size, matcher.vocab_size)
        table = [b"" if token in special else matcher.decode_bytes([token]) for token in range(num_tokens)]
        return table + [b""] * (self.vocab_size - num_tokens)
