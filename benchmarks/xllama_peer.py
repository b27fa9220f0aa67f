"""Worker that runs the server of llama.cpp for `engines.py`, in a separate Python environment with xllamacpp.

    python xllama_peer.py FILE.gguf THREADS

Requests and responses are those of `llama_peer.py`. The server samples at temperature 1 without truncation.
"""

import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import xllamacpp

_ROWS, _CONTEXT = 16, 256


class Contender:
    """Server of llama.cpp, which is called without HTTP."""

    def __init__(self, file: str, threads: int) -> None:
        params = xllamacpp.CommonParams()
        params.model.path = file
        params.n_parallel, params.n_ctx = _ROWS, _ROWS * _CONTEXT
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        self._server = xllamacpp.Server(params)

    def generate(self, rows: int, prompt: Sequence[int], new_tokens: int, draws: bool) -> list[float]:
        """Continue the prompt by the same number of tokens in each row, at temperature 1 if `draws` is true."""
        cpu, wall = time.process_time(), time.perf_counter()
        with ThreadPoolExecutor(rows) as pool:
            answers = list(
                pool.map(lambda row: self._complete(prompt, new_tokens, draws, seed=row), range(rows))
            )
        taken = [time.process_time() - cpu, time.perf_counter() - wall]
        return [sum(answer["usage"]["completion_tokens"] for answer in answers), *taken]

    def distributions(self, tokens: Sequence[int], path: str) -> list[int]:
        """Write the log-probabilities (n, vocab) after each of the tokens to a file, and return their shape."""
        rows = []
        for count in range(1, len(tokens) + 1):
            answer = self._complete(tokens[:count], 1, True, logprobs=1 << 20)
            [listed] = (token["top_logprobs"] for token in answer["choices"][0]["logprobs"]["content"])
            row = np.full(len(listed), -np.inf, np.float32)
            row[[entry["id"] for entry in listed]] = [entry["logprob"] for entry in listed]
            rows.append(row)
        np.stack(rows).tofile(path)
        return [len(rows), len(rows[0])]

    def _complete(
        self, prompt: Sequence[int], new_tokens: int, draws: bool, **settings: Any
    ) -> dict[str, Any]:
        settings |= {
            "temperature": float(draws),
            "top_k": 0,
            "top_p": 1.0,
            "min_p": 0.0,
            "repeat_penalty": 1.0,
        }
        request = {"prompt": list(prompt), "n_predict": new_tokens, "ignore_eos": True, "cache_prompt": False}
        answer: dict[str, Any] = self._server.handle_completions(request | settings)
        if "choices" not in answer:
            raise SystemExit(f"llama.cpp could not complete: {answer}")
        return answer


def main() -> None:
    """Handle requests until standard input is closed."""
    contender = Contender(sys.argv[1], int(sys.argv[2]))
    for line in sys.stdin:
        what, *arguments = json.loads(line)
        print(json.dumps(getattr(contender, what)(*arguments)), flush=True)


if __name__ == "__main__":
    main()
