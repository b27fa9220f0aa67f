"""Lines of the study's tables: what is measured of a decoding with either model, and labels for settings."""

import math
from collections.abc import Callable, Mapping

from trialogue_lab.ledger import Cells, ResultTable, Rows, Statistic
from trialogue_lab.studies.test_cases.decodings import DecodingRule
from trialogue_lab.studies.test_cases.published import PUBLISHED
from trialogue_lab.studies.test_cases.statistics import measured, per_query
from trialogue_lab.studies.test_cases.subjects import ROLES, Role
from trialogue_lab.studies.test_cases.twins import THESIS

HEAD = "distinct accuracy"
VALIDATED = "validation accuracy"
_SPREAD = "± one standard deviation over repetitions"
DEVIATIONS = (
    "the thesis runs CodeLlama-7B on prompts without a demonstration of the target function, with 8 cases of at most "
    "384 tokens; but in the preset paper ours is a smaller model whose prompts hold one demonstration, with 4 cases of "
    "at most 96 tokens; from scratch: a model of two blocks that learned flawed completions alone"
)


def headed(head: str, role: Role) -> str:
    """The head of a column for one of the models."""
    return head if role == "pretrained" else f"{head}, from scratch"


def line(decoding: DecodingRule, roles: tuple[Role, ...] = ROLES) -> dict[str, Statistic]:
    """What is measured of a decoding, with either model."""
    return {
        headed(head, role): quantity
        for role in roles
        for head, quantity in (
            (HEAD, measured(decoding, role=role)),
            ("queries", measured(decoding, "queries", role)),
            ("distinct correct per 100 queries", per_query(decoding, role)),
        )
    }


def lines(decodings: Mapping[str, DecodingRule]) -> dict[str, dict[str, Statistic]]:
    """A line of each decoding, by its label."""
    return {label: line(decoding) for label, decoding in decodings.items()}


def table(
    title: str,
    source: str,
    decodings: Mapping[str, DecodingRule],
    note: str = "",
    cells: Cells | Callable[[Rows], Cells] | None = None,
    accuracies: Mapping[str, float] | None = None,
) -> ResultTable:
    """Our numbers of `decodings`, or `cells`, beside the thesis' and its validation `accuracies`, by label."""
    published = {}
    for label, decoding in decodings.items():
        accuracy, queries = PUBLISHED[decoding]
        printed = {HEAD: accuracy, "queries": queries, VALIDATED: (accuracies or {}).get(label, math.nan)}
        published[label] = {head: number for head, number in printed.items() if not math.isnan(number)}
    return ResultTable(
        title=title,
        source=f"{THESIS}, {source}",
        cells=cells or lines(decodings),
        published=published,
        note="; ".join(filter(None, (_SPREAD, note, DEVIATIONS))),
    )


def setting(decoding: DecodingRule) -> str:
    """A label that says how a decoding with or without a trained verifier draws."""
    head = "no verifier" if decoding.judge == "none" else f"Q = {decoding.quota}, B = {decoding.stride}"
    tail = f", below {decoding.threshold}" if decoding.quota else ""
    return f"{head}, top-p {decoding.top_p}, T = {decoding.temperature}{tail}"


def layer_label(layer: int, threshold: float, network: str) -> str:
    """A label for the verifier on one layer of a network; -1 is the last."""
    return f"{'last layer' if layer < 0 else f'layer {layer}'}, below {threshold}, {network}"
