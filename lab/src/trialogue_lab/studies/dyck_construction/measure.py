"""Tasks of a run, which test constructed networks with and without noise, and the inequalities of Theorem 2.2.2."""

from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from trialogue.data import Dyck
from trialogue.randomness import generator
from trialogue_lab.ledger import MeasuredRows, Part, parts_by_seed
from trialogue_lab.models import dyck_transformer as models
from trialogue_lab.studies.dyck_construction.config import Config
from trialogue_lab.theory.balance import balance_violation, inequality_chain, pumped_distances

LENGTHS = ((20, 60), (400, 500), (4000, 5000))
"""Ranges of lengths of the prefixes for networks with noise."""
PUMPED = (10, 100, 1000, 10_000, 100_000)
"""Numbers of bracket pairs that precede two prefixes whose normalized sums are compared."""
_CHAIN_LENGTHS = (40, 512)
_CHAINS_PER_TASK = 50
_CHAIN_TYPES, _CHAIN_DEPTH = 2, 3
_ROUNDING = 1e-9
"""Tolerance for rounding errors in sums of hundreds of terms."""


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, each of which tests transformers with constructed weights.

    The transformers predict the next bracket of bracket strings exactly. There is one task per transformer, which
    measures its predictions with and without noise. Further tasks test the inequalities of Theorem 2.2.2 on groups of
    networks, and the last task tests Lemma 2.2.1.

    Args:
        config: Settings of the run.
    """
    starts = range(0, len(config.chain_seeds), _CHAINS_PER_TASK)
    chains = [config.chain_seeds[start : start + _CHAINS_PER_TASK] for start in starts]
    return [
        *(Part(f"exact-{seed}", partial(_measure_exact, config, seed)) for seed in config.exact_seeds),
        *parts_by_seed(config, config.seeds, disturbed=_measure_disturbed),
        *(Part(f"chain-{seeds[0]}", partial(_measure_chains, seeds)) for seeds in chains),
        Part("lemma", _measure_lemma),
    ]


def _make_distribution(config: Config, longest: int) -> Dyck:
    # One token is added so that a token follows the longest prefix.
    return Dyck(longest + 1, (1 / config.types,) * config.types, 0.5, config.depth, complete=False)


def _measure_exact(config: Config, seed: int, _: Path) -> MeasuredRows:
    language = _make_distribution(config, config.longest)
    tokens, lengths = language.sample_prompts(config.prefixes, (0, config.longest), seed)
    exact = language.next_log_probs(tokens, lengths).exp()
    for name, network in (
        ("balance", models.balanced_transformer(config.types, config.depth, config.logits_std, seed)),
        ("uniform", models.uniform_attention_transformer(config.types, config.depth, seed)),
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


def _measure_disturbed(config: Config, seed: int, _: Path) -> MeasuredRows:
    closings = {longest: _sample_closings(config, seed, shortest, longest) for shortest, longest in LENGTHS}
    for disturbance in (0.0, *config.disturbances):
        network = models.balanced_transformer(config.types, config.depth, config.logits_std, seed)
        _add_noise(network, disturbance, seed)
        row = {"kind": "disturbed", "disturbance": disturbance, "violation": balance_violation(network)}
        for longest, (tokens, lengths, innermost) in closings.items():
            predicted = network.next_log_probs(tokens, lengths)[:, 1::2].argmax(1)
            yield {**row, "longest": longest, "accuracy": float((predicted == innermost).double().mean())}
        for pairs in PUMPED:
            distance = float(pumped_distances(network, pairs).median())
            yield {"kind": "pumped", "disturbance": disturbance, "pairs": pairs, "distance": distance}


def _add_noise(network: models.DyckTransformer, std: float, seed: int) -> None:
    """Add normal noise to the query weights, which changes the attention scores."""
    weight = network.attention.query.weight
    noise = torch.empty(weight.shape, dtype=weight.dtype).normal_(generator=generator(seed, "disturbance"))
    with torch.no_grad():
        weight += std * noise


def _sample_closings(config: Config, seed: int, shortest: int, longest: int) -> tuple[Tensor, Tensor, Tensor]:
    """Sample prefixes that end with a closing bracket and leave a bracket open.

    Returns:
        Token ids (n, width), lengths (n,), and the types (n,) of the innermost open brackets.
    """
    language = _make_distribution(config, longest)
    tokens, lengths = language.sample_prompts(8 * config.disturbed_prefixes, (shortest, longest), seed)
    open_types = language.sufficient(tokens, lengths)
    counts = (open_types >= 0).sum(1)
    last = tokens.gather(1, lengths[:, None] - 1)[:, 0]
    rows = ((last % 2 == 1) & (counts > 0)).nonzero()[: config.disturbed_prefixes, 0]
    innermost = open_types[rows].gather(1, counts[rows, None] - 1)[:, 0]
    return tokens[rows], lengths[rows], innermost


def _measure_chains(seeds: tuple[int, ...], _: Path) -> MeasuredRows:
    for seed in seeds:
        has_noise = seed % 10 < 3
        if has_noise:
            network = models.balanced_transformer(_CHAIN_TYPES, _CHAIN_DEPTH, 1.0, seed)
            _add_noise(network, 10.0 ** -(seed % 3 + 1), seed)
        else:
            residual = seed % 2 == 0
            config = models.DyckTransformerConfig(
                types=_CHAIN_TYPES,
                depth=_CHAIN_DEPTH,
                embedding=("pairs", "sums", "angles")[seed % 3],
                residual=residual,
                mlps=((20, 8),) if residual else ((),),
                initial_scale=(0.1, 0.5, 2.0)[seed // 10 % 3],
                double=True,
            )
            network = models.DyckTransformer(config, seed).eval()
        chain = inequality_chain(network, _CHAIN_LENGTHS)
        slack = (chain.pair_bound / chain.pair).log10()
        yield {
            "kind": "chain",
            "seed": seed,
            "network": "disturbed" if has_noise else "random",
            "first": int((chain.distance < chain.required - _ROUNDING).sum()),
            "second": int((chain.total > chain.total_bound * (1 + _ROUNDING)).sum()),
            "third": int((chain.pair > chain.pair_bound * (1 + _ROUNDING)).sum()),
            "positive": int((chain.required > 0).sum()),
            "cases": len(chain.required),
            "slack": float(slack.median()),
            "tightest": float(slack.min()),
        }


def _measure_lemma(_: Path) -> MeasuredRows:
    """Test Lemma 2.2.1 on random vectors, and yield the largest distance divided by its bound eps."""
    random = generator(0, "lemma 2.2.1")
    far, *near = (torch.empty(2000, 5, dtype=torch.float64).normal_(generator=random) for _ in range(3))
    far = far / far.norm(dim=1, keepdim=True)
    for scale in (1e-3, 1.0, 1e3):
        added = [vectors * scale for vectors in near]
        longest = torch.stack(added).norm(dim=-1).max(0).values[:, None]
        for eps in (0.05, 0.1, 0.5):
            factors = {"printed": 4 * longest / eps + 1, "corrected": 4 / eps + 1}
            for form, factor in factors.items():
                sums = [far * factor * longest + vectors for vectors in added]
                first, second = (vectors / vectors.norm(dim=1, keepdim=True) for vectors in sums)
                distance = float((first - second).norm(dim=1).max())
                yield {"kind": "lemma", "form": form, "scale": scale, "eps": eps, "ratio": distance / eps}
