"""The game of twenty questions about a hidden object, as a distribution of answers.

A sequence is the transcript of the answers, with token 1 for yes and token 0 for no. A player who fixed an
object at the start looks up one answer per question. A player without memory has only the transcript, and
must count the objects that match it before every answer. Both produce the same distribution.

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
from trialogue.randomness import Streams, derive_seed
from trialogue.validation import Count, Natural, check, validated


class TwentyQuestions(WeightedPrefixes):
    """Distribution of the answers to yes-no questions about a uniformly random object.

    The model stores no object. It computes the next answer from the transcript (the answers so far, 1 for yes
    and 0 for no), by scanning all objects.

    Args:
        answers: Answers (objects, questions), 0 or 1. Row i contains the answers about object i.
        rounds: Number of questions in a transcript (default: all).
        question: Function from the transcript to the index of the next question (default: the number of
            previous answers).

    Attributes:
        looked_up: Number of answers read so far.

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
    def from_hashes(cls, objects: Count, rounds: Annotated[int, Interval(ge=1, le=256)]) -> Self:
        """Create questions whose answers are random-looking bits of a hash function.

        This is the extreme case of the source. The answer to question i about an object is bit i of the SHA-256 hash of
        its decimal number.

        Args:
            objects: Number of objects.
            rounds: Number of questions, at most 256.
        """
        hashes = [hashlib.sha256(str(number).encode()).digest() for number in range(objects)]
        bits = [[digest[bit // 8] >> (7 - bit % 8) & 1 for bit in range(rounds)] for digest in hashes]
        return cls(torch.tensor(bits, dtype=torch.bool))

    @validated
    def transcript(self, number: Natural) -> Prefix:
        """Return all answers about one object in the order of the questions.

        Args:
            number: Index of the object.

        Returns:
            Answers, 0 or 1, one per round.
        """
        if number >= self.objects:
            raise InputError("number", number, f"use an object from 0 to {self.objects - 1}")
        answers: list[int] = []
        for _ in range(self.max_length):
            answers.append(int(self._answers[number][self._question_index(tuple(answers))]))
        return tuple(answers)

    @validated
    def sample(self, n: Natural, seed: int = 0) -> Tensor:
        """Sample transcripts of independent, uniformly random objects.

        Args:
            n: Number of transcripts.
            seed: Random seed (default: 0). Transcript i depends on the seed and on i only.

        Returns:
            Answers (n, rounds) int64, 0 or 1.
        """
        rows = torch.arange(n)
        objects = (Streams(derive_seed(seed, "objects"), rows).uniform(rows) * self.objects).long()
        transcripts = [self.transcript(number) for number in objects.tolist()]
        return torch.tensor(transcripts, dtype=torch.int64).view(n, self.max_length)

    def distribution(self) -> ListedDistribution:
        """Return the distribution of transcripts as a list with one transcript per object.

        This is the distribution of a player who fixed a random object at the start.
        """
        transcripts = torch.tensor([self.transcript(number) for number in range(self.objects)])
        return ListedDistribution(transcripts, torch.ones(self.objects), self.vocab_size)

    def weights(self, prefix: Prefix) -> Sequence[float]:
        """Count the objects that match the transcript, by their answer to the next question.

        All objects are scanned. The number of answers read is added to `looked_up`.

        Args:
            prefix: Transcript of the previous answers.

        Returns:
            Numbers of matching objects with the answers no and yes.
        """
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
    """Twenty questions in which matching objects are found in an index instead of by a scan.

    The index maps each transcript (the answers so far) to the objects that match it. Building it does not
    count in `looked_up`. Each question then costs one read per matching object. Distribution and arguments
    are the same as for `TwentyQuestions`.
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
        """Count the objects that match the transcript, by their answer to the next question.

        The objects are found in the index. Their number is added to `looked_up`.

        Args:
            prefix: Transcript of the previous answers.

        Returns:
            Numbers of matching objects with the answers no and yes.
        """
        matching = self._matching.get(prefix, [])
        self.looked_up += len(matching)
        weights = [0.0, 0.0]
        for number in matching:
            weights[self._answers[number][self._question_index(prefix)]] += 1.0
        return weights
