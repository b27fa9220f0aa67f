"""JSON Schema engines of `mask_bench.py`, each of which computes token masks in a process of its own."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

import torch
import transformers

from trialogue.models.hub.catalogue import find_folder
from trialogue.models.tokenization import Tokenization
from trialogue.verifiers import GrammarVerifier

_MAX_TOKENS = 1 << 15


class Engine(Protocol):
    """Engine that computes token masks for one text at a time."""

    def compile(self, schema: dict[str, Any]) -> None:
        """Compile a schema, or raise an exception if it is refused."""

    def begin(self) -> None:
        """Begin a new text."""

    def allows(self, token: int) -> bool:
        """Compute the mask of the next token. If it allows `token`, append the token. Return whether it does."""


class _Text:
    """Batch of one growing completion without a prompt, in the form that verifiers receive."""

    def __init__(self, tokenization: Tokenization) -> None:
        self.vocab_size, self.eos = tokenization.vocab_size, tokenization.eos
        self.tokens = torch.zeros(1, _MAX_TOKENS, dtype=torch.int64)
        self.lengths, self.start = torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
        self.limit, self.complete = torch.full((1,), _MAX_TOKENS), torch.zeros(1, dtype=torch.bool)
        # Samplers append tokens by a compiled loop, so the time of tensor operations must not count.
        self._row, self._length = self.tokens.numpy()[0], self.lengths.numpy()

    def append(self, token: int) -> None:
        self._row[self._length[0]] = token
        self._length += 1


class Trialogue:
    """Verifier of this package."""

    def __init__(self, tokenization: Tokenization) -> None:
        self._tokenization, self._row = tokenization, torch.zeros(1, dtype=torch.int64)

    def compile(self, schema: dict[str, Any]) -> None:
        self._verifier = GrammarVerifier.json_schema(schema, self._tokenization, whitespace="flexible")

    def begin(self) -> None:
        self._text: Any = _Text(self._tokenization)

    def allows(self, token: int) -> bool:
        allowed = bool(self._verifier.children(self._text, self._row)[0, token])
        self._text.append(token)
        return allowed


class LLGuidance:
    """llguidance, with its default options."""

    def __init__(self, tokenization: Tokenization) -> None:
        from llguidance.hf import from_tokenizer

        self._tokenizer = from_tokenizer(tokenization.tokenizer)

    def compile(self, schema: dict[str, Any]) -> None:
        from llguidance import LLMatcher

        grammar = json.dumps({"grammars": [{"json_schema": schema}]})
        self._start = LLMatcher(self._tokenizer, grammar, log_level=0)
        if self._start.is_error():
            raise ValueError(self._start.get_error())

    def begin(self) -> None:
        self._matcher = self._start.deep_copy()

    def allows(self, token: int) -> bool:
        mask = self._matcher.compute_bitmask()
        if self._matcher.is_error():
            raise ValueError(self._matcher.get_error())
        return bool(mask[token >> 3] >> (token & 7) & 1) and bool(self._matcher.consume_token(token))


class XGrammar:
    """XGrammar, which accepts properties that a schema does not name, and any white space."""

    def __init__(self, tokenization: Tokenization) -> None:
        import xgrammar

        self._library, size = xgrammar, tokenization.vocab_size
        tokens = xgrammar.TokenizerInfo.from_huggingface(tokenization.tokenizer, vocab_size=size)
        self._compiler = xgrammar.GrammarCompiler(tokens, max_threads=1, cache_enabled=False)
        self._mask = xgrammar.allocate_token_bitmask(1, size)

    def compile(self, schema: dict[str, Any]) -> None:
        settings = {"any_whitespace": True, "strict_mode": False}
        self._grammar = self._compiler.compile_json_schema(json.dumps(schema), **settings)

    def begin(self) -> None:
        self._matcher = self._library.GrammarMatcher(self._grammar)

    def allows(self, token: int) -> bool:
        self._matcher.fill_next_token_bitmask(self._mask)
        return bool(self._matcher.accept_token(token))


ENGINES: dict[str, Callable[[Tokenization], Engine]] = {
    "trialogue": Trialogue,
    "llguidance": LLGuidance,
    "xgrammar": XGrammar,
}


def judge(engine: Engine, tokenization: Tokenization, case: dict[str, Any]) -> list[Any]:
    """Return whether a schema is refused, the CPU seconds to compile it, those of each mask, and the verdicts."""
    began = time.thread_time()
    try:
        engine.compile(case["schema"])
    except Exception:
        return [True, time.thread_time() - began, [], []]
    compiled, masks, verdicts = time.thread_time() - began, [], []
    for test in case["tests"]:
        text = json.dumps(test["data"], ensure_ascii=False)
        tokens = tokenization.tokenizer(text, add_special_tokens=False)["input_ids"]
        engine.begin()
        accepted = True
        for token in (*tokens, tokenization.eos):
            began = time.thread_time()
            try:
                accepted = engine.allows(token)
            except Exception:  # a limit of the engine
                accepted = False
            masks.append(time.thread_time() - began)
            if not accepted:
                break
        verdicts.append(accepted)
    return [False, compiled, masks, verdicts]


def work(name: str, seconds: float) -> None:
    """Answer requests from standard input. The process is killed if a request takes more than `seconds` of CPU time."""
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    tokenizer = transformers.AutoTokenizer.from_pretrained(find_folder("smollm2"))
    tokenization = Tokenization(tokenizer)
    engine = ENGINES[name](tokenization)
    judge(engine, tokenization, {"schema": {"type": "boolean"}, "tests": [{"data": True}]})  # warm-up
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())  # XGrammar warns about many schemas
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        answer = judge(engine, tokenization, *json.loads(line))
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    work(sys.argv[1], float(sys.argv[2]))
