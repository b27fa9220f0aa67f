"""Cropped, endless and processed oracles, compared with uncached passes."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from models.random_transformer import small
from models.tiny_pretrained import tiny_model, tiny_oracle, tiny_tokenizer
from refusals import expect_error
from trialogue.data import Table
from trialogue.errors import InputError
from trialogue.models.hub.pretrained import PretrainedOracle
from trialogue.models.wrappers.cropped import Cropped, Endless
from trialogue.models.wrappers.processed import Processed
from trialogue.oracles import Autoregressive, Context, next_log_probs
from trialogue.randomness import generator
from trialogue.samplers import Backtracking, MaskedDecoding, ValueGuided, generate, truncated
from trialogue.samplers.exact import exact_distribution, total_variation
from trialogue.testing import check_oracle
from trialogue.testing.trees import RandomTree, viable

MODEL = small()


def uncached_pass(tokens: Tensor, window: int) -> Tensor:
    """Return log-probabilities (vocab,) after the last `window` of `tokens` (length,), without a cache."""
    inputs = torch.cat((torch.tensor([MODEL.bos]), tokens[max(0, len(tokens) - window) :]))
    return MODEL(inputs[None])[0, -1].log_softmax(-1).detach()


def largest_error(oracle: Cropped, window: int) -> float:
    tokens = torch.randint(0, 3, (40, 12), generator=generator(0, "tokens"))
    lengths = torch.randint(0, 13, (40,), generator=generator(0, "lengths"))
    found = oracle.next_log_probs(tokens, lengths)
    exact = torch.stack(
        [uncached_pass(row[:length], window) for row, length in zip(tokens, lengths.tolist(), strict=True)]
    )
    return float((found - exact).abs().max())


@pytest.mark.parametrize("window", [1, 2, 5, 11])
def test_cropped_oracle_uses_last_tokens_only(window):
    assert isinstance(Cropped(MODEL, window), Autoregressive)
    assert largest_error(Cropped(MODEL, window), window) < 1e-5
    assert largest_error(Cropped(MODEL, max(1, window - 1)), window) > 1e-2 or window == 1


def test_equal_contexts_are_evaluated_once(monkeypatch):
    opened: list[int] = []

    def open_and_record(rows: int, capacity: int) -> object:
        opened.append(rows)
        return type(MODEL).open(MODEL, rows, capacity)

    monkeypatch.setattr(MODEL, "open", open_and_record)
    tokens = torch.tensor([[0, 1, 2], [2, 1, 2], [1, 1, 2], [1, 2, 2]])
    Cropped(MODEL, 2).next_log_probs(tokens, torch.full((4,), 3))
    assert opened == [2]


def test_cropped_sequences_exceed_model_positions():
    assert MODEL.max_length is not None
    samples = generate(Endless(MODEL), [[0]], max_new_tokens=8)
    assert int(samples.lengths) == 9
    longer = generate(Endless(Cropped(MODEL, 4)), [[0]], max_new_tokens=50, num_samples=3)
    assert longer.lengths.tolist() == [51] * 3
    assert int(longer.tokens.max()) < 3
    assert torch.equal(
        longer.tokens, generate(Cropped(Endless(MODEL), 4), [[0]], max_new_tokens=50, num_samples=3).tokens
    )


def test_endless_oracle_renormalises_probabilities():
    tokens, rows = torch.tensor([[0, 1, 2, 0], [2, 2, 1, 1]]), torch.arange(2)
    stop = torch.tensor([4, 2])
    base, endless = MODEL.open(2, 4, (1,)), Endless(MODEL).open(2, 4, (1,))
    features = base.features(tokens, stop * 0, stop, rows)
    distribution = base.log_probs(features)[:, :3].softmax(1)
    log_probs = endless.log_probs(endless.features(tokens, stop * 0, stop, rows))
    torch.testing.assert_close(log_probs.exp(), distribution)
    torch.testing.assert_close(endless.hidden(features, 1), base.hidden(features, 1))
    forked = endless.fork(torch.tensor([1, 0]), 4)
    again = forked.features(tokens[[1, 0]], stop[[1, 0]], stop[[1, 0]], rows)
    torch.testing.assert_close(forked.log_probs(again), log_probs[[1, 0]])


def test_attributes_are_copied_from_base():
    class Known(Table):
        tokenization, batch_size = object(), 7

    base = Known(lambda _: [0.5, 0.3, 0.2], 3, eos=2)
    for oracle in (Cropped(base, 2), Endless(base), Endless(Cropped(base, 2)), Cropped(Endless(base), 2)):
        assert (oracle.tokenization, oracle.batch_size) == (base.tokenization, 7)
    assert Endless(MODEL).tokenization is None


def test_forward_passes_are_counted():
    class Halves:
        """Context that runs its network twice for every evaluation."""

        def __init__(self, base: Context) -> None:
            self.base, self.passes = base, 0
            self.log_probs, self.copy, self.hidden = base.log_probs, base.copy, base.hidden

        def features(self, *arguments: Tensor) -> Tensor:
            self.passes += 2
            return self.base.features(*arguments)

    class Twice(Table):
        def open(self, *arguments: Any) -> Any:
            return Halves(super().open(*arguments))

    twice = Twice(lambda _: [0.5, 0.3, 0.2], 3, eos=2)
    for oracle in (Endless(twice), truncated(Endless(truncated(twice, 0.7)), top_p=0.9)):
        assert generate(oracle, max_new_tokens=3).total.forward_passes == 6
    once = Table(lambda _: [0.5, 0.3, 0.2], 3, eos=2)
    assert generate(Endless(once), max_new_tokens=3).total.forward_passes == 3


def test_invalid_arguments_are_reported():
    for field, make in (
        ("window", lambda: Cropped(MODEL, 0)),
        ("window", lambda: Cropped(MODEL, 12)),
        ("eos", lambda: Endless(Endless(MODEL))),
        ("eos", lambda: Endless(tiny_oracle())),
    ):
        assert expect_error("", make).field == field


TREE = viable(RandomTree(11, vocab=3, horizon=3))


def favour_repetition(prefix: Tensor, scores: Tensor) -> Tensor:
    """Favour tokens that occur often and late in the prefix. Scores are changed in place."""
    for place, token in enumerate(prefix[0].tolist()):
        scores[0, token] += 0.3 * (place + 1)
    return scores


def expected_distribution(prefix: tuple[int, ...]) -> list[float]:
    scores = torch.tensor([TREE.conditional(prefix)], dtype=torch.float64).log()
    distribution: list[float] = favour_repetition(torch.tensor([prefix]), scores).softmax(-1)[0].tolist()
    return distribution


def delay_end(prefix: Tensor, scores: Tensor) -> Tensor:
    return favour_repetition(prefix[:, :-1], scores)


@pytest.mark.parametrize("sampler", [MaskedDecoding(), Backtracking(1, 2), ValueGuided()], ids=repr)
def test_samplers_match_the_processed_table(sampler):
    wanted = exact_distribution(sampler, Table(expected_distribution, 3, max_length=3), TREE.allows)

    def difference(process: Callable[[Tensor, Tensor], Tensor]) -> float:
        found = exact_distribution(sampler, Processed(TREE.table(), process), TREE.allows)
        return total_variation(found.probabilities, wanted.probabilities)

    assert difference(favour_repetition) < 1e-12
    assert difference(delay_end) > 1e-3


def test_processed_oracle_satisfies_oracle_contract():
    check_oracle(Processed(TREE.table(), favour_repetition))
    check_oracle(Processed(tiny_oracle(), favour_repetition), seeds=(0,), tolerance=1e-3)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64], ids=str)
@torch.inference_mode()
def test_prefixes_are_exact_in_features_of_any_dtype(dtype):
    seen = []

    def record_prefix(prefix: Tensor, scores: Tensor) -> Tensor:
        seen.append(prefix[0].tolist())
        return scores

    oracle = PretrainedOracle(tiny_model(scale=4.0).to(dtype), tiny_tokenizer())
    context = Processed(oracle, record_prefix).open(1, 256, layers=(1,))
    tokens, stop, zero = torch.arange(44, 300)[None], torch.tensor([200]), torch.tensor([0])
    distribution, own = context.distributions(features := context.features(tokens, zero, stop, zero))
    assert seen == [tokens[0, :200].tolist()]
    plain = oracle.open(1, 256, layers=(1,))
    wanted = plain.features(tokens, zero, stop, zero)
    assert torch.equal(distribution, plain.log_probs(wanted))
    assert torch.equal(own, distribution)
    for layer in (-1, 1):
        assert torch.equal(context.hidden(features, layer), plain.hidden(wanted, layer))


def test_reported_log_probs_are_unprocessed():
    oracle = tiny_oracle()
    settings: dict[str, Any] = {"max_new_tokens": 8, "num_samples": 6}
    samples = generate(truncated(Processed(oracle, favour_repetition), 0.8, top_k=9), ["the cat"], **settings)
    plain = generate(truncated(oracle, 0.8, top_k=9), ["the cat"], **settings)
    assert samples.completions() != plain.completions()
    for tokens, length, start, log_prob in zip(
        samples.tokens,
        samples.lengths.tolist(),
        samples.prompt_lengths.tolist(),
        samples.log_prob,
        strict=True,
    ):
        prefixes = tokens[None].expand(length - start, -1)
        distributions = next_log_probs(oracle, prefixes, torch.arange(start, length))
        total = distributions.double().gather(1, tokens[start:length, None]).sum()
        assert float(log_prob) == pytest.approx(float(total), abs=1e-3)


def test_end_tokens_are_processed_separately():
    oracle = tiny_oracle()
    oracle.eos, oracle.other_ends = 2, (5, 7)

    def exclude_ends(prefix: Tensor, scores: Tensor) -> Tensor:
        del prefix
        return scores.index_fill(1, torch.tensor([2, 5]), -math.inf)

    distribution = next_log_probs(Processed(oracle, exclude_ends), torch.tensor([[9, 10]]))
    logits = oracle.model(input_ids=torch.tensor([[9, 10]])).logits[0, -1].detach()
    wanted = logits.index_fill(0, torch.tensor([2, 5]), -math.inf).softmax(-1)
    assert float(distribution[0, 2].exp()) == pytest.approx(float(wanted[7]), rel=1e-3)
    assert distribution[0, [5, 7]].tolist() == [-math.inf] * 2


@pytest.mark.parametrize(
    ("process", "words"),
    [
        (lambda prefix, scores: scores[0], "return scores with the shape of the input"),
        (lambda prefix, scores: scores * math.nan, "returned NaN"),
        (lambda prefix, scores: scores - math.inf, "exclude all tokens"),
    ],
)
def test_invalid_scores_are_rejected(process, words):
    expect_error(words, generate, Processed(TREE.table(), process))


def test_truncated_oracle_is_rejected():
    with pytest.raises(InputError, match="Apply truncation after logits processors"):
        Processed(truncated(TREE.table(), top_k=2), favour_repetition)
