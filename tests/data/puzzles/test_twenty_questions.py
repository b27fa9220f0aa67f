"""Test that both players of Twenty Questions have the same distribution, and count their reads."""

import pytest
import torch

from one_line_errors import refusals
from trialogue.data.puzzles.twenty_questions import IndexedTwentyQuestions, TwentyQuestions
from trialogue.randomness import generator
from trialogue.samplers import Ancestral
from trialogue.samplers.exact import exact_distribution, total_variation


def random_answers(objects: int, questions: int, seed: int) -> torch.Tensor:
    return torch.rand(objects, questions, generator=generator(seed, "answers")) < 0.5


def adaptive(transcript: tuple[int, ...]) -> int:
    """Return a different question for every transcript of up to three answers."""
    return sum(answer << place for place, answer in enumerate(transcript)) + 2 ** len(transcript) - 1


def fixed_object_distribution(answers: torch.Tensor, rounds: int, question) -> dict[tuple[int, ...], float]:
    distribution: dict[tuple[int, ...], float] = {}
    for row in answers.tolist():
        transcript: tuple[int, ...] = ()
        for _ in range(rounds):
            transcript = (*transcript, int(row[question(transcript)]))
        distribution[transcript] = distribution.get(transcript, 0.0) + 1 / len(answers)
    return distribution


GAMES = [
    (random_answers(16, 15, 1), 4, adaptive),
    (random_answers(11, 5, 2), 5, len),
    (random_answers(1, 2, 3), 2, len),
]


def distance(kind: type[TwentyQuestions], game) -> float:
    answers, rounds, question = game
    player = kind(answers, rounds, question)
    return total_variation(
        exact_distribution(Ancestral(), player).probabilities,
        fixed_object_distribution(answers, rounds, question),
    )


@pytest.mark.parametrize("game", GAMES)
def test_memoryless_player_has_the_distribution_of_a_fixed_object(game):
    assert distance(TwentyQuestions, game) < 1e-14
    answers, rounds, question = game
    player = TwentyQuestions(answers, rounds, question)
    listed = player.distribution()
    distribution = dict(
        zip(map(tuple, listed.states().tolist()), listed.probabilities().tolist(), strict=True)
    )
    assert total_variation(distribution, fixed_object_distribution(answers, rounds, question)) < 1e-14
    assert set(map(tuple, player.sample(50, seed=1).tolist())) <= set(distribution)
    assert torch.equal(player.sample(50, seed=1)[:7], player.sample(7, seed=1))


@pytest.mark.parametrize("game", GAMES)
def test_index_and_scan_give_equal_weights(game):
    assert distance(IndexedTwentyQuestions, game) < 1e-14
    answers, rounds, question = game
    rescanning, indexed = (
        kind(answers, rounds, question) for kind in (TwentyQuestions, IndexedTwentyQuestions)
    )
    for number in range(len(answers)):
        transcript = rescanning.transcript(number)
        for length in range(rounds):
            assert indexed.weights(transcript[:length]) == rescanning.weights(transcript[:length])
    assert indexed.weights((1 - transcript[0], *transcript[1:], 0, 0)) == [0, 0]


def test_index_reads_matching_objects_only():
    """If questions halve the objects, N / 2^i of N objects are read after i answers."""
    objects = torch.arange(64)
    bits = torch.stack([objects >> place & 1 for place in range(5)], 1)
    player = IndexedTwentyQuestions(bits)
    looked = []
    for length in range(5):
        before = player.looked_up
        player.weights(player.transcript(37)[:length])
        looked.append(player.looked_up - before)
    assert looked == [64, 32, 16, 8, 4]


def test_number_of_reads_per_answer():
    """A fixed object needs one read per question. Without one, all objects are scanned, and matching ones again."""
    player = TwentyQuestions.from_hashes(256, 8)
    transcript = player.transcript(77)
    looked = []
    for length in range(8):
        before = player.looked_up
        player.weights(transcript[:length])
        looked.append(player.looked_up - before)
    assert looked[0] == 256
    assert all(256 <= now < 2.3 * 256 for now in looked)
    assert looked == sorted(looked)


test_invalid_input_is_reported = refusals(
    "{}",
    [
        (lambda: TwentyQuestions(torch.zeros(2, 3), 4), "^rounds=4: use at most 3"),
        (
            lambda: TwentyQuestions(torch.zeros(2, 3), 2, lambda _: 3).transcript(0),
            "^question=3: return a question from 0 to 2",
        ),
        (lambda: TwentyQuestions(torch.zeros(2, 3)).transcript(2), "^number=2: use an object from 0 to 1"),
    ],
)
