"""Decoding speed of this package compared with `generate` of transformers and with the matrix products alone.

The model is a GPT-2 of the size of the demo model (2 layers, 4 heads, width 64, MLP width 256). It generates 32 tokens
with top-p 0.9 after ragged prompts of 4 to 12 tokens. The contenders alternate, so that changes in the speed of the
machine affect all of them. The table shows medians over `--rounds`. A second table compares the time per model call of
backtracking and ancestral sampling, and shows the time to complete 10,000 prompts.

    python benchmarks/decoding.py --threads 1
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import transformers
from rich.console import Console
from rich.table import Table
from torch import Tensor

from record import Record
from trialogue.data import Dyck
from trialogue.models.networks.probe import Probe
from trialogue.models.networks.transformer import Transformer, TransformerConfig
from trialogue.randomness import generator
from trialogue.samplers import Ancestral, Backtracking, generate, truncated
from trialogue.verifiers.functions.function import Threshold
from trialogue.verifiers.probe import ProbeVerifier

NEW_TOKENS, TOP_P = 32, 0.9


def prompts(batch: int) -> tuple[Tensor, Tensor]:
    """Return prompt tokens (batch, 12) and lengths (batch,)."""
    draw = generator(0, "prompts", batch)
    lengths = torch.randint(4, 13, (batch,), generator=draw)
    return torch.randint(0, 4, (batch, 12), generator=draw), lengths


def endless(max_length: int = 48) -> Transformer:
    """Return a model without an end-of-sequence token, so that all contenders generate the same number of tokens."""
    model = Transformer(TransformerConfig(vocab_size=4, max_length=max_length)).eval().requires_grad_(False)
    model.final_norm.bias.fill_(1.0)
    model.head.weight[model.eos] = -1.0
    return model


def ours(batch: int) -> Callable[[], int]:
    oracle, start = truncated(endless(), top_p=TOP_P), prompts(batch)

    def run() -> int:
        samples = generate(oracle, start, max_new_tokens=NEW_TOKENS, batch_size=batch)
        return int((samples.lengths - samples.prompt_lengths).sum())

    return run


def theirs(batch: int) -> Callable[[], int]:
    config = transformers.GPT2Config(
        vocab_size=6,
        n_positions=64,
        n_embd=64,
        n_layer=2,
        n_head=4,
        n_inner=256,
        bos_token_id=5,
        eos_token_id=None,
        pad_token_id=4,
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    tokens, lengths = prompts(batch)
    # transformers requires left padding, with the BOS token before the prompt.
    padded = torch.full((batch, 13), 4)
    for row, length in enumerate(lengths.tolist()):
        padded[row, -length:] = tokens[row, :length]
        padded[row, -length - 1] = 5
    mask = (torch.arange(13) >= 12 - lengths[:, None]).long()

    def run() -> int:
        with torch.inference_mode():
            output = model.generate(
                padded, attention_mask=mask, do_sample=True, top_p=TOP_P, top_k=0, max_new_tokens=NEW_TOKENS
            )
        return batch * (output.shape[1] - padded.shape[1])

    return run


def products(batch: int) -> Callable[[], int]:
    """Return a run of the matrix products of 32 single-token steps at context length 24, with preallocated inputs."""
    width, inner, heads, context = 64, 256, 4, 24
    x, h = torch.randn(batch, width), torch.randn(batch, inner)
    qkv, out = torch.randn(width, 3 * width), torch.randn(width, width)
    up, down, head = torch.randn(width, inner), torch.randn(inner, width), torch.randn(width, 5)
    q, k = torch.randn(batch * heads, 1, width // heads), torch.randn(batch * heads, width // heads, context)
    p, v = torch.randn(batch * heads, 1, context), torch.randn(batch * heads, context, width // heads)

    def run() -> int:
        with torch.inference_mode():
            for _ in range(NEW_TOKENS):
                for _ in range(2):
                    torch.mm(x, qkv)
                    torch.bmm(q, k)
                    torch.bmm(p, v)
                    torch.mm(x, out)
                    torch.mm(x, up)
                    torch.mm(h, down)
                torch.mm(x, head)
        return batch * NEW_TOKENS

    return run


def rates(contenders: dict[str, Callable[[], int]], rounds: int) -> dict[str, float]:
    """Run the contenders in alternation and return the median tokens per second of each."""
    seen: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, run in contenders.items():
            began = time.perf_counter()
            tokens = run()
            if turn:  # The first round is a warm-up.
                seen[name].append(tokens / (time.perf_counter() - began))
    return {name: statistics.median(values) for name, values in seen.items()}


def backtracking(console: Console, rounds: int, record: Record) -> None:
    """Compare the time per model call of Algorithm 1 and ancestral sampling on 10,000 prompts."""
    model = endless(max_length=32)
    oracle = truncated(model, top_p=TOP_P)
    verifier = Threshold(ProbeVerifier(Probe(64)), 0.5)
    distribution = Dyck(type_probs=(0.8, 0.2))

    def seconds_per_query(sampler: Ancestral | Backtracking) -> tuple[float, float]:
        needed = None if isinstance(sampler, Ancestral) else verifier
        samples = generate(oracle, distribution.sample_prompts(10_000), sampler=sampler, verifier=needed)
        return samples.total.seconds / samples.total.queries, samples.total.seconds

    samplers = {"ancestral": Ancestral(), "backtracking, Q = 4, B = 4": Backtracking(4, 4)}
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in samplers}
    for _ in range(rounds):
        for name, sampler in samplers.items():
            seen[name].append(seconds_per_query(sampler))
    table = Table("10,000 prompts of 25 to 31 tokens", "µs a query", "seconds", "time a query / ancestral's")
    base = statistics.median(per_query for per_query, _ in seen["ancestral"])
    for name, values in seen.items():
        per_query = statistics.median(value for value, _ in values)
        whole = statistics.median(seconds for _, seconds in values)
        record.add(name, whole, what="seconds for 10,000 prompts")
        record.add(name, per_query / base, what="time a query / ancestral's")
        table.add_row(name, f"{1e6 * per_query:.1f}", f"{whole:.2f}", f"{per_query / base:.2f}")
    console.print(table)


def main() -> None:
    """Run the benchmark and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 64, 1024])
    parser.add_argument("--record", action="store_true", help="write the rows that README quotes")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.logging.set_verbosity_error()
    console, record = Console(), Record("decoding")
    table = Table("batch", "trialogue", "transformers", "ratio", "products only", "of that limit")
    for batch in arguments.batches:
        contenders = {"ours": ours(batch), "theirs": theirs(batch), "products": products(batch)}
        seen = rates(contenders, arguments.rounds)
        for name, rate in seen.items():
            record.add(name, rate, what="tokens/s", batch=batch)
        table.add_row(
            str(batch),
            f"{seen['ours']:,.0f}",
            f"{seen['theirs']:,.0f}",
            f"{seen['ours'] / seen['theirs']:.2f}",
            f"{seen['products']:,.0f}",
            f"{seen['ours'] / seen['products']:.0%}",
        )
    table.title = f"tokens/s, top-p {TOP_P}, {NEW_TOKENS} new tokens, {arguments.threads} thread(s)"
    console.print(table)
    backtracking(console, min(3, arguments.rounds), record)
    if arguments.record:
        record.write()


if __name__ == "__main__":
    main()
