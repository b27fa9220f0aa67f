"""The parts of a run: exactness of both constructions, disturbed balance, the theorem's inequalities, its lemmas."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trialogue.data import Dyck
from trialogue.randomness import generator
from trialogue_lab.ledger import Part
from trialogue_lab.models.dyck_transformer import (
    DyckTransformer,
    DyckTransformerConfig,
    balanced_transformer,
    uniform_attention_transformer,
)
from trialogue_lab.studies.dyck_construction.config import Config
from trialogue_lab.theory.balance import balance_violation, inequality_chain, pumped_distances

Row = Iterator[dict[str, Any]]

LENGTHS = ((20, 60), (400, 500), (4000, 5000))
"""Ranges of lengths that disturbed networks are asked about"""
PUMPED = (10, 100, 1000, 10_000, 100_000)
"""Pairs in front of two prefixes whose normed sums are compared"""
_CHAIN_LENGTHS = (40, 512)
_CHAIN_PART = 50
_CHAIN_TYPES, _CHAIN_DEPTH = 2, 3


def parts(config: Config) -> list[Part]:
    """One part for each network that is compared or disturbed, some for the inequalities, one for the lemma."""
    chains = [config.chain_seeds[i : i + _CHAIN_PART] for i in range(0, len(config.chain_seeds), _CHAIN_PART)]
    return [
        *(Part(f"exact-{seed}", partial(_exact, config, seed)) for seed in config.exact_seeds),
        *(
            Part(f"disturbed-{seed}", partial(_disturbed, config, seed), columns={"seed": seed})
            for seed in config.seeds
        ),
        *(Part(f"chain-{seeds[0]}", partial(_chains, seeds)) for seeds in chains),
        Part("lemma", _lemma),
    ]


def _law(config: Config, longest: int) -> Dyck:
    # One token longer, so that something follows the longest prefix.
    return Dyck(longest + 1, (1 / config.types,) * config.types, 0.5, config.depth, complete=False)


def _exact(config: Config, seed: int, _: Path) -> Row:
    law = _law(config, config.longest)
    tokens, lengths = law.sample_prompts(config.prefixes, (0, config.longest), seed)
    exact = law.next_log_probs(tokens, lengths).exp()
    for name, network in (
        ("balance", balanced_transformer(config.types, config.depth, config.logits_std, seed)),
        ("uniform", uniform_attention_transformer(config.types, config.depth, seed)),
    ):
        distance = (network.next_log_probs(tokens, lengths).exp() - exact).abs().sum(1) / 2
        yield {
            "kind": "exact",
            "network": name,
            "seed": seed,
            "distance": float(distance.max()),
            "violation": balance_violation(network),
            "prefixes": config.prefixes,
            "longest": int(lengths.max()),
            "parameters": sum(parameter.numel() for parameter in network.parameters()),
        }


def _disturbed(config: Config, seed: int, _: Path) -> Row:
    asked = {longest: _closings(config, seed, shortest, longest) for shortest, longest in LENGTHS}
    for disturbance in (0.0, *config.disturbances):
        network = balanced_transformer(config.types, config.depth, config.logits_std, seed)
        _disturb(network, disturbance, seed)
        row = {"kind": "disturbed", "disturbance": disturbance, "violation": balance_violation(network)}
        for longest, (tokens, lengths, innermost) in asked.items():
            answers = network.next_log_probs(tokens, lengths)[:, 1::2].argmax(1)
            yield {**row, "longest": longest, "accuracy": float((answers == innermost).double().mean())}
        for pairs in PUMPED:
            distance = float(pumped_distances(network, pairs).median())
            yield {"kind": "pumped", "disturbance": disturbance, "pairs": pairs, "distance": distance}


def _disturb(network: DyckTransformer, spread: float, seed: int) -> None:
    weight = network.attention.query.weight
    noise = torch.empty(weight.shape, dtype=weight.dtype).normal_(generator=generator(seed, "disturbance"))
    with torch.no_grad():
        weight += spread * noise


def _closings(config: Config, seed: int, shortest: int, longest: int) -> tuple[Tensor, Tensor, Tensor]:
    """Prefixes that end with a closing bracket and leave one open, their lengths, and the type of the innermost."""
    law = _law(config, longest)
    tokens, lengths = law.sample_prompts(8 * config.disturbed_prefixes, (shortest, longest), seed)
    open_types = law.sufficient(tokens, lengths)
    counts = (open_types >= 0).sum(1)
    last = tokens.gather(1, lengths[:, None] - 1)[:, 0]
    rows = ((last % 2 == 1) & (counts > 0)).nonzero()[: config.disturbed_prefixes, 0]
    innermost = open_types[rows].gather(1, counts[rows, None] - 1)[:, 0]
    return tokens[rows], lengths[rows], innermost


def _chains(seeds: tuple[int, ...], _: Path) -> Row:
    for seed in seeds:
        disturbed = seed % 10 < 3
        if disturbed:
            network = balanced_transformer(_CHAIN_TYPES, _CHAIN_DEPTH, 1.0, seed)
            _disturb(network, 10.0 ** -(seed % 3 + 1), seed)
        else:
            residual = seed % 2 == 0
            config = DyckTransformerConfig(
                types=_CHAIN_TYPES,
                depth=_CHAIN_DEPTH,
                embedding=("pairs", "sums", "angles")[seed % 3],
                residual=residual,
                mlps=((20, 8),) if residual else ((),),
                initial_scale=(0.1, 0.5, 2.0)[seed // 10 % 3],
                double=True,
            )
            network = DyckTransformer(config, seed).eval()
        chain = inequality_chain(network, _CHAIN_LENGTHS)
        # Rounding of sums of hundreds of terms is allowed for.
        rounding = 1e-9
        yield {
            "kind": "chain",
            "seed": seed,
            "network": "disturbed" if disturbed else "random",
            "first": int((chain.distance < chain.required - rounding).sum()),
            "second": int((chain.total > chain.total_bound * (1 + rounding)).sum()),
            "third": int((chain.pair > chain.pair_bound * (1 + rounding)).sum()),
            "positive": int((chain.required > 0).sum()),
            "cases": len(chain.required),
            "slack": float((chain.pair_bound / chain.pair).log10().median()),
            "tightest": float((chain.pair_bound / chain.pair).log10().min()),
        }


def _lemma(_: Path) -> Row:
    """Lemma 2.2.1 on drawn vectors: the largest distance of normed sums over the eps that is claimed to bound it."""
    draw = generator(0, "lemma 2.2.1")
    far, *near = (torch.empty(2000, 5, dtype=torch.float64).normal_(generator=draw) for _ in range(3))
    far = far / far.norm(dim=1, keepdim=True)
    for scale in (1e-3, 1.0, 1e3):
        added = [each * scale for each in near]
        longest = torch.stack(added).norm(dim=-1).max(0).values[:, None]
        for eps in (0.05, 0.1, 0.5):
            factors = {"printed": 4 * longest / eps + 1, "corrected": 4 / eps + 1}
            for form, factor in factors.items():
                sums = [far * factor * longest + each for each in added]
                normed = [each / each.norm(dim=1, keepdim=True) for each in sums]
                apart = float((normed[0] - normed[1]).norm(dim=1).max())
                yield {"kind": "lemma", "form": form, "scale": scale, "eps": eps, "ratio": apart / eps}
