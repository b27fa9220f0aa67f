"""Verdicts of verifiers on entire texts, for a byte-level tokenizer."""

import copy

import torch

from models.tiny_pretrained import tiny_tokenizer
from trialogue.data.table import Table
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Verifier, pad_sequences
from trialogue.samplers.prefix.batch import Batch


def tokenization(chat_template: str | None = None) -> Tokenization:
    """Return a small byte-level tokenization with the given chat template."""
    tokenizer = copy.deepcopy(tiny_tokenizer())
    tokenizer.chat_template = chat_template
    return Tokenization(tokenizer)


TOKENS = tokenization()


def value(verifier: Verifier, text: str, complete: bool = True) -> bool:
    """Return the verdict on `text` as a complete completion or as a prefix."""
    tokens, length = pad_sequences([TOKENS.encode(text)], len(TOKENS.encode(text)) + 1)
    oracle = Table(lambda prefix: [1.0] * TOKENS.vocab_size, TOKENS.vocab_size, eos=TOKENS.eos)
    batch = Batch(oracle, 1, tokens.shape[1])
    batch.add(tokens, length, torch.zeros_like(length), length + (not complete))
    return bool(verifier.values(batch, torch.arange(1))[0])
