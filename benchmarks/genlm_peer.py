"""genlm-control as a contender of `generation.py`: runs in an environment of its own, told by lines on stdin.

Each line is a JSON list (sampler, particles); each answer one of (tokens drawn, CPU seconds, wall seconds).
"""

import asyncio
import json
import sys
import time
from typing import Any

import torch
from genlm.control import AWRS, BoolFSA, PromptedLLM, direct_token_sampler


def main() -> None:
    """Answer until stdin ends."""
    model, prompt, regex, max_tokens = sys.argv[1:]
    torch.set_num_threads(1)
    llm = PromptedLLM.from_name(model, backend="hf")
    llm.set_prompt_from_str(prompt)
    rule = BoolFSA.from_regex(regex).coerce(llm, f=b"".join)
    for line in sys.stdin:
        kind, particles = json.loads(line)
        sampler: Any = AWRS(llm, rule) if kind == "AWRS" else direct_token_sampler(llm * rule)
        llm.model.clear_cache()
        cpu, wall = time.process_time(), time.perf_counter()
        sequences = asyncio.run(
            sampler.smc(n_particles=particles, ess_threshold=0.5, max_tokens=int(max_tokens))
        )
        taken = (time.process_time() - cpu, time.perf_counter() - wall)
        print(json.dumps([sum(len(context) for context in sequences.contexts), *taken]), flush=True)


if __name__ == "__main__":
    main()
