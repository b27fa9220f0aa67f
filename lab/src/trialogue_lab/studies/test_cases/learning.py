"""The verifiers of a repetition: the completions that they learn from, their training, and the evaluator as a verifier.

Thesis section 3.2.2.6. Tokenwise: the prefix that ends in the first wrong token is an example of an error, and one
that ends at a token drawn before it, or anywhere in a correct completion, of a correct prefix. Block-wise: the prefixes
that end at the newlines after and before the error.
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
from trialogue.models.pretrained import PretrainedOracle, load_pretrained
from trialogue.models.probe import hidden_states_of_prefixes
from trialogue.models.tokenization import Tokenization
from trialogue.oracles import Decoding, Verifier
from trialogue.randomness import numpy_generator, seed_of
from trialogue.samplers import generate, truncated
from trialogue.storage import atomic_write
from trialogue.tensor_files import read_tensors, write_tensors
from trialogue.training.probes import TrainedProbe, train_probe
from trialogue_lab.data.list_append.cases import CaseError, evaluate
from trialogue_lab.ledger import note_model
from trialogue_lab.studies.test_cases.config import Subject
from trialogue_lab.studies.test_cases.surrogate import PieceTokens, Surrogate, trained_surrogate

Kind = Literal["token", "block"]
TextTokens = Tokenization | PieceTokens
TextOracle = Surrogate | PretrainedOracle
"""An oracle whose tokens are text."""

_STATES = "test-cases states 1"
_LOADED: dict[tuple[str, str, str], PretrainedOracle] = {}


class Completion(NamedTuple):
    """A completion as tokens, `start` of which are the prompt's; `ended` says that its last is the end of sequence."""

    name: str
    tokens: list[int]
    start: int
    ended: bool


def oracle_of(subject: Subject, seed: int, artifacts: Path) -> TextOracle:
    """The language model of a repetition; a pretrained one is the same in all, and loaded once in one process."""
    if subject.is_surrogate:
        return trained_surrogate(subject.cases, subject.training_steps, seed, artifacts)
    key = (subject.model, subject.dtype, subject.weights)
    if key not in _LOADED:
        _LOADED.clear()
        _LOADED[key] = load_pretrained(subject.model, dtype=subject.dtype, weights=subject.weights)
    note_model(_LOADED[key].described())
    return _LOADED[key]


def collected(subject: Subject, seed: int, artifacts: Path) -> list[Completion]:
    """Completions for the verifiers of a repetition to learn from, from `artifacts` if they are there.

    Each ends with the line that holds its first error, if it has one: nothing is learned from what follows.
    """
    path = artifacts / f"completions-{seed}.json"
    if not path.exists():
        oracle, prompts = oracle_of(subject, seed, artifacts), subject.training_prompts_of(seed)
        samples = generate(
            truncated(oracle, top_p=0.95),
            [prompt for _, prompt in prompts],
            num_samples=subject.training_runs,
            max_new_tokens=subject.max_new_tokens,
            batch_size=subject.batch_size,
            stop=after_first_error({name for name, _ in prompts}, oracle.tokenization, subject.cases),
            seed=seed_of(seed, "training completions"),
        )
        rows = zip(samples.sequences(), samples.prompt.tolist(), samples.prompt_lengths.tolist(), strict=True)
        completions = [
            Completion(prompts[prompt][0], list(tokens), start, tokens[-1] == oracle.eos)
            for tokens, prompt, start in rows
        ]
        atomic_write(path, json.dumps(completions))
    return [Completion(*fields) for fields in json.loads(path.read_text(encoding="utf-8"))]


def after_first_error(
    names: set[str], tokenization: TextTokens, cases: int
) -> Callable[[Sequence[int]], bool]:
    """Whether a completion has ended the line of its first error, whichever of `names` its prompt asked for.

    A completion that is in order for one of the names goes on: the rule does not see the prompt.
    """
    newlines = set(tokenization.tokens_ending_with("\n").tolist())

    def erred(completion: Sequence[int]) -> bool:
        if not completion or completion[-1] not in newlines:
            return False
        text = tokenization.text(completion, final=False)
        return all(evaluate(text, name, cases, final=False).error is not None for name in names)

    return erred


class Examples(NamedTuple):
    """Prefixes by sequence, as `hidden_states_of_prefixes` takes them, and a label for each: 1 is correct."""

    sequences: list[list[int]]
    lengths: list[list[int]]
    labels: list[int]


def token_of(position: int, stops: Sequence[int]) -> int:
    """Index of the token that holds character `position`, where the text of token i ends before `stops[i]`.

    The last token where the position lies beyond all of them, as that of a completion that ends too early does.
    """
    return min(bisect_right(stops, position), len(stops) - 1)


