"""Settings of the study: random trees, questions to a chat model, and budgets."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from trialogue_lab.ledger import Count, Seeds, Settings


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run, which measures exact samplers under constraints.

    `AdaptiveRejection` rejects outputs that violate a constraint. It stores the rejected prefixes in a table, and never
    samples them again.

    Args:
        model: Name of the language model. Empty for random models with a few letters, which tests use.
        tree_seeds: Seeds of the random trees, on which half of the outputs are allowed on average.
        rare_tree_seeds: Seeds of the larger random trees, on which only four outputs are allowed.
        history: Number of successive samples on a tree that share one table, before the last measured sample.
        seeds: Seeds of the questions. Each seed selects one question per kind of constraint of `constrained-law`.
        outputs: Number of successive outputs for a question that share one table.
        first_outputs: Number of outputs for a question that each start from an empty table.
        max_new_tokens: Maximum number of tokens of an answer to a question.
        request_seeds: Seeds of the requests for JSON. Each seed selects one request per schema.
        round_size: Number of outputs for a request that start from an empty table. A second round of as many outputs
            starts from their tables.
        max_attempts: Number of rejected attempts after which an output for a request fails.
        request_tokens: Maximum number of tokens of an answer to a request.
    """

    model: str = "smollm2"
    tree_seeds: Seeds = tuple(range(30))
    rare_tree_seeds: Seeds = tuple(range(9))
    history: Annotated[int, Ge(2)] = 40
    seeds: Seeds = tuple(range(8))
    outputs: Annotated[int, Ge(2)] = 64
    first_outputs: Count = 8
    max_new_tokens: Count = 28
    request_seeds: Seeds = tuple(range(6))
    round_size: Count = 4
    max_attempts: Count = 32
    request_tokens: Count = 40


PRESETS = {
    "smoke": Config(
        model="",
        tree_seeds=(1,),
        rare_tree_seeds=(0,),
        history=4,
        seeds=(0,),
        outputs=8,
        max_new_tokens=5,
        request_seeds=(0,),
        request_tokens=5,
    ),
    "pilot": Config(
        tree_seeds=(100, 101),
        rare_tree_seeds=(100, 101),
        seeds=(100, 101),
        outputs=16,
        request_seeds=(100, 101),
        round_size=2,
    ),
    "default": Config(),
    "night": Config(seeds=tuple(range(200, 240)), request_seeds=tuple(range(200, 230))),
}
