"""Worker that runs genlm-control for `generation.py` in a separate Python environment.

Each line on standard input is a JSON list with a sampler, a constraint and a number of particles. Each line of output
is a JSON list with the number of sampled tokens, the CPU seconds and the wall seconds.
"""

import asyncio
import json
import sys
import time
from typing import Any

import torch
from genlm.control import AWRS, BoolFSA, JsonSchema, PromptedLLM, direct_token_sampler


def main() -> None:
    """Handle requests until standard input is closed."""
    model, prompt, regex, schema, max_tokens, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    llm = PromptedLLM.from_name(model, backend="hf")
    llm.set_prompt_from_str(prompt)
    rules = {"regex": BoolFSA.from_regex(regex), "JSON schema": JsonSchema(json.loads(schema))}
    rules = {name: rule.coerce(llm, f=b"".join) for name, rule in rules.items()}
    for line in sys.stdin:
        kind, name, particles = json.loads(line)
        rule = rules[name]
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