def examples_of(
    completions: Sequence[Completion],
    tokenization: TextTokens,
    cases: int,
    kind: Kind,
    draw: np.random.Generator,
) -> Examples:
    """The examples that `completions` of prompts for `cases` test cases give.

    Completions that go on after their last case are skipped, as are those whose error leaves no correct prefix: the
    classes stay balanced.
    """
    examples = Examples([], [], [])
    for completion in completions:
        written = completion.tokens[completion.start :]
        text = tokenization.text(written)
        found = evaluate(text, completion.name, cases, final=completion.ended)
        if found.error == CaseError.EXTRA_CONTENT_AFTER_TASK_COMPLETION or not written:
            continue
        # Where the text of each prefix ends, in characters.
        stops = [len(tokenization.text(written[:stop], final=False)) for stop in range(1, len(written) + 1)]
        if kind == "token":
            chosen = _tokenwise(found.position, stops, draw)
        else:
            chosen = _blockwise(text, found.position, stops, draw)
        if chosen:
            examples.sequences.append(completion.tokens)
            examples.lengths.append([completion.start + token + 1 for token, _ in chosen])
            examples.labels.extend(label for _, label in chosen)
    return examples


def _tokenwise(position: int, stops: Sequence[int], draw: np.random.Generator) -> list[tuple[int, int]]:
    """Tokens that end an example, first to last, with their labels."""
    wrong = len(stops) if position < 0 else token_of(position, stops)
    if wrong == 0:
        return []
    before = (int(draw.integers(wrong)), 1)
    return [before] if position < 0 else [before, (wrong, 0)]


def _blockwise(
    text: str, position: int, stops: Sequence[int], draw: np.random.Generator
) -> list[tuple[int, int]]:
    """Tokens that end an example, first to last, with their labels."""
    newlines = [place for place, character in enumerate(text) if character == "\n"]
    if position < 0:
        return [(token_of(newlines[draw.integers(len(newlines))], stops), 1)] if newlines else []
    before = [place for place in newlines if place < position]
    after = [place for place in newlines if place >= position]
    if not before or not after:
        return []
    correct, wrong = token_of(before[-1], stops), token_of(after[0], stops)
    return [(correct, 1), (wrong, 0)] if correct < wrong else []


def states_of(subject: Subject, seed: int, kind: Kind, artifacts: Path) -> tuple[Tensor, Tensor]:
    """Hidden states (n, layers, width) and labels (n,) of the verifiers' examples, kept in `artifacts`."""
    path = artifacts / f"states-{kind}-{seed}.safetensors"
    if path.exists():
        kept, _ = read_tensors(path, _STATES, "remove it, so that the states are computed again")
        return kept["states"], kept["labels"]
    oracle, completions = oracle_of(subject, seed, artifacts), collected(subject, seed, artifacts)
    draw = numpy_generator(seed, "examples", kind)
    examples = examples_of(completions, oracle.tokenization, subject.cases, kind, draw)
    if len(set(examples.labels)) < 2:
        hint = f"they hold {len(examples.labels)} examples of one kind only: draw more"
        raise InputError("training_runs", subject.training_runs, hint)
    states = hidden_states_of_prefixes(oracle, examples.sequences, examples.lengths, subject.layers)
    labels = torch.tensor(examples.labels)
    write_tensors(path, _STATES, {"states": states, "labels": labels}, {})
    return states, labels


def trained_verifier(
    subject: Subject, seed: int, kind: Kind, layer: int, depth: int, artifacts: Path
) -> TrainedProbe:
    """A verifier's probe on one layer, trained on all its examples but those held out."""
    states, labels = states_of(subject, seed, kind, artifacts)
    place = subject.layers.index(layer)
    config = subject.probe(seed_of(seed, "probe", kind), depth)
    return train_probe(states[:, place].contiguous(), labels, config)


class GroundTruth(Verifier):
    """Whether a completion is free of errors so far: the evaluator as a verifier (thesis Table 3.12).

    `names` maps the tokens of each prompt to the name of its target function.
    """

    most = 1.0

    def __init__(
        self, names: Mapping[tuple[int, ...], str], tokenization: TextTokens, cases: int, eos: int | None
    ) -> None:
        self._names, self._tokenization, self._cases, self._eos = names, tokenization, cases, eos

    def values(self, decoding: Decoding, rows: Tensor) -> Tensor:
        """1 where the completions of `rows` (n,) may still become free of errors, else 0."""
        verdicts = []
        starts, lengths = decoding.start[rows].tolist(), decoding.lengths[rows].tolist()
        for tokens, start, length in zip(decoding.tokens[rows].tolist(), starts, lengths, strict=True):
            written = tokens[start:length]
            ended = bool(written) and written[-1] == self._eos
            text = self._tokenization.text(written, final=False)
            found = evaluate(text, self._names[tuple(tokens[:start])], self._cases, final=ended)
            verdicts.append(found.error in (None, CaseError.EXTRA_CONTENT_AFTER_TASK_COMPLETION))
        return torch.tensor(verdicts, dtype=torch.float64)
