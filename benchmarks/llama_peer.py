"""Worker that runs llama.cpp for `generation.py` in a separate Python environment.

    python llama_peer.py FILE.gguf THREADS plain|extra

`extra` allows llama.cpp to repack the weights for AMX. With repacked weights, version 0.3.36 of the bindings crashes
for several sequences. Each line on standard input is a JSON list with a request, and each line of output is a JSON
list:

    ["generate", rows, prompt, new tokens, sample]   number of tokens, CPU seconds and wall seconds
    ["distributions", tokens, path]                  shape (tokens, vocabulary) of the float32 logits written to path
    ["peak"]                                         peak memory of the process in MiB

If `sample` is false, all tokens are fixed and the sampler of llama.cpp is not used.
"""

import ctypes
import json
import resource
import sys
import time
from collections.abc import Sequence
from typing import Any

import llama_cpp as llama
import numpy as np


@llama.llama_log_callback
def quiet(*_: object) -> None:
    """Discard log messages."""


class Contender:
    """Model of llama.cpp with a context for each number of rows."""

    def __init__(self, file: str, threads: int, extra: bool) -> None:
        llama.llama_log_set(quiet, ctypes.c_void_p(0))
        llama.llama_backend_init()
        params = llama.llama_model_default_params()
        params.use_extra_bufts = extra
        self._model, self._threads = llama.llama_model_load_from_file(file.encode(), params), threads
        if self._model is None:
            raise SystemExit(f"llama.cpp cannot load a model from {file}")
        self._vocab_size = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(self._model))
        self._contexts: dict[int, Any] = {}
        chain = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
        llama.llama_sampler_chain_add(chain, llama.llama_sampler_init_dist(0))
        self._sampler = chain

    def generate(self, rows: int, prompt: Sequence[int], new_tokens: int, draws: bool) -> list[float]:
        """Evaluate the prompt once, copy its state to all rows, and then generate one token per row and step."""
        context = self._context(rows)
        memory = llama.llama_get_memory(context)
        cpu, wall = time.process_time(), time.perf_counter()
        llama.llama_memory_clear(memory, False)
        self._decode(context, [(token, place, 0) for place, token in enumerate(prompt)])
        for row in range(1, rows):
            llama.llama_memory_seq_cp(memory, 0, row, -1, -1)
        answers = [len(prompt) - 1] * rows
        for step in range(new_tokens):
            if draws:
                tokens = [llama.llama_sampler_sample(self._sampler, context, answer) for answer in answers]
            else:
                tokens = [100 + row + step for row in range(rows)]
            if step < new_tokens - 1:
                place = len(prompt) + step
                self._decode(context, [(token, place, row) for row, token in enumerate(tokens)], every=True)
                answers = list(range(rows))
        return [rows * new_tokens, time.process_time() - cpu, time.perf_counter() - wall]

    def distributions(self, tokens: Sequence[int], path: str) -> list[int]:
        """Write the logits (n, vocab) after each of the tokens to a file, and return their shape."""
        context = self._context(1)
        llama.llama_memory_clear(llama.llama_get_memory(context), False)
        self._decode(context, [(token, place, 0) for place, token in enumerate(tokens)], every=True)
        logits = llama.llama_get_logits(context)
        np.ctypeslib.as_array(logits, (len(tokens), self._vocab_size)).tofile(path)
        return [len(tokens), self._vocab_size]

    def peak(self) -> list[float]:
        """Return the peak memory of the process in MiB."""
        return [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]

    def _context(self, rows: int) -> Any:
        if rows not in self._contexts:
            params = llama.llama_context_default_params()
            params.n_ctx, params.n_seq_max = 512 * rows, rows
            params.n_threads = params.n_threads_batch = self._threads
            self._contexts[rows] = llama.llama_init_from_model(self._model, params)
        return self._contexts[rows]

    def _decode(self, context: Any, tokens: list[tuple[int, int, int]], every: bool = False) -> None:
        """Evaluate (token, position, row) triples, and compute the logits of all of them or of the last of each row."""
        batch = llama.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for index, (token, place, row) in enumerate(tokens):
            batch.token[index], batch.pos[index] = token, place
            batch.n_seq_id[index], batch.seq_id[index][0] = 1, row
            batch.logits[index] = every or index == len(tokens) - 1
        if llama.llama_decode(context, batch):
            raise SystemExit("llama.cpp could not evaluate a batch")
        llama.llama_batch_free(batch)


def main() -> None:
    """Handle requests until standard input is closed."""
    file, threads, buffers = sys.argv[1:]
    contender = Contender(file, int(threads), buffers == "extra")
    for line in sys.stdin:
        what, *arguments = json.loads(line)
        print(json.dumps(getattr(contender, what)(*arguments)), flush=True)


if __name__ == "__main__":
    main()
