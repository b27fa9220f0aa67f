"""What is asked: a question to a pretrained model, or a random table that stands for one."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from trialogue.data import Table
from trialogue.models.pretrained import load_pretrained
from trialogue.oracles import Autoregressive, Verifier
from trialogue.randomness import numpy_generator
from trialogue.verifiers.function import FunctionVerifier
from trialogue.verifiers.grammar import GrammarVerifier
from trialogue_lab.ledger import note_model
from trialogue_lab.studies.constrained_law.config import Config
from trialogue_lab.studies.constrained_law.tasks import TASKS

_LETTERS = "abcd"


@dataclass(frozen=True)
class Case:
    """One question: who answers, the prompt (token ids), the rule, and the text of a completion."""

    oracle: Autoregressive
    verifier: Verifier
    prompt: tuple[int, ...]
    text: Callable[[tuple[int, ...]], str]
    max_new_tokens: int


def case_of(config: Config, kind: str, seed: int) -> Case:
    """The question of a seed, put to the config's model."""
    if not config.model:
        return toy_case(config, kind, seed)
    oracle, task = _loaded(config.model), TASKS[kind](seed)
    note_model(oracle.described())
    tokenization = oracle.tokenization
    rule = GrammarVerifier.regex if kind == "regex" else GrammarVerifier.json_schema
    return Case(
        oracle,
        rule(task.rule, tokenization),
        tuple(tokenization.chat(task.question)),
        tokenization.text,
        config.max_new_tokens,
    )


_loaded = cache(load_pretrained)
"""Load a model, once in a process."""


def toy_case(config: Config, kind: str, seed: int) -> Case:
    """A random table over four letters; the rule allows a few words that begin alike."""

    def law(prefix: tuple[int, ...]) -> list[float]:
        return numpy_generator(seed, "toy", kind, prefix).dirichlet([0.5] * 5).tolist()

    words = {"ab", "abc", "b", "ca", "cad", "d"} if kind == "regex" else {"aaaa", "aaab", "ba", "dc"}
    end = len(_LETTERS)

    def text(completion: tuple[int, ...]) -> str:
        return "".join(_LETTERS[token] for token in completion if token != end)

    def allowed(completion: tuple[int, ...]) -> bool:
        if end in completion or len(completion) == config.max_new_tokens:
            return text(completion) in words
        return any(word.startswith(text(completion)) for word in words)

    oracle = Table(law, vocab_size=5, eos=end, max_length=config.max_new_tokens)
    return Case(oracle, FunctionVerifier(allowed), (), text, config.max_new_tokens)
