"""Where exact JSON is cheap, where it falls back to masks, and what weighted samples give for the same model calls.

A model gets 60 prompts for compact JSON: ten schemas, from an enumeration to unbounded text, and three subjects per
schema, each with and without an example object in the prompt. The contenders are:

- exact: `AdaptiveRejection(max_attempts=32, share=4, then="mask")`
- masked: `MaskedDecoding()`, whose samples are biased without their weights
- weighted: masked decoding with as many draws per prompt as the model calls of the exact samples allow
- SMC: `SequentialMonteCarlo(8, proposal="mask")` with as many independent runs as the same calls allow

They are compared by effective samples per 1,000 model calls. A call evaluates one prefix of one row, also if its result
is in the cache. Effective samples are counted as follows:

- An exact sample that was accepted in an attempt counts as one. The samples that fell back count as their effective
  sample size (sum w)^2 / sum w^2.
- Weighted draws count as their effective sample size.
- The output of an SMC run has the weight Z, the run's estimate of the accepted mass. The outputs of R runs count as K,
  the effective sample size of these weights. All particles count as R / (v + 1/8), where v = R/K - 1 is the relative
  variance of Z. Without resampling, this is the effective sample size of all particles.

Effective sample sizes are optimistic. Draws that all miss a probable output have nearly equal weights, so their
effective sample size is large although their distribution is wrong. SMC particles also share ancestors, which the
variance of Z does not show. For the enumeration, the exact distribution is known, and the total variation of each
contender to it is compared with that of as many independent samples as it has effective samples.

    trialogue models pull smollm2
    python benchmarks/exact_requests.py --threads 1 [--model MODEL] [--schema SCHEMA ...] [--record]
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from json_requests import SCHEMAS, encoded_prompt, json_verifier
from record import Record
from trialogue.models.hub.pretrained import PretrainedOracle, load_pretrained
from trialogue.samplers import (
    AdaptiveRejection,
    MaskedDecoding,
    Samples,
    SequentialMonteCarlo,
    effective_sample_size,
    generate,
    total_variation,
)
from trialogue.verifiers import GrammarVerifier
from trialogue_lab.studies.constrained_law.distributions import simulate_sample_distance, sum_by_text
from trialogue_lab.studies.constrained_law.tree import explore

ATTEMPTS, PARTICLES = 32, 8
RATES = (
    ("exact", "effective"),
    ("exact", "effective by weights"),
    ("weighted", "effective"),
    ("SMC", "effective"),
    ("SMC", "effective particles"),
)


class Contender(NamedTuple):
    """Samples of one prompt, their normalised weights (n,) float64, and their effective number."""

    samples: Samples
    weights: Tensor
    effective: float

    @classmethod
    def weighted(cls, samples: Samples) -> "Contender":
        """Use the importance weights of the samples."""
        log_weight = samples.log_weight.masked_fill(~samples.accepted, -torch.inf)
        weights = log_weight.softmax(0).nan_to_num()  # all samples can have weight zero
        return cls(samples, weights, effective_sample_size(log_weight))

    @classmethod
    def exact(cls, samples: Samples) -> "Contender":
        """Count samples accepted in an attempt as one each, and use importance weights within the others."""
        fell = fell_back(samples)
        fallback = cls.weighted(samples[fell])
        weights = (~fell).double()
        weights[fell] = fallback.weights * fallback.effective
        return cls(samples, weights / weights.sum(), float(weights.sum()))


def fell_back(samples: Samples) -> Tensor:
    """Return for each exact sample (n,) whether it used up its attempts."""
    remarks = samples.remarks or [None] * len(samples)
    return torch.tensor([remark is not None for remark in remarks])


def measured(
    oracle: PretrainedOracle, prompts: list[list[int]], verifier: GrammarVerifier, options: argparse.Namespace
) -> Iterator[tuple[dict[tuple[str, str], float], dict[str, Contender]]]:
    """Yield the numbers of each prompt by sampler and statistic, and the weighted samples."""

    def run(prompts: list[list[int]], sampler: Any, number: int) -> Samples:
        return generate(
            oracle,
            prompts,
            sampler=sampler,
            verifier=verifier,
            num_samples=number,
            max_new_tokens=options.tokens,
            batch_size=64,
        )

    adaptive = AdaptiveRejection(max_attempts=ATTEMPTS, share=4, then="mask")
    every_exact = run(prompts, adaptive, options.samples)
    every_masked = run(prompts, MaskedDecoding(), options.samples)
    for index, prompt in enumerate(prompts):
        exact, masked = every_exact[every_exact.prompt == index], every_masked[every_masked.prompt == index]
        draws = float(exact.calls.sum() / masked.calls.double().mean())
        weighted = run([prompt], MaskedDecoding(), max(2, round(draws)))
        monte_carlo = SequentialMonteCarlo(PARTICLES, proposal="mask")
        smc = run([prompt], monte_carlo, max(2, round(draws / PARTICLES)))
        contenders = {
            "exact": Contender.exact(exact),
            "weighted": Contender.weighted(weighted),
            "SMC": Contender.weighted(smc),
        }
        numbers = {
            ("exact", "fell back"): float(fell_back(exact).double().mean()),
            ("exact", "effective by weights"): Contender.weighted(exact).effective,
            ("exact", "calls per output"): float(exact.calls.double().mean()),
            ("masked", "calls per output"): float(masked.calls.double().mean()),
            ("masked", "valid"): float(masked.accepted.double().mean()),
        }
        for sampler, contender in contenders.items():
            numbers[sampler, "samples"] = len(contender.samples)
            numbers[sampler, "calls"] = float(contender.samples.calls.sum())
            numbers[sampler, "effective"] = contender.effective
        size, runs = contenders["SMC"].effective, len(smc)
        numbers["SMC", "effective particles"] = runs / (runs / size - 1 + 1 / PARTICLES) if size else 0.0
        contenders["masked"] = Contender(
            weighted, weighted.accepted / weighted.accepted.double().sum(), len(weighted)
        )
        yield numbers, contenders


def distances(
    oracle: PretrainedOracle,
    prompt: list[int],
    verifier: GrammarVerifier,
    tokens: int,
    contenders: dict[str, Contender],
) -> dict[tuple[str, str], float]:
    """Return the total variation of each contender to the exact distribution of texts, and the sampling error."""
    text, numbers = oracle.tokenization.text, {}
    tree = explore(oracle, verifier, prompt, tokens, tolerance=0.02, max_prefixes=4000)
    target = sum_by_text(tree.restricted, text)
    for sampler, (samples, weights, effective) in contenders.items():
        shares: dict[str, float] = defaultdict(float)
        for completion, weight in zip(samples.completions(), weights.tolist(), strict=True):
            shares[text(completion)] += weight
        numbers[sampler, "total variation"] = total_variation(shares, target)
        numbers[sampler, "sampling error"] = simulate_sample_distance(
            target, target, max(1, round(effective)), 0
        )
    return numbers


def is_other(name: str, schema: str, row: dict[str, object]) -> bool:
    """Return whether a row is of another model or another schema."""
    return (row["contender"], row["schema"]) != (name, schema)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2", help="name or path of the model (default: smollm2)")
    parser.add_argument("--name", help="name of the model in the rows (default: --model)")
    parser.add_argument("--schema", choices=SCHEMAS, nargs="+", default=list(SCHEMAS), help="default: all")
    parser.add_argument("--samples", type=int, default=8, help="exact samples of each prompt (default: 8)")
    parser.add_argument("--tokens", type=int, default=64, help="largest number of new tokens (default: 64)")
    parser.add_argument("--threads", type=int, help="threads of torch (default: all cores)")
    parser.add_argument("--record", action="store_true", help="store the results in benchmarks/rows")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    oracle, name = load_pretrained(arguments.model, weights="auto"), arguments.name or arguments.model
    console = Console(width=140)
    columns = (
        "calls masked",
        "calls exact",
        "fell back",
        "exact",
        "by weights",
        "weighted",
        "SMC",
        "particles",
    )
    table = Table("schema", "example", *columns, title=f"{name}, effective samples per 1,000 calls")
    for schema in arguments.schema:
        subjects, properties, example = SCHEMAS[schema]
        verifier = json_verifier(properties, oracle.tokenization)
        record = Record("exact_requests")
        for has_example in (True, False):
            shown = example if has_example else None
            prompts = [encoded_prompt(oracle.tokenization, each, properties, shown) for each in subjects]
            per_prompt = []
            for prompt, (numbers, contenders) in zip(
                prompts, measured(oracle, prompts, verifier, arguments), strict=True
            ):
                if schema == "enumeration":
                    numbers |= distances(oracle, prompt, verifier, arguments.tokens, contenders)
                per_prompt.append(numbers)
            means = {key: sum(each[key] for each in per_prompt) / len(prompts) for key in per_prompt[0]}
            for sampler, what in RATES:
                means[sampler, f"{what} per 1,000 calls"] = (
                    1000 * means[sampler, what] / means[sampler, "calls"]
                )
            for (sampler, what), value in means.items():
                record.add(name, value, schema=schema, example=has_example, sampler=sampler, what=what)
            table.add_row(
                schema,
                "yes" if has_example else "no",
                *(f"{means[sampler, 'calls per output']:.0f}" for sampler in ("masked", "exact")),
                f"{means['exact', 'fell back']:.0%}",
                *(f"{means[sampler, f'{what} per 1,000 calls']:.1f}" for sampler, what in RATES),
            )
        console.print(table)
        if arguments.record:
            record.write(partial(is_other, name, schema))


if __name__ == "__main__":
    main()
