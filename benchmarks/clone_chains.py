"""Cost of a Metropolis proposal on masked scores, relative to a masked forward pass.

A proposal changes the token at one site of a sequence and evaluates the scores of all L sites of the proposed sequence.
A naive implementation requires L passes with one mask each. The script measures CPU time on one thread. Each round
makes one proposal for each of 128 sequences, and the fastest of several rounds counts.

    python benchmarks/clone_chains.py
"""

import time
from collections.abc import Callable
from functools import partial

import torch
from rich.console import Console
from rich.table import Table

from record import Record
from trialogue.models import MaskedTransformer, Transformer
from trialogue.models.networks.factored import FactoredAttention, FactoredAttentionConfig
from trialogue.models.networks.masked import MaskedNetwork
from trialogue.randomness import generator
from trialogue.samplers import MaskedMetropolis
from trialogue.samplers.chains.resumable import RunningChains
from trialogue_lab.models.published import bert

SIZES = ((320, 16, 32), (300, 32, 64))
"""Vocabulary size, sequence length, and rank of the value matrices."""
LAYERS = (1, 2, 3, 4, 6)
ROWS, ROUNDS = 128, 8


def fastest(act: Callable[[], object]) -> float:
    """Return the minimum CPU time in microseconds per sequence."""
    act()
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        act()
        times.append(time.process_time() - began)
    return 1e6 * min(times) / ROWS


def networks(vocab_size: int, sites: int, rank: int) -> dict[str, MaskedNetwork]:
    found: dict[str, MaskedNetwork] = {}
    for layers in LAYERS:
        shape = FactoredAttentionConfig(vocab_size=vocab_size, sites=sites, layers=layers, rank=rank)
        network = FactoredAttention(shape)
        network.dtype = torch.float32
        found[f"{layers} factored"] = network
    shape_of_encoder = bert(vocab_size, sites, layers=2, heads=4, width=64)
    return {**found, "encoder, 2 layers of 64": MaskedTransformer(Transformer(shape_of_encoder))}


def main() -> None:
    torch.set_num_threads(1)
    record, out = Record("clone_chains"), Console()
    for vocab_size, sites, rank in SIZES:
        of = f"V = {vocab_size}, L = {sites}, r = {rank}"
        table = Table(title=f"{of}: microseconds of CPU")
        for head in ("network", "masked pass", "proposal", "proposal / L masked passes"):
            table.add_column(head, justify="left" if head == "network" else "right", no_wrap=True)
        start = torch.randint(vocab_size, (ROWS, sites), generator=generator(0, "start"))
        for name, network in networks(vocab_size, sites, rank).items():
            # The default implementation of masked networks evaluates a copy of the sequence for each site.
            bare = fastest(partial(MaskedNetwork.site_logits, network, start)) / sites
            chains = RunningChains(MaskedMetropolis(), network, start)
            proposal = fastest(partial(chains.advance, 1))
            share = proposal / (sites * bare)
            for what, value in (("masked pass, us", bare), ("proposal, us", proposal), ("passes / L", share)):
                record.add(name, float(f"{value:.3g}"), what=what, of=of)
            table.add_row(name, f"{bare:.1f}", f"{proposal:.0f}", f"{share:.2f}")
        out.print(table)
    record.write()


if __name__ == "__main__":
    main()
