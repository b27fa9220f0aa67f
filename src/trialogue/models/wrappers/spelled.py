"""The tokenization of an oracle whose tokens are spelled out: a table, or a structured distribution."""

from collections.abc import Sequence
from typing import Any

from trialogue.errors import InputError, require_text
from trialogue.models.tokenization import Tokenization


class SpelledTokenization(Tokenization):
    """Tokens that stand for the texts `spellings`, in their order; that of `eos`, if there is one, ends a sequence.

    Verifiers of text read it as they read a language model's. Raises `InputError` where spellings are empty, or not
    all different.
    """

    def __init__(self, spellings: Sequence[str], eos: int | None = None) -> None:
        for spelling in spellings:
            require_text("tokens", spelling)
            if not spelling or spellings.count(spelling) > 1:
                raise InputError(
                    "tokens", spelling, "give each token a text of its own, of a character or more"
                )
        self.spellings = tuple(spellings)
        # Matchers of text want an end of sequence, whether or not the oracle has one.
        end = len(spellings) if eos is None else eos
        names = [*spellings, "".join(spellings) + "$"] if eos is None else list(spellings)
        super().__init__(_fast_tokenizer(names, end), len(spellings))
        self.eos = eos

    def encode(self, text: str) -> list[int]:
        """The fewest tokens that spell `text`; raises `InputError` where none do."""
        require_text("text", text)
        ways: list[list[int] | None] = [[]]
        for stop in range(1, len(text) + 1):
            found = [
                [*before, token]
                for token, spelling in enumerate(self.spellings)
                if token != self.eos
                and text.endswith(spelling, 0, stop)
                and (before := ways[stop - len(spelling)]) is not None
            ]
            ways.append(min(found, key=len, default=None))
        tokens = ways[-1]
        if tokens is None:
            known = ", ".join(repr(spelling) for spelling in self.spellings[:12])
            raise InputError("text", text, f"no tokens spell it: they are {known}")
        return tokens


def _fast_tokenizer(names: Sequence[str], end: int) -> Any:
    """A fast tokenizer of Hugging Face with one token per name."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)

    def written(name: str) -> str:
        return "".join(piece for piece, _ in bytes_.pre_tokenize_str(name))

    vocabulary = {name if place == end else written(name): place for place, name in enumerate(names)}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = bytes_, decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=names[end])
