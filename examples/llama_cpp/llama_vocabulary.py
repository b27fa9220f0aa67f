"""Conversion between texts and tokens with the vocabulary of a GGUF file."""

import ctypes
import weakref
from functools import cached_property
from typing import Any

import llama_cpp as llama
from llama_cpp.llama_chat_format import Jinja2ChatFormatter
from llguidance import LLTokenizer, TokenizerWrapper

from trialogue.errors import InputError
from trialogue.models.tokenization import Tokenization

_SPECIAL = llama.LLAMA_TOKEN_ATTR_CONTROL | llama.LLAMA_TOKEN_ATTR_UNKNOWN


class Vocabulary:
    """Tokenizer of a GGUF file with the attributes that `Tokenization` and llguidance require.

    Args:
        file: GGUF file, opened by llama.cpp. The vocabulary closes it.
    """

    is_fast = True

    def __init__(self, file: llama.Llama) -> None:
        self._file, every, vocab = file, range(file.n_vocab()), llama.llama_model_get_vocab(file.model)
        # Without an explicit close, the destructor fails when the interpreter exits.
        weakref.finalize(self, file.close)
        self.chat_template = file.metadata.get("tokenizer.chat_template")
        self.ends = [token for token in every if llama.llama_vocab_is_eog(vocab, token)]
        special = [token for token in every if llama.llama_vocab_get_attr(vocab, token) & _SPECIAL]
        self.all_special_ids = self.special_token_ids = special
        self.added_tokens_decoder: dict[int, Any] = {}
        self._ends = [None if end < 0 else end for end in (file.token_eos(), file.token_bos())]
        self.eos_token_id, self.bos_token_id = self._ends
        self.tokens = [_piece(vocab, token) for token in every]

    def __call__(self, text: str | bytes) -> Any:
        """Tokenize a text, or bytes from the middle of a text.

        Args:
            text: A text, which is tokenized with a BOS token if the model uses one, or bytes, as passed by llguidance.
        """
        if isinstance(text, bytes):
            return self._file.tokenize(text, add_bos=False, special=True)
        return {"input_ids": self._file.tokenize(text.encode(), add_bos=True, special=True)}

    def apply_chat_template(
        self, messages: Any, add_generation_prompt: bool = False, tools: Any = None, **settings: Any
    ) -> Any:
        """Apply the chat template of the file.

        Returns:
            A dictionary with `input_ids`, or the text if `tokenize` is False.
        """
        ends = ["" if end is None else self.tokens[end].decode() for end in self._ends]
        template = Jinja2ChatFormatter(str(self.chat_template), *ends, add_generation_prompt)
        text = template(messages=messages, tools=tools).prompt
        return {"input_ids": self(text.encode())} if settings.get("tokenize", True) else text

    def convert_ids_to_tokens(self, tokens: list[int]) -> list[str]:
        """Return the text of each token."""
        return [self.tokens[token].decode(errors="replace") for token in tokens]


def _piece(vocab: Any, token: int) -> bytes:
    # Without a buffer, the function returns the negative size that it requires.
    size = -llama.llama_token_to_piece(vocab, token, None, 0, 0, True)
    text = ctypes.create_string_buffer(size + 1)
    llama.llama_token_to_piece(vocab, token, text, size, 0, True)
    return text.raw[:size]


class GGUFTokenization(Tokenization):
    """Tokenization of a GGUF file for samplers and verifiers."""

    @cached_property
    def matcher_tokenizer(self) -> Any:
        """The `llguidance.LLTokenizer` of the same vocabulary.

        Raises:
            InputError: If the vocabulary has no end-of-sequence token.
        """
        if self.eos is None:
            hint = "use a model with an end-of-sequence token, which grammars require"
            raise InputError("model", "GGUF", hint)
        return LLTokenizer(TokenizerWrapper(self.tokenizer))

    @cached_property
    def _bytes(self) -> list[bytes]:
        return [b"" if token in self.special else own for token, own in enumerate(self.tokenizer.tokens)]
