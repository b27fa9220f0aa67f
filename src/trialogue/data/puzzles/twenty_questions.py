"""Twenty questions about a hidden object that is fixed at the start or implied by the answers.

A sequence is the transcript of the answers, with token 1 for yes. The next question may depend on the
transcript. A player who fixed an object reads one answer per question. A memoryless player must weigh each
answer by the objects that match the transcript, and induces the same distribution. The matching objects are
found by a scan, or in an index of all transcripts.

Source: "Theoretical Limitations of Autoregressive Models", section "Where this comes up".
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Annotated, Self

import torch
from annotated_types import Interval
from torch import Tensor

from trialogue.arrays import Reals
from trialogue.data.puzzles.weighted_prefixes import ListedDistribution, Prefix, WeightedPrefixes
from trialogue.errors import InputError
from trialogue.randomness import Streams, seed_of
from trialogue.validation import Count, Natural, check, validated


class TwentyQuestions(WeightedPrefixes):
    """Distribution of the transcript of questions about a uniformly random object.

    The oracle is the memoryless player. For each object, it reads answers until one differs from the
    transcript, and `looked_up` counts the answers it reads.

    Args:
        answers: Answers (objects, questions), 0 or 1.
        rounds: Number of questions asked (default: all).
        question: Function from the transcript to the index of the next question (default: the round).

    Raises:
        InputError: If there is no object or question, an answer is not 0 or 1, or `question` returns an
            invalid index.
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
            raise InputError("rounds", rounds, f"use at most {self.questions}, the number of questions")
        self.max_length: int = rounds
        self.looked_up = 0
        self._answers: list[list[bool]] = answers.bool().tolist()
        self._question = len if question is None else question

    @classmethod
    @validated
    def of_hashes(cls, objects: Count, rounds: Annotated[int, Interval(ge=1, le=256)]) -> Self:
        """Return the extreme case of the source.

        Question i is bit i of the SHA-256 hash of the decimal object number.

        Args:
            objects: Number of objects.
            rounds: Number of questions, at most 256.
        """
        hashes = [hashlib.sha256(str(number).encode()).digest() for number in range(objects)]
        bits = [[digest[bit // 8] >> (7 - bit % 8) & 1 for bit in range(rounds)] for digest in hashes]
        return cls(torch.tensor(bits, dtype=torch.bool))

    @validated
    def transcript(self, number: Natural) -> Prefix:
        """Return the answers about object `number`."""
        if number >= self.objects:
            raise InputError("number", number, f"use an object from 0 to {self.objects - 1}")
        answers: list[int] = []
        for _ in range(self.max_length):
            answers.append(int(self._answers[number][self._question_index(tuple(answers))]))
        return tuple(answers)

    @validated
    def sample(self, n: Natural, seed: int = 0) -> Tensor:
        """Sample transcripts (n, rounds) int64 of random objects. Transcript i depends on `seed` and i only."""
        rows = torch.arange(n)
        objects = (Streams(seed_of(seed, "objects"), rows).uniform(rows) * self.objects).long()
        transcripts = [self.transcript(number) for number in objects.tolist()]
        return torch.tensor(transcripts, dtype=torch.int64).view(n, self.max_length)

    def law(self) -> ListedDistribution:
        """Return the distribution of a player who fixed an object, listed by object."""
        transcripts = torch.tensor([self.transcript(number) for number in range(self.objects)])
        return ListedDistribution(transcripts, torch.ones(self.objects), self.vocab_size)

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Return the numbers of matching objects that answer no and yes to the next question."""
        asked = [self._question_index(prefix[:length]) for length in range(len(prefix) + 1)]
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

    def _question_index(self, transcript: Prefix) -> int:
        question = check("question", self._question(transcript), Natural)
        if question >= self.questions:
            raise InputError("question", question, f"return a question from 0 to {self.questions - 1}")
        return question


class IndexedTwentyQuestions(TwentyQuestions):
    """Memoryless player with an index of all objects by transcript.

    The index is built once from all answers, which `looked_up` does not count. After i answers, a question
    costs as many reads as objects match, objects / 2^i if answers halve them.
    """

    def __init__(
        self, answers: Tensor, rounds: int | None = None, question: Callable[[Prefix], int] | None = None
    ) -> None:
        super().__init__(answers, rounds, question)
        self._matching: dict[Prefix, list[int]] = {}
        for number in range(self.objects):
            transcript = self.transcript(number)
            for length in range(self.max_length):
                self._matching.setdefault(transcript[:length], []).append(number)

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Return the numbers of matching objects that answer no and yes to the next question."""
        matching = self._matching.get(prefix, [])
        self.looked_up += len(matching)
        weights = [0.0, 0.0]
        for number in matching:
            weights[self._answers[number][self._question_index(prefix)]] += 1.0
        return weights
