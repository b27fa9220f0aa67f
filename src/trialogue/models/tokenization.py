"""A tokenizer as samplers and verifiers need it: text to tokens, tokens to bytes, and text of unfinished prefixes."""

from __future__ import annotations

import builtins
import codecs
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from trialogue.errors import InputError, reason, require_text
from trialogue.models.messages import conversation


class Tokenization:
    """The fast Hugging Face tokenizer `tokenizer` of a model that answers for `vocab_size` tokens.

    A model may answer for more tokens than its tokenizer knows (padded embeddings): those stand for no bytes.
    Special tokens, EOS among them, stand for no bytes either. Raises `InputError` for a tokenizer without a fast
    implementation.
    """

    def __init__(self, tokenizer: Any, vocab_size: int | None = None) -> None:
        if not getattr(tokenizer, "is_fast", False):
            hint = "use a model whose tokenizer has a fast version (a tokenizer.json)"
            raise InputError("tokenizer", type(tokenizer).__name__, hint)
        self.tokenizer = tokenizer
        self.vocab_size: int = len(tokenizer) if vocab_size is None else vocab_size
        self.eos: int | None = tokenizer.eos_token_id
        self.bos: int | None = tokenizer.bos_token_id

    def encode(self, text: str) -> list[int]:
        """Token ids of `text` as the tokenizer gives them; of an empty text its BOS alone, if it has one.

        Raises `InputError` for a string that is no text (see `require_text`).
        """
        require_text("text", text)
        tokens: list[int] = self.tokenizer(text)["input_ids"]
        return tokens or ([] if self.bos is None else [self.bos])

    def chat(
        self,
        messages: str | Sequence[Mapping[str, Any]],
        *,
        system: str | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> list[int]:
        """Token ids of the tokenizer's chat template around `messages`, up to where the answer begins.

        These are a conversation (`trialogue.models.messages.conversation`), or the text of one user message, with a
        system message of the text `system` before them. Where the last is the assistant's, it is continued, as
        pipelines of transformers do. `tools` are definitions of functions for the template to list.

        Raises `InputError` where the tokenizer has no chat template, for strings that are no text, messages that are
        none, and for what the template itself refuses.
        """
        if isinstance(messages, str):
            require_text("text", messages)
            messages = [{"role": "user", "content": messages}]
        conversed = conversation(messages, system)
        if not self.tokenizer.chat_template:
            raise InputError("chat", True, "the model's tokenizer has no chat template; leave it out")
        continued = conversed[-1]["role"] == "assistant"
        from jinja2 import TemplateError

        try:
            answer = self.tokenizer.apply_chat_template(
                conversed,
                tools=None if tools is None else list(tools),
                add_generation_prompt=not continued,
                continue_final_message=continued,
                return_dict=True,
            )
        except (TemplateError, ValueError, TypeError) as error:
            hint = f"the model's chat template refuses them: {reason(error)}"
            raise InputError("messages", [message["role"] for message in conversed], hint) from error
        tokens: list[int] = answer["input_ids"]
        return tokens

    def bytes(self, tokens: Iterable[int]) -> builtins.bytes:
        """The bytes that `tokens` stand for; special tokens stand for none."""
        table = self._bytes
        return b"".join(table[token] for token in tokens)

    def text(self, tokens: Iterable[int], final: bool = True) -> str:
        """The text of `tokens`, decoded as UTF-8; what is no UTF-8 becomes the replacement character.

        With `final=False` the bytes of a last character that is not complete yet are held back, so that the text of a
        prefix is a prefix of the text.
        """
        return codecs.getincrementaldecoder("utf-8")("replace").decode(self.bytes(tokens), final)

    def tokens_containing(self, text: str) -> Tensor:
        """Ids (n,) int64 of the tokens whose bytes contain `text`."""
        wanted = text.encode()
        return torch.tensor(
            [token for token, spelling in enumerate(self._bytes) if wanted in spelling], dtype=torch.int64
        )

    def tokens_ending_with(self, text: str) -> Tensor:
        """Ids (n,) int64 of the tokens whose bytes end with `text`."""
        wanted = text.encode()
        ending = [token for token, spelling in enumerate(self._bytes) if spelling.endswith(wanted)]
        return torch.tensor(ending, dtype=torch.int64)

    @cached_property
    def matcher_tokenizer(self) -> Any:
        """The `llguidance.LLTokenizer` of the same vocabulary."""
        import llguidance.hf

        return llguidance.hf.from_tokenizer(self.tokenizer, eos_token=self.eos)

    @cached_property
    def special(self) -> frozenset[int]:
        """Ids of the special tokens."""
        added = self.tokenizer.added_tokens_decoder
        return frozenset(token for token, content in added.items() if content.special) | frozenset(
            self.tokenizer.all_special_ids
        )

    @cached_property
    def _bytes(self) -> list[builtins.bytes]:
        """The bytes of every token."""
        matcher, special = self.matcher_tokenizer, self.special
        known = min(self.vocab_size, matcher.vocab_size)
        table = [b"" if token in special else matcher.decode_bytes([token]) for token in range(known)]
        return table + [b""] * (self.vocab_size - known)
