"""Verifiers: their training examples, their training, and a verifier that evaluates test cases exactly.

A verifier classifies prefixes of completions as correct or erroneous (thesis section 3.2.2.6). For an
incorrect completion, the examples are the prefix up to the first wrong token and a random earlier prefix.
Blockwise examples end with the last newline before the error and with the first newline after it.
"""

import json
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.models.hub.pretrained import PretrainedOracle, load_pretrained
from trialogue.models.networks.probe import hidden_states_of_prefixes
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Decoding, Verifier
from trialogue.randomness import derive_seed, numpy_generator
from trialogue.samplers import generate, truncated
from trialogue.storage import atomic_write
from trialogue.tensor_files import read_tensors, write_tensors
from trialogue.training.probes.grid import TrainedProbe, train_probe
from trialogue_lab.data.list_append.cases import CaseError, evaluate
from trialogue_lab.ledger import record_model
from trialogue_lab.studies.test_cases.config import MeasuredModel
from trialogue_lab.studies.test_cases.surrogate import PieceTokens, Surrogate, train_surrogate

Kind = Literal["token", "block"]
TextTokens = Tokenization | PieceTokens
TextOracle = Surrogate | PretrainedOracle
"""A language model with a tokenization."""

_STATES = "test-cases states 1"
_LOADED: dict[tuple[str, str, str], PretrainedOracle] = {}


class Completion(NamedTuple):
    """A completion of a prompt.

    Attributes:
        name: Name of the target function.
        tokens: Tokens of the prompt and the completion.
        start: Number of tokens of the prompt.
        ended: Whether the last token is the end of sequence.
    """

    name: str
    tokens: list[int]
    start: int
    ended: bool


def load_oracle(subject: MeasuredModel, seed: int, artifacts: Path) -> TextOracle:
    """Return the language model of a repetition.

    A process loads a pretrained model once for all repetitions. A model from scratch is trained if it is not in
    `artifacts`.

    Args:
        subject: The model.
        seed: Seed of the repetition.
        artifacts: Folder of trained models.
    """
    if subject.is_surrogate:
        return train_surrogate(subject.cases, subject.training_steps, seed, artifacts)
    key = (subject.model, subject.dtype, subject.weights)
    if key not in _LOADED:
        _LOADED.clear()
        _LOADED[key] = load_pretrained(subject.model, dtype=subject.dtype, weights=subject.weights)
    record_model(_LOADED[key].describe())
    return _LOADED[key]


def collect_completions(subject: MeasuredModel, seed: int, artifacts: Path) -> list[Completion]:
    """Generate the completions on which the verifiers of a repetition are trained, or load them from `artifacts`.

    An incorrect completion ends with the line of its first error, since the rest is not used for training.

    Args:
        subject: The language model and the sizes of its measurements.
        seed: Seed of the repetition.
        artifacts: Folder of models and completions.
    """
    path = artifacts / f"completions-{seed}.json"
    if not path.exists():
        oracle, prompts = load_oracle(subject, seed, artifacts), subject.training_prompts_of(seed)
        samples = generate(
            truncated(oracle, top_p=0.95),
            [prompt for _, prompt in prompts],
            num_samples=subject.training_runs,
            max_new_tokens=subject.max_new_tokens,
            batch_size=subject.batch_size,
            stop=stop_after_first_error({name for name, _ in prompts}, oracle.tokenization, subject.cases),
            seed=derive_seed(seed, "training completions"),
        )
        rows = zip(samples.sequences(), samples.prompt.tolist(), samples.prompt_lengths.tolist(), strict=True)
        completions = [
            Completion(prompts[prompt][0], list(tokens), start, tokens[-1] == oracle.eos)
            for tokens, prompt, start in rows
        ]
        atomic_write(path, json.dumps(completions))
    return [Completion(*fields) for fields in json.loads(path.read_text(encoding="utf-8"))]


