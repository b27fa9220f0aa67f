"""Tasks of a run. Each task trains one network, and completes puzzles in several orders at several training steps."""

from functools import partial
from pathlib import Path
from typing import get_args

from trialogue import unmask
from trialogue.models import MaskedTransformer, Transformer, TransformerConfig
from trialogue.oracles import Masked
from trialogue.randomness import derive_seed
from trialogue.samplers.unmasking import Confidence, Entropy, Fixed, LeftToRight, Margin, Ordered, Random
from trialogue.training import (
    AnyCount,
    Scheduled,
    TrainingConfig,
    Update,
    masked_batches,
    masked_token_loss,
    train,
)
from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.unmasking_trained.config import Config, Task
from trialogue_lab.studies.unmasking_trained.puzzles import Material, make_material

ORDERS = {
    "random": Random(),
    "left to right": LeftToRight(),
    "confidence": Confidence(),
    "entropy": Entropy(),
    "margin": Margin(),
}
_WARMUP = 50
"""Largest number of steps over which the learning rate rises."""


def parts(config: Config) -> list[Part]:
    """Return the tasks of a run: one per seed and task of the networks.

    Args:
        config: Settings of the run.
    """
    return [
        Part(f"{task}-{seed}", partial(_measure, config, task, seed), columns={"seed": seed, "task": task})
        for seed in config.seeds
        for task in get_args(Task)
    ]


def _measure(config: Config, task: Task, seed: int, _: Path) -> MeasuredRows:
    material = make_material(config, task, seed)
    steps, stream = config.steps(task), derive_seed(seed, "unmasking-trained", task, "network")
    network = Transformer(
        TransformerConfig(
            vocab_size=material.vocab_size,
            layers=config.layers,
            width=config.width,
            mlp_width=4 * config.width,
            max_length=material.training.shape[1],
            causal=False,
        ),
        stream,
    )
    training = TrainingConfig(
        steps=steps[-1],
        batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        warmup_steps=min(_WARMUP, steps[-1] // 4),
        seed=stream,
        bf16=False,
    )
    rows = list[dict[str, object]]()

    def test(update: Update) -> None:
        last = update.step == steps[-1]
        found = count_solved(MaskedTransformer(network), material, config.sizes, stream, last)
        rows.extend({"step": update.step, "loss": float(update.loss), **row} for row in found)

    batches = masked_batches(
        material.training, network, AnyCount(material.prompt), batch_size=config.batch_size, seed=stream
    )
    train(network, batches, training, loss=masked_token_loss, observer=Scheduled(steps, test), progress=False)
    yield from rows


def count_solved(
    model: Masked, material: Material, sizes: tuple[int, ...], seed: int, last: bool
) -> MeasuredRows:
    """Complete the test puzzles of a task in every order, and count the right solutions.

    Held-out puzzles are completed with one token per pass at temperature 0. After the last training step, they are also
    completed with several tokens per pass, and at temperature 1, and puzzles of training sequences are completed.

    Args:
        model: The masked model.
        material: Data of the task.
        sizes: Numbers of tokens per pass after the last training step.
        seed: Seed of the samples.
        last: Whether the training has ended.

    Yields:
        One row per kind of puzzle, temperature, number of tokens per pass, and order.
    """
    settings = [("held out", 0.0, 1)]
    if last:
        settings += [("held out", 0.0, size) for size in sizes if size > 1]
        settings += [("held out", 1.0, 1), ("seen", 0.0, 1)]
    for puzzles, temperature, size in settings:
        prompts, solutions = material.tests[puzzles]
        for name, order in ORDERS.items():
            sampler = Ordered(order, Fixed(size), temperature=temperature)
            samples = unmask(model, sampler, prompts, seed=seed, batch_size=len(prompts))
            yield {
                "kind": "solved",
                "puzzles": puzzles,
                "temperature": temperature,
                "size": size,
                "order": name,
                "solved": int((samples.tokens == solutions).all(1).sum()),
                "tests": len(prompts),
            }
