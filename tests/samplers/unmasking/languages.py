"""Random regular languages over a few tokens, for unmasking samplers with masks."""

from functools import cache

import torch

from samplers.small_languages import tokenization
from trialogue.errors import InputError
from trialogue.models.tokenization import Tokenization
from trialogue.randomness import numpy_generator
from trialogue.samplers.unmasking import Constrained
from trialogue.verifiers import GrammarVerifier

PIECES = {2: (b"a", b""), 3: (b"a", b"b", b""), 4: (b"a", b"b", b"ab", b"")}
"""Bytes of the tokens by their number. The last token can end a text."""


def random_pattern(random, depth=3):
    """Return a random regular expression over a and b, without flags and classes of more letters."""
    if depth == 0 or random.random() < 0.15:
        return str(random.choice(["a", "b", "ab", "[ab]", "."]))
    kind = random.choice(["both", "both", "either", "repeat"])
    first, second = random_pattern(random, depth - 1), random_pattern(random, depth - 1)
    if kind == "both":
        return first + second
    if kind == "either":
        return f"(?:{first}|{second})"
    return f"(?:{first})" + str(random.choice(["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?"]))


@cache
def language(pattern, vocab_size):
    """Return a verifier with the attributes `pattern` and `pieces`, from which naive enumerations start."""
    pieces = PIECES[vocab_size]
    tokenizer = tokenization(pieces[:-1]).tokenizer
    verifier = GrammarVerifier.regex(pattern, Tokenization(tokenizer, vocab_size))
    verifier.pattern, verifier.pieces = pattern, pieces
    return verifier


def random_constraint(seed, vocab_size, prompt, sampler):
    """Return a sampler with a random language that has a text for the masked positions of a prompt."""
    random = numpy_generator(seed, "language")
    masked = torch.tensor([[token is None for token in prompt]])
    tokens = torch.tensor([[token or 0 for token in prompt]])
    while True:
        pattern, eos = random_pattern(random), vocab_size - 1 if random.random() < 0.5 else None
        judged_length = len(prompt) - 1 if masked[0, :-1].any() and random.random() < 0.2 else None
        try:
            verifier = language(pattern, vocab_size)
            constrained = Constrained(verifier, sampler, eos=eos, judged_length=judged_length)
            constrained.init(tokens, masked)
        except InputError:
            continue
        return constrained
