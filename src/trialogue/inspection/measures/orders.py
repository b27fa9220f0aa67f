"""Measure of which reveal order suits a masked model: the log-likelihood of a text under each order.

If the order depends only on revealed tokens, the sampler that reveals tokens in this order has a distribution of its
own. The log-likelihood of a text is the sum of the log-probabilities of its tokens in the passes that reveal them.

References:
    DUEL: exact likelihood of masked diffusion models under deterministic orders (arXiv 2603.01367).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.errors import InputError
from trialogue.inspection.measures.measure import Effort, Material, Report
from trialogue.inspection.measures.passages import PassageMeasure
from trialogue.inspection.measures.quantities import (
    Point,
    Quantity,
    curve_quantity,
    mean_point,
    single_quantity,
)
from trialogue.inspection.subject import Passages, Subject
from trialogue.oracles import Masked
from trialogue.randomness import derive_seed
from trialogue.samplers.unmasking.likelihood import text_log_probs
from trialogue.samplers.unmasking.ordered import Ordered
from trialogue.samplers.unmasking.orders import Confidence, Entropy, LeftToRight, Margin, Order, Random
from trialogue.samplers.unmasking.sizes import Fixed

LENGTH = 32
POSITIONS = (1, 2, 4, 8)
"""Numbers of positions per pass. A measurement uses those that are smaller than the passage."""
BLOCK = 8
RANDOM = "random order"
RevealOrders = Mapping[str, tuple[Order, int | None]]
"""Order and width of the blocks, by name."""
ORDERS: RevealOrders = {
    RANDOM: (Random(), None),
    "left to right": (LeftToRight(), None),
    "confidence": (Confidence(), None),
    "entropy": (Entropy(), None),
    "margin": (Margin(), None),
    f"confidence in blocks of {BLOCK}": (Confidence(), BLOCK),
}
"""All orders. A measurement uses those whose blocks are shorter than the passage."""
COMMAND_LENGTH = BLOCK
"""Number of tokens in the commands that `sampling_command` returns, which every measured model accepts."""
COMPARED = f"difference from {RANDOM}, "
"""Beginning of the names of the differences from random order."""
COST = f"cost of {RANDOM}"
"""Name of the decrease of the log-likelihood by several tokens per pass instead of one."""
_ROWS = 16
_UNIT = "nats per token"


def order_log_probs(
    model: Masked,
    tokens: Tensor,
    masked: Tensor,
    positions: int,
    seed: int,
    orders: RevealOrders = ORDERS,
) -> dict[str, NDArray[np.float64]]:
    """Return the log-likelihood of each text under each order, in nats per masked token.

    Args:
        model: The masked model.
        tokens: Texts (rows, length) int64.
        masked: Positions (rows, length) bool that are masked and revealed again, at least one per row.
        positions: Number of positions per pass.
        seed: Seed of the random order. Its value is the log-probability of the text given the drawn order.
        orders: Order and width of the blocks, by name (default: all orders).

    Returns:
        Values (rows,) by the name of the order.
    """
    prompts, count = tokens.masked_fill(masked, -1), masked.sum(1).cpu().numpy()
    samplers = {
        name: Ordered(order, Fixed(positions), blocks=blocks) for name, (order, blocks) in orders.items()
    }
    return {
        name: text_log_probs(sampler, model, tokens, prompts, seed=seed).cpu().numpy() / count
        for name, sampler in samplers.items()
    }


def sampling_command(model: str, order: str, positions: int) -> str:
    """Return a `trialogue generate` command that samples a short text in an order.

    Args:
        model: Hugging Face id or folder of the model.
        order: Name of an order in `ORDERS`.
        positions: Number of positions per pass.
    """
    name = order.removesuffix(" order").partition(" in blocks")[0].replace(" ", "-")
    blocks = ORDERS[order][1]
    settings = json.dumps({"positions": positions} | ({"blocks": blocks} if blocks else {}))
    words = ("trialogue", "generate", "--model", model, "--prompt", "")
    sampler = f"unmasking:{name}:{settings}"
    return shlex.join([*words, "--max-new-tokens", str(COMMAND_LENGTH), "--sampler", sampler])


class RevealOrder(PassageMeasure):
    """Measure of which reveal order gives a text the highest log-likelihood.

    The tokens of a text are masked, and revealed again in an order, with the tokens of the text.
    """

    question = "Which reveal order suits the model?"
    reading = (
        f"Passages of {LENGTH} tokens, or of the maximum length of a model with fewer, are masked and revealed again. "
        "The log-likelihood is the logarithm of the probability with which a sampler would produce the passage. "
        f"“Difference from {RANDOM}” compares an order with {RANDOM} at the same number of tokens per pass. If it is "
        f"positive, the text is more probable in this order. “Cost of {RANDOM}” is the decrease of the log-likelihood "
        f"by several tokens per pass instead of one. For {RANDOM}, each passage has one order drawn in advance. The "
        "mean of its log-likelihood is at most that of the sampler that draws its own order. Do not take the best "
        "order of each passage, because the highest of several likelihoods belongs to no distribution. With random "
        "weights, all orders are nearly equal. The intervals of all differences and costs are joint: with a "
        "probability of 95 %, all of them contain the true values. They are over documents."
    )
    kinds = ("masked",)
    length, least_length, rows = LENGTH, BLOCK, _ROWS
    stream = ("orders", "passages")

    def refusal(self, subject: Subject, material: Material) -> str | None:
        """Return the reason why the measure does not apply, or None if it applies.

        Args:
            subject: Model to measure.
            material: Available texts. Samples of the model cannot replace them.
        """
        reason = super().refusal(subject, material)
        if reason and subject.kind in self.kinds and not material.has(self.needs):
            reason += ", because samples of the model would favour the order in which they were revealed"
        return reason

    def count_tokens(self, subject: Subject, material: Material, effort: Effort) -> int:
        """Return the number of tokens of all passes over the passages, for each order and number per pass.

        Args:
            subject: Model to measure.
            material: Texts on which the model is evaluated.
            effort: Sample sizes and seed.
        """
        length = self.passage_length(subject)
        passes = sum(-(-length // positions) for positions in POSITIONS if positions < length)
        width = length + sum(map(len, subject.frame))
        return len(_orders_within(length)) * passes * effort.rows(self.rows) * width

    def take(self, subject: Subject, material: Material, effort: Effort, report: Report) -> list[Quantity]:
        """Compute the log-likelihood of passages under each order.

        Tokens that the model never predicts, such as unknown words, are not masked.

        Args:
            subject: Masked model.
            material: Text from which the passages are sampled.
            effort: Number of passages and seed.
            report: Called with progress messages.

        Returns:
            A single number, the log-likelihood in random order with one token per pass. Curves over the number of
            tokens per pass: the cost of several tokens in random order, and the difference of each order from it.

        Raises:
            InputError: If the text has too few passages, or the model predicts none of their tokens.
        """
        passages = self.sample_passages(subject, material, effort)
        tokens, first = subject.framed(passages.tokens, end=True), len(subject.frame[0])
        masked = torch.zeros_like(tokens, dtype=torch.bool)
        masked[:, first : first + passages.tokens.shape[1]] = True
        masked &= subject.masked.proposable(tokens)
        usable = masked.any(1)
        if not bool(usable.any()):
            raise InputError("model", subject.name, "it predicts none of the tokens of the text")
        tokens, masked = tokens[usable], masked[usable]
        documents = Passages(passages.tokens[usable], passages.documents[usable.numpy()])
        length = passages.tokens.shape[1]
        found: dict[int, dict[str, NDArray[np.float64]]] = {}
        for positions in (positions for positions in POSITIONS if positions < length):
            report(f"{positions} {'token' if positions == 1 else 'tokens'} per pass")
            values = _evaluate(subject, tokens, masked, positions, effort.seed, _orders_within(length))
            found[positions] = {name: documents.document_means(one) for name, one in values.items()}
        differences = {
            name: {positions: values[name] - values[RANDOM] for positions, values in found.items()}
            for name in found[1]
            if name != RANDOM
        }
        costs = {
            positions: found[1][RANDOM] - found[positions][RANDOM] for positions in found if positions > 1
        }
        together = len(costs) + sum(map(len, differences.values()))

        def points(values: Mapping[int, NDArray[np.float64]]) -> Iterable[Point]:
            return (mean_point(one, at, intervals=together) for at, one in values.items())

        return [
            single_quantity(
                f"log-likelihood of {length} tokens in {RANDOM}, one token per pass",
                mean_point(found[1][RANDOM]),
                unit=_UNIT,
                finding=(
                    f"In {RANDOM} with one token per pass, passages of {length} tokens have a log-likelihood of {{}} "
                    f"{_UNIT}"
                ),
            ),
            _list_points(COST, points(costs), "tokens per pass instead of one"),
            *(
                _list_points(f"{COMPARED}{name}", points(values), "tokens per pass")
                for name, values in differences.items()
            ),
        ]


def _list_points(name: str, points: Iterable[Point], along: str) -> Quantity:
    """Return a curve all of whose points are in the table."""
    return replace(curve_quantity(name, points, along, unit=_UNIT), lists_points=True)


def _orders_within(length: int) -> RevealOrders:
    """Return the orders whose blocks are shorter than a passage. Longer blocks change nothing."""
    return {name: one for name, one in ORDERS.items() if one[1] is None or one[1] < length}


def _evaluate(
    subject: Subject, tokens: Tensor, masked: Tensor, positions: int, seed: int, orders: RevealOrders
) -> dict[str, NDArray[np.float64]]:
    """Return `order_log_probs` of all passages, in batches that fit into memory."""
    sizes = [len(batch) for batch in subject.batches(tokens)]
    found = [
        order_log_probs(subject.masked, *parts, positions, derive_seed(seed, "orders", number), orders)
        for number, parts in enumerate(zip(tokens.split(sizes), masked.split(sizes), strict=True))
    ]
    return {name: np.concatenate([one[name] for one in found]) for name in orders}
