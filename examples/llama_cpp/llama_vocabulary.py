"""The vocabulary of a GGUF file by llama.cpp: what texts and tokens are to each other."""

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
    """What `Tokenization` asks of a tokenizer of transformers, and llguidance of any, by the vocabulary of `file`."""

    is_fast = True

    def __init__(self, file: llama.Llama) -> None:
        self._file, every, vocab = file, range(file.n_vocab()), llama.llama_model_get_vocab(file.model)
        weakref.finalize(self, file.close)  # by itself it fails where Python ends
        self.chat_template = file.metadata.get("tokenizer.chat_template")
        self.ends = [token for token in every if llama.llama_vocab_is_eog(vocab, token)]
        marks = [token for token in every if llama.llama_vocab_get_attr(vocab, token) & _SPECIAL]
        self.all_special_ids = self.special_token_ids = marks
        self.added_tokens_decoder: dict[int, Any] = {}
        self._ends = [None if end < 0 else end for end in (file.token_eos(), file.token_bos())]
        self.eos_token_id, self.bos_token_id = self._ends
        self.tokens = [_piece(vocab, token) for token in every]

    def __call__(self, text: str | bytes) -> Any:
        """Token ids of a `text` from its beginning on, or of bytes from the midst of one, as llguidance asks."""
        if isinstance(text, bytes):
            return self._file.tokenize(text, add_bos=False, special=True)
        return {"input_ids": self._file.tokenize(text.encode(), add_bos=True, special=True)}

    def apply_chat_template(
        self, messages: Any, add_generation_prompt: bool = False, tools: Any = None, **settings: Any
    ) -> Any:
        """What the file's template makes of `messages`: its token ids, unless `tokenize` is False text."""
        ends = ["" if end is None else self.tokens[end].decode() for end in self._ends]
        template = Jinja2ChatFormatter(str(self.chat_template), *ends, add_generation_prompt)
        text = template(messages=messages, tools=tools).prompt
        return {"input_ids": self(text.encode())} if settings.get("tokenize", True) else text

    def convert_ids_to_tokens(self, tokens: list[int]) -> list[str]:
        """How `tokens` are written."""
        return [self.tokens[token].decode(errors="replace") for token in tokens]


def _piece(vocab: Any, token: int) -> bytes:
    size = -llama.llama_token_to_piece(vocab, token, None, 0, 0, True)  # negative: how much room it takes
    text = ctypes.create_string_buffer(size + 1)
    llama.llama_token_to_piece(vocab, token, text, size, 0, True)
    return text.raw[:size]


class GGUFTokenization(Tokenization):
    """The vocabulary of a GGUF file as samplers and verifiers need it."""

    @cached_property
    def matcher_tokenizer(self) -> Any:
        """The `llguidance.LLTokenizer` of the same vocabulary; raises `InputError` where that has no end."""
        if self.eos is None:
            raise InputError("model", "GGUF", "its vocabulary has no end of sequence, which grammars need")
        return LLTokenizer(TokenizerWrapper(self.tokenizer))

    @cached_property
    def _bytes(self) -> list[bytes]:
        return [b"" if token in self.special else own for token, own in enumerate(self.tokenizer.tokens)]
