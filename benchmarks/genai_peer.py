"""Worker that runs OpenVINO GenAI with its own reader of GGUF files for `engines.py`, in a separate Python environment.

    python genai_peer.py FILE.gguf THREADS

Requests and responses are those of `llama_peer.py`.
"""

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import openvino as ov
import openvino_genai as genai


class Contender:
    """Pipeline of OpenVINO GenAI, and the graph that its reader made from the file."""

    def __init__(self, file: str, threads: int) -> None:
        self._folder = tempfile.TemporaryDirectory()
        copy = Path(shutil.copy(file, self._folder.name))
        self._settings = {"INFERENCE_NUM_THREADS": threads, "ENABLE_CPU_PINNING": False}
        self._pipeline = genai.LLMPipeline(copy, "CPU", **self._settings, enable_save_ov_model=True)
        self._graph = copy.with_name("openvino_model.xml")

    def generate(self, rows: int, prompt: Sequence[int], new_tokens: int, draws: bool) -> list[float]:
        """Continue the prompt by the same number of tokens in each row, at temperature 1 if `draws` is true."""
        ids = np.array([prompt] * rows, np.int64)
        inputs = genai.TokenizedInputs(ov.Tensor(ids), ov.Tensor(np.ones_like(ids)))
        config = genai.GenerationConfig(
            max_new_tokens=new_tokens,
            min_new_tokens=new_tokens,
            ignore_eos=True,
            do_sample=draws,
            apply_chat_template=False,
        )
        cpu, wall = time.process_time(), time.perf_counter()
        tokens = self._pipeline.generate(inputs, config).tokens
        taken = [time.process_time() - cpu, time.perf_counter() - wall]
        return [sum(map(len, tokens)), *taken]

    def distributions(self, tokens: Sequence[int], path: str) -> list[int]:
        """Write the logits (n, vocab) after each of the tokens to a file, and return their shape."""
        count = len(tokens)
        inputs = {
            "input_ids": np.array([tokens], np.int64),
            "attention_mask": np.ones((1, count), np.int64),
            "position_ids": np.arange(count)[None],
            "beam_idx": np.zeros(1, np.int32),
        }
        compiled = ov.Core().compile_model(self._graph, "CPU", self._settings)
        [logits] = compiled(inputs).values()
        logits[0].astype(np.float32).tofile(path)
        return list(logits[0].shape)


def main() -> None:
    """Handle requests until standard input is closed."""
    contender = Contender(sys.argv[1], int(sys.argv[2]))
    for line in sys.stdin:
        what, *arguments = json.loads(line)
        print(json.dumps(getattr(contender, what)(*arguments)), flush=True)


if __name__ == "__main__":
    main()
