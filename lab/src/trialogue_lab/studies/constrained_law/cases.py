"""Questions to a pretrained language model, or to a small random model in tests."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from trialogue.data import Table
from trialogue.models.hub.pretrained import load_pretrained
from trialogue.oracles import Autoregressive, Verifier
from trialogue.randomness import numpy_generator
from trialogue.verifiers.functions.function import FunctionVerifier
from trialogue.verifiers.languages.grammar import GrammarVerifier
from trialogue_lab.ledger import record_model
from trialogue_lab.studies.constrained_law.config import Config
from trialogue_lab.studies.constrained_law.tasks import TASKS

_LETTERS = "abcd"


@dataclass(frozen=True)
class ModelQuestion:
    """A question for a language model, with a constraint on the answer.

    Args:
        oracle: The language model.
        verifier: Checks whether a token prefix can still satisfy the constraint.
        prompt: Token ids of the question.
        text: Function that decodes the token ids of an answer to text.
        max_new_tokens: Maximum number of tokens of an answer.
    """

    oracle: Autoregressive
    verifier: Verifier
    prompt: tuple[int, ...]
    text: Callable[[tuple[int, ...]], str]
    max_new_tokens: int


def load_question(config: Config, kind: str, seed: int) -> ModelQuestion:
    """Load the language model, and return a question for it with a constraint on the answer.

    Args:
        config: Settings with the name of the model. If the name is empty, a random model with four letters is used.
        kind: Kind of constraint, "regex" (regular expression) or "json-schema".
        seed: Seed that selects the question.
    """
    if not config.model:
        return make_toy_question(config, kind, seed)
    oracle, task = loaded(config.model), TASKS[kind](seed)
    record_model(oracle.describe())
    tokenization = oracle.tokenization
    grammar = GrammarVerifier.regex if kind == "regex" else GrammarVerifier.json_schema
    verifier, prompt = grammar(task.constraint, tokenization), tuple(tokenization.chat(task.question))
    return ModelQuestion(oracle, verifier, prompt, tokenization.text, config.max_new_tokens)


loaded = cache(load_pretrained)
"""Load a model once per process."""


def make_toy_question(config: Config, kind: str, seed: int) -> ModelQuestion:
    """Return a random language model with four letters, and a constraint that allows only a few words.

    Args:
        config: Settings with the maximum number of tokens.
        kind: "regex" or "json-schema". Each kind has its own list of allowed words.
        seed: Seed of the next-token distributions.

    Returns:
        The model and the constraint, with an empty prompt.
    """

    def next_token(prefix: tuple[int, ...]) -> list[float]:
        return numpy_generator(seed, "toy", kind, prefix).dirichlet([0.5] * 5).tolist()

    words = {"ab", "abc", "b", "ca", "cad", "d"} if kind == "regex" else {"aaaa", "aaab", "ba", "dc"}
    end = len(_LETTERS)

    def text(completion: tuple[int, ...]) -> str:
        return "".join(_LETTERS[token] for token in completion if token != end)

    def allowed(completion: tuple[int, ...]) -> bool:
        if end in completion or len(completion) == config.max_new_tokens:
            return text(completion) in words
        return any(word.startswith(text(completion)) for word in words)

    oracle = Table(next_token, vocab_size=5, eos=end, max_length=config.max_new_tokens)
    return ModelQuestion(oracle, FunctionVerifier(allowed), (), text, config.max_new_tokens)