def stop_after_first_error(
    names: set[str], tokenization: TextTokens, cases: int
) -> Callable[[Sequence[int]], bool]:
    """Return a function that stops a completion after the line with its first error.

    The function has no access to the prompt. A completion therefore continues if it is correct for any of the names.

    Args:
        names: Names of all target functions.
        tokenization: Tokenization of the completions.
        cases: Number of requested test cases.
    """
    newlines = set(tokenization.tokens_ending_with("\n").tolist())

    def has_error(completion: Sequence[int]) -> bool:
        if not completion or completion[-1] not in newlines:
            return False
        text = tokenization.text(completion, final=False)
        return all(evaluate(text, name, cases, final=False).error is not None for name in names)

    return has_error


class Examples(NamedTuple):
    """Training examples of a verifier: prefixes of token sequences, each with a label.

    `hidden_states_of_prefixes` accepts sequences and lengths in this format.

    Attributes:
        sequences: Token ids of each prompt with its completion.
        lengths: For each sequence, the lengths of the prefixes that are examples.
        labels: Label of each prefix, 1 for correct and 0 for erroneous.
    """

    sequences: list[list[int]]
    lengths: list[list[int]]
    labels: list[int]


def find_token(position: int, stops: Sequence[int]) -> int:
    """Return the index of the token that contains a character.

    Args:
        position: Index of the character. It may exceed the text, if a completion ends too early.
        stops: Number of characters up to the end of each token.

    Returns:
        Index of the token, at most the last one.
    """
    return min(bisect_right(stops, position), len(stops) - 1)


def make_examples(
    completions: Sequence[Completion],
    tokenization: TextTokens,
    cases: int,
    kind: Kind,
    random: np.random.Generator,
) -> Examples:
    """Return labeled prefixes of completions with test cases, on which a verifier is trained.

    Completions with content after their last test case are skipped. Erroneous completions without a correct prefix
    before their error are also skipped, so that the classes stay balanced.

    Args:
        completions: Completions of prompts for `cases` test cases.
        tokenization: Tokenization of the completions.
        cases: Number of requested test cases.
        kind: "token" for prefixes that end at any token, or "block" for prefixes that end with a line.
        random: Generator for the choice of correct prefixes.
    """
    examples = Examples([], [], [])
    for completion in completions:
        tokens = completion.tokens[completion.start :]
        text = tokenization.text(tokens)
        evaluation = evaluate(text, completion.name, cases, final=completion.ended)
        if evaluation.error == CaseError.EXTRA_CONTENT_AFTER_TASK_COMPLETION or not tokens:
            continue
        stops = [len(tokenization.text(tokens[:stop], final=False)) for stop in range(1, len(tokens) + 1)]
        if kind == "token":
            chosen = _make_tokenwise_examples(evaluation.position, stops, random)
        else:
            chosen = _make_blockwise_examples(text, evaluation.position, stops, random)
        if chosen:
            examples.sequences.append(completion.tokens)
            examples.lengths.append([completion.start + token + 1 for token, _ in chosen])
            examples.labels.extend(label for _, label in chosen)
    return examples


def _make_tokenwise_examples(
    position: int, stops: Sequence[int], random: np.random.Generator
) -> list[tuple[int, int]]:
    """Return the tokenwise training examples in a completion, as pairs (index of the last token, label).

    `position` is the index of the first wrong character, or negative if there is none. Label 1 means correct.
    """
    wrong = len(stops) if position < 0 else find_token(position, stops)
    if wrong == 0:
        return []
    before = (int(random.integers(wrong)), 1)
    return [before] if position < 0 else [before, (wrong, 0)]


def _make_blockwise_examples(
    text: str, position: int, stops: Sequence[int], random: np.random.Generator
) -> list[tuple[int, int]]:
    """Return the training examples that end with a line, as pairs (index of the last token, label).

    `position` is the index of the first wrong character, or negative if there is none. Label 1 means correct.
    """
    newlines = [place for place, character in enumerate(text) if character == "\n"]
    if position < 0:
        return [(find_token(newlines[random.integers(len(newlines))], stops), 1)] if newlines else []
    before = [place for place in newlines if place < position]
    after = [place for place in newlines if place >= position]
    if not before or not after:
        return []
    correct, wrong = find_token(before[-1], stops), find_token(after[0], stops)
    return [(correct, 1), (wrong, 0)] if correct < wrong else []


