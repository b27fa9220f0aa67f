"""Twenty questions: answers about a hidden object that was fixed at the start, or answers made up as one goes.

A sequence is the transcript of the answers, token 1 for yes. The questioner may look at the transcript to choose the
next question. A player who fixed an object looks it up once per question; a player without memory must weigh every
question by the objects that fit the answers so far, and induces the same law. Which objects fit can be found by going
through all of them, or in an index of all transcripts that was made before the game.

Source: "Theoretical Limitations of Autoregressive Models", section "Where this comes up".
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Annotated, Self

import torch
from annotated_types import Interval
from torch import Tensor

from trialogue.arrays import Reals
from trialogue.data.puzzles.weighted_prefixes import Listed, Prefix, WeightedPrefixes
from trialogue.errors import InputError
from trialogue.randomness import Streams, seed_of
from trialogue.validation import Count, Natural, check, validated


class TwentyQuestions(WeightedPrefixes):
    """The law of the transcript of `rounds` questions about an object drawn uniformly.

    `answers` (objects, questions) bool says what is true of each object; `question(transcript)` is the number of the
    next question, by default the number of the round. As an oracle it is the player without memory: for each object
    it goes through the transcript until an answer differs, and `looked_up` counts the answers it looks up.

    Raises `InputError` where there is no object or question, an answer is neither yes nor no, and where `question`
    names none.
    """

    vocab_size = 2

    @validated
    def __init__(
        self,
        answers: Annotated[Tensor, Reals("objects questions")],
        rounds: Count | None = None,
        question: Callable[[Prefix], int] | None = None,
    ) -> None:
        undecided = answers[(answers != 0) & (answers != 1)]
        if len(undecided):
            raise InputError("answers", undecided[0].item(), "give 0 or 1, False or True")
        self.objects, self.questions = answers.shape
        rounds = self.questions if rounds is None else rounds
        if question is None and rounds > self.questions:
            raise InputError("rounds", rounds, f"there are {self.questions} questions: ask no more")
        self.max_length: int = rounds
        self.looked_up = 0
        self._answers: list[list[bool]] = answers.bool().tolist()
        self._ask = len if question is None else question

    @classmethod
    @validated
    def of_hashes(cls, objects: Count, rounds: Annotated[int, Interval(ge=1, le=256)]) -> Self:
        """The source's extreme case: question i is bit i of the SHA-256 hash of the object's number, in decimal."""
        hashes = [hashlib.sha256(str(number).encode()).digest() for number in range(objects)]
        bits = [[digest[bit // 8] >> (7 - bit % 8) & 1 for bit in range(rounds)] for digest in hashes]
        return cls(torch.tensor(bits, dtype=torch.bool))

    @validated
    def transcript(self, number: Natural) -> Prefix:
        """The answers about one object; raises `InputError` where there is no such object."""
        if number >= self.objects:
            raise InputError("number", number, f"name an object from 0 to {self.objects - 1}")
        answers: list[int] = []
        for _ in range(self.max_length):
            answers.append(int(self._answers[number][self._asked(tuple(answers))]))
        return tuple(answers)

    @validated
    def sample(self, n: Natural, seed: int = 0) -> Tensor:
        """Draw transcripts (n, rounds) int64 by fixing an object each; transcript i depends on `seed` and i alone."""
        rows = torch.arange(n)
        objects = (Streams(seed_of(seed, "objects"), rows).uniform(rows) * self.objects).long()
        drawn = [self.transcript(number) for number in objects.tolist()]
        return torch.tensor(drawn, dtype=torch.int64).view(n, self.max_length)

    def law(self) -> Listed:
        """The law of a player who fixed an object, listed object by object."""
        transcripts = torch.tensor([self.transcript(number) for number in range(self.objects)])
        return Listed(transcripts, torch.ones(self.objects), self.vocab_size)

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """How many objects that fit the transcript answer no and yes to the next question."""
        asked = [self._asked(prefix[:length]) for length in range(len(prefix) + 1)]
        weights = [0.0, 0.0]
        for answers in self._answers:
            for question, answer in zip(asked, prefix, strict=False):
                self.looked_up += 1
                if answers[question] != answer:
                    break
            else:
                self.looked_up += 1
                weights[answers[asked[-1]]] += 1.0
        return weights

    def _asked(self, transcript: Prefix) -> int:
        question = check("question", self._ask(transcript), Natural)
        if question >= self.questions:
            raise InputError("question", question, f"name one of the {self.questions} questions, from 0")
        return question


class IndexedTwentyQuestions(TwentyQuestions):
    """The player without memory who has an index of all objects by their transcripts, and looks at what fits alone.

    The index is made once, from one look at every answer that each object would give, and takes as much memory;
    `looked_up` counts none of that. After i answers a question costs as many looks as there are objects that fit,
    objects / 2^i where answers halve them.
    """

    def __init__(
        self, answers: Tensor, rounds: int | None = None, question: Callable[[Prefix], int] | None = None
    ) -> None:
        super().__init__(answers, rounds, question)
        self._fitting: dict[Prefix, list[int]] = {}
        for number in range(self.objects):
            transcript = self.transcript(number)
            for length in range(self.max_length):
                self._fitting.setdefault(transcript[:length], []).append(number)

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """How many objects that fit the transcript answer no and yes to the next question."""
        fitting = self._fitting.get(prefix, [])
        self.looked_up += len(fitting)
        weights = [0.0, 0.0]
        for number in fitting:
            weights[self._answers[number][self._asked(prefix)]] += 1.0
        return weights