def compute_states(subject: MeasuredModel, seed: int, kind: Kind, artifacts: Path) -> tuple[Tensor, Tensor]:
    """Compute hidden states of the training examples of a verifier, or load them from `artifacts`.

    Args:
        subject: The language model and the sizes of its measurements.
        seed: Seed of the repetition.
        kind: "token" for prefixes that end at any token, or "block" for prefixes that end with a line.
        artifacts: Folder of models, completions and hidden states.

    Returns:
        Hidden states (n, layers, width), and labels (n,) that are 1 for correct and 0 for erroneous prefixes.

    Raises:
        InputError: If all examples have the same label.
    """
    path = artifacts / f"states-{kind}-{seed}.safetensors"
    if path.exists():
        stored, _ = read_tensors(path, _STATES, "remove it, so that the states are computed again")
        return stored["states"], stored["labels"]
    oracle, completions = load_oracle(subject, seed, artifacts), collect_completions(subject, seed, artifacts)
    random = numpy_generator(seed, "examples", kind)
    examples = make_examples(completions, oracle.tokenization, subject.cases, kind, random)
    if len(set(examples.labels)) < 2:
        hint = f"all {len(examples.labels)} examples of a verifier have the same label. Use a larger number of runs"
        raise InputError("training_runs", subject.training_runs, hint)
    states = hidden_states_of_prefixes(oracle, examples.sequences, examples.lengths, subject.layers)
    labels = torch.tensor(examples.labels)
    write_tensors(path, _STATES, {"states": states, "labels": labels}, {})
    return states, labels


def train_verifier(
    subject: MeasuredModel, seed: int, kind: Kind, layer: int, depth: int, artifacts: Path
) -> TrainedProbe:
    """Train a verifier, a classifier of prefixes, on the hidden states of one layer.

    Args:
        subject: The language model and the sizes of its measurements.
        seed: Seed of the repetition.
        kind: "token" for prefixes that end at any token, or "block" for prefixes that end with a line.
        layer: Layer of the hidden states.
        depth: Number of layers of the verifier.
        artifacts: Folder of models, completions and hidden states.
    """
    states, labels = compute_states(subject, seed, kind, artifacts)
    place = subject.layers.index(layer)
    config = subject.probe(derive_seed(seed, "probe", kind), depth)
    return train_probe(states[:, place].contiguous(), labels, config)


class GroundTruth(Verifier):
    """Verifier that accepts a completion as long as it contains no error (Table 3.12).

    It parses the test cases and evaluates them exactly, without running code.
    """

    most = 1.0

    def __init__(
        self, names: Mapping[tuple[int, ...], str], tokenization: TextTokens, cases: int, eos: int | None
    ) -> None:
        self._names, self._tokenization, self._cases, self._eos = names, tokenization, cases, eos

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """Return 1 for each completion without an error so far, and 0 for the others.

        Args:
            decoding: The sequences being generated.
            rows: Indices (n,) of the sequences to evaluate.

        Returns:
            Values (n,) float64.
        """
        verdicts = []
        starts, lengths = decoding.start[rows].tolist(), decoding.lengths[rows].tolist()
        for tokens, start, length in zip(decoding.tokens[rows].tolist(), starts, lengths, strict=True):
            completion = tokens[start:length]
            ended = bool(completion) and completion[-1] == self._eos
            text = self._tokenization.text(completion, final=False)
            name = self._names[tuple(tokens[:start])]
            error = evaluate(text, name, self._cases, final=ended).error
            verdicts.append(error in (None, CaseError.EXTRA_CONTENT_AFTER_TASK_COMPLETION))
        return torch.tensor(verdicts, dtype=torch.float64)
