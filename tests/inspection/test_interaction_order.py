"""Tests of losses on clones against single-mask passes and known distributions, and of their interpretation."""

import math
from pathlib import Path

import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from models.test_pretrained_masked import WORDS, network, save, tokenizer, word_log_probs
from models.tiny_pretrained import save_tiny, tiny_model, tiny_tokenizer
from refusals import calls_without_expected_error, expect_error
from trialogue.data import Clone, Clones, ManyBody
from trialogue.errors import InputError
from trialogue.inspection.interaction_order import clone_scorers, reading
from trialogue.inspection.interaction_order.clone_scorers import CloneLoss, load_clone_scorer
from trialogue.inspection.interaction_order.measure import CheckpointLocation, clone_losses, find_checkpoints
from trialogue.inspection.interaction_order.picture import draw_losses
from trialogue.inspection.interaction_order.reading import (
    compute_gap,
    learned_beyond,
    saturation_step,
    summarize_losses,
)
from trialogue.models import Transformer, TransformerConfig
from trialogue.models.networks.factored import FactoredAttention, FactoredAttentionConfig
from trialogue.randomness import generator
from trialogue.training import Score, corpus_score, save_model

TEXTS = ("the cat sat on the mat", "the dog ran on the mat", "the cat and the dog sat")
STORY = ("the cat sat on the mat,", "and the dog ran after", "a list: [1, 2, 3], a name")


def clones_of(folder: Path, tokenizer: Tokenizer, size: int, **tokens: torch.Tensor) -> Clones:
    length = next(iter(tokens.values())).shape[1]
    clones = Clones.create(folder, tokenizer, length=length, vocab_size=size)
    for name, rows in tokens.items():
        order = None if name == "text" else int(name[-1])
        clones.add(Clone(name=name, tokens=rows, max_order=order))
    return clones


def words(ids: list[str] | None = None) -> Tokenizer:
    """Return a word tokenizer without special tokens. Its ids follow `ids`, by default the ids of the masked model."""
    own = Tokenizer.from_str(tokenizer().backend_tokenizer.to_str())
    if ids is not None:
        own = Tokenizer(models.WordLevel({word: place for place, word in enumerate(ids)}, unk_token=ids[0]))
        own.pre_tokenizer = pre_tokenizers.Whitespace()
    return own


def rows_of(own: Tokenizer, texts: tuple[str, ...] = TEXTS) -> torch.Tensor:
    return torch.tensor([own.encode(text, add_special_tokens=False).ids for text in texts])


def masked_losses() -> list[float]:
    """Return the loss of the masked model on each word of `TEXTS`, with a single mask and special tokens."""
    found = []
    for text in TEXTS:
        ids = torch.tensor(tokenizer()(text)["input_ids"])
        for site in range(1, len(ids) - 1):
            found.append(-word_log_probs(network(), ids, [site])[0, ids[site]].item())
    return found


@pytest.mark.parametrize("own", [True, False])
def test_masked_checkpoint_is_scored_with_special_tokens(own, tmp_path, monkeypatch):
    place = save(tmp_path / "bert")
    of_clones = words() if own else words(["?", *reversed(WORDS)])
    clones = clones_of(tmp_path / "clones", of_clones, of_clones.get_vocab_size(), text=rows_of(of_clones))
    scorer = load_clone_scorer(place, clones, device="cpu")
    assert not scorer.causal
    assert scorer.retokenized is not own
    result = scorer.loss(clones["text"], 10, 1.0, 0, model="m")
    expected = masked_losses()
    assert result.score.targets == len(expected) == 18
    assert result.score.loss == pytest.approx(sum(expected) / len(expected), abs=1e-5)
    size = sum(len(text.encode()) for text in TEXTS)
    assert result.tokens_per_byte == (None if own else pytest.approx(18 / size))
    assert scorer.loss(clones["text"], 2, 0.5, 1, model="m").score.targets == 6
    # The test detects missing special tokens.
    monkeypatch.setattr(clone_scorers, "special_token_frame", lambda *of: ([], []))
    bare = load_clone_scorer(place, clones, device="cpu").loss(clones["text"], 10, 1.0, 0, model="m")
    assert abs(bare.score.loss - result.score.loss) > 0.01


def test_special_tokens_in_a_clone_are_not_targets(tmp_path):
    rows = rows_of(words())
    rows[0, 2] = rows[1, 0] = 4  # A chain may sample mask tokens.
    rows[2, 3] = 1  # Unknown token.
    clones = clones_of(tmp_path / "clones", words(), 13, text=rows)
    score = (
        load_clone_scorer(save(tmp_path / "bert"), clones, device="cpu")
        .loss(clones["text"], 9, 1.0, 0, model="m")
        .score
    )
    assert score.targets == 15
    assert math.isfinite(score.loss)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("bos", [True, False])
def test_causal_checkpoint_is_scored_after_its_first_token(own, bos, tmp_path):
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(tiny_tokenizer().backend_tokenizer.to_str()), bos_token="<s>"
    )
    if bos:
        fast.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", 1)]
        )
    tiny_model().save_pretrained(tmp_path / "model")
    fast.save_pretrained(tmp_path / "model")
    plain = Tokenizer.from_str(tiny_tokenizer().backend_tokenizer.to_str())
    texts = tuple("".join(text) for text in STORY)
    ids = [plain.encode(text).ids for text in texts]
    if own:
        shortest = min(map(len, ids))
        ids = [one[:shortest] for one in ids]
        of_clones, rows = plain, torch.tensor(ids)
    else:
        spelled = sorted({letter for text in texts for letter in text})
        of_clones = Tokenizer(models.WordLevel({letter: place for place, letter in enumerate(spelled)}, "?"))
        of_clones.pre_tokenizer = pre_tokenizers.Split("", "isolated")
        of_clones.decoder = decoders.Fuse()
        rows = torch.tensor([[spelled.index(letter) for letter in text.ljust(30)] for text in texts])
        ids = [plain.encode(text.ljust(30)).ids for text in texts]
    clones = clones_of(tmp_path / "clones", of_clones, of_clones.get_vocab_size(), text=rows)
    scorer = load_clone_scorer(tmp_path / "model", clones, device="cpu")
    assert scorer.causal
    assert scorer.retokenized is not own
    result = scorer.loss(clones["text"], 9, 0.1, 0, model="m")
    expected = []
    for one in ids:
        inputs = torch.tensor([[1, *one] if bos else one])
        with torch.no_grad():
            distributions = tiny_model()(input_ids=inputs).logits[0].log_softmax(-1)
        expected += [-distributions[place + bos - 1, one[place]].item() for place in range(1, len(one))]
    assert result.score.targets == len(expected)
    assert result.score.loss == pytest.approx(sum(expected) / len(expected), abs=1e-4)
    if not own:
        assert result.tokens_per_byte == pytest.approx(sum(map(len, ids)) / (30 * len(texts)))


def two_body_solution() -> tuple[FactoredAttention, ManyBody]:
    """Return a layer with the conditionals of a two-body distribution, and the distribution."""
    distribution = ManyBody.random(5, 3, order=2, rank=3, scale=2.0, seed=1)
    net = FactoredAttention(FactoredAttentionConfig(vocab_size=3, sites=5)).double()
    with torch.no_grad():
        net.attention[0].copy_(distribution.positions.T @ distribution.positions)
        net.values[0].copy_(-2 * distribution.strength * distribution.vectors.T @ distribution.vectors)
    return net, distribution


def test_two_body_model_has_learned_beyond_order_one(tmp_path):
    net, distribution = two_body_solution()
    states = distribution.states()
    weights, draw = (-distribution.energy(states)).softmax(0), generator(0, "two bodies")

    def sampled() -> torch.Tensor:
        return states[weights.multinomial(400, True, generator=draw)]

    text, clone = sampled(), sampled()
    independent = torch.stack(
        [column[torch.randperm(400, generator=draw)] for column in sampled().unbind(1)], 1
    )
    clones = clones_of(
        tmp_path / "clones", words(["a", "b", "c"]), 3, order1=independent, order2=clone, text=text
    )
    place = save_model(net, tmp_path / "net.safetensors")
    losses = list(clone_losses([place], clones, rows=400, device="cpu"))
    assert [one.clone for one in losses] == ["order1", "order2", "text"]
    exact = (
        -(weights[:, None] * distribution.site_log_probs(states).gather(-1, states[..., None])[..., 0]).sum()
        / 5
    )
    assert losses[2].loss == pytest.approx(exact.item(), abs=4 * losses[2].error)
    assert learned_beyond(losses) == 1
    assert compute_gap(losses[0], losses[2]).is_significant
    assert not compute_gap(losses[1], losses[2]).is_significant
    # An untrained model has no significant gap.
    with torch.no_grad():
        network = FactoredAttention(net.config)
        network.attention[0].zero_()
        blank = save_model(network, tmp_path / "blank.safetensors")
    assert learned_beyond(clone_losses([blank], clones, device="cpu")) is None


def loss(
    step: int | None, clone: str, value: float, order: int | None = None, error: float = 0.01
) -> CloneLoss:
    score = Score(value, error, 0.5, 100)
    return CloneLoss(
        model="m", step=step, clone=clone, max_order=order, causal=False, score=score, tokens_per_byte=None
    )


def test_statistics_of_a_training_run():
    steps = (1, 10, 100, 1000)
    text = (5.0, 4.0, 3.0, 2.0)
    low, high = (5.0, 4.0, 3.95, 4.2), (5.0, 4.0, 3.02, 2.2)
    losses = [
        one
        for place, step in enumerate(steps)
        for one in (
            loss(step, "high", high[place], 9), loss(step, "low", low[place], 3),
            loss(step, "text", text[place]), loss(step, "bert", 3 * text[place]),
        )
    ]  # fmt: skip
    found = {one.clone: one for one in summarize_losses(losses)}
    assert (found["low"].saturated, found["high"].saturated, found["text"].saturated) == (10, 1000, 1000)
    assert (found["low"].told_since, found["high"].told_since) == (100, 1000)
    assert found["text"].gap is None
    assert found["low"].gap == reading.Gap(difference=4.2 - 2.0, error=math.hypot(0.01, 0.01), text=2.0)
    orders = [learned_beyond([one for one in losses if one.step == step]) for step in steps]
    assert orders == [None, None, 3, 9]
    # A significant gap does not count if a lower order has none.
    assert learned_beyond([loss(1, "low", 2.0, 3), loss(1, "high", 3.0, 9), loss(1, "text", 2.0)]) is None
    # A gap must exceed both the margin and three standard errors.
    assert not compute_gap(
        loss(1, "low", 2.01, 3, error=1e-4), loss(1, "text", 2.0, error=1e-4)
    ).is_significant
    assert not compute_gap(loss(1, "low", 2.5, 3, error=0.5), loss(1, "text", 2.0)).is_significant
    assert learned_beyond([loss(1, "low", 9.0, 3)]) is None
    resting = summarize_losses([loss(None, "low", 3.0, 3), loss(None, "text", 2.0)])
    assert [(one.saturated, one.told_since, one.steps) for one in resting] == [(None, None, (None,))] * 2
    draw_losses([*losses, *[CloneLoss(**vars(one) | {"model": "n"}) for one in losses[-4:]]])


def test_saturation_step():
    assert saturation_step([1, 2, 3, 4], [4.0, 2.1, 2.09, 2.0]) == 2
    assert saturation_step([1, 2, 3, 4], [4.0, 2.1, 2.09, 2.0], 0.01) == 4
    assert saturation_step([1, 2, 3], [4.0, 2.0, 5.0]) == 2
    assert saturation_step([7], [1.0]) == 7
    expect_error("losses", saturation_step, [1, 2], [1.0])


def test_checkpoints_are_sorted_by_step(tmp_path, monkeypatch):
    model = Transformer(TransformerConfig(vocab_size=3, max_length=5))
    assert find_checkpoints("a-hub/id") == [CheckpointLocation("a-hub/id", None)]
    for folder in (tmp_path / "kept", tmp_path / "recipe" / "checkpoints"):
        for step in (100, 9, 20):
            save_model(model, folder / f"step-{step}.safetensors")
        (folder / "step-no.txt").write_text("")
        found = find_checkpoints(folder if folder.name == "kept" else folder.parent)
        assert [(Path(one.place).parent, one.step) for one in found] == [(folder, s) for s in (9, 20, 100)]
    one = tmp_path / "kept" / "step-20.safetensors"
    assert find_checkpoints(one) == [CheckpointLocation(str(one), 20)]
    for step in (500, 1000):
        save_tiny(tmp_path / "trainer" / f"checkpoint-{step}")
    assert [one.step for one in find_checkpoints(tmp_path / "trainer")] == [500, 1000]
    assert [one.step for one in find_checkpoints(tmp_path / "trainer" / "checkpoint-500")] == [None]
    expect_error("neither a model", find_checkpoints, tmp_path)
    # A short name takes precedence over a folder with results of the same name.
    monkeypatch.chdir(tmp_path)
    Path("smollm2").mkdir()
    assert find_checkpoints("smollm2") == [CheckpointLocation("smollm2", None)]


def test_losses_of_networks_equal_training_scores(tmp_path):
    rows = torch.randint(0, 3, (6, 5), generator=generator(0, "rows"))
    clones = clones_of(tmp_path / "clones", words(["a", "b", "c"]), 3, text=rows)
    for causal in (True, False):
        model = Transformer(TransformerConfig(vocab_size=3, max_length=5, causal=causal), 2)
        place = save_model(model, tmp_path / f"{causal}.safetensors")
        (found,) = clone_losses([place], clones, share=0.4, seed=3, rows=5, device="cpu")
        assert found.causal is causal
        assert found.score == corpus_score(model, rows[:5], 0.4, 3)


def _save_causal_bert(place: Path) -> Path:
    config = transformers.BertConfig(
        vocab_size=16, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2
    )
    model = transformers.BertLMHeadModel(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(12)
    model.save_pretrained(place)
    tokenizer().save_pretrained(place)
    return place


def _headless(place: Path) -> Path:
    network().bert.save_pretrained(place)
    tokenizer().save_pretrained(place)
    return place


def _small(place: Path) -> Path:
    return save_model(
        Transformer(TransformerConfig(vocab_size=13, max_length=3)), place.with_suffix(".safetensors")
    )


def _save_small_vocabulary(place: Path) -> Path:
    return save_model(Transformer(TransformerConfig(vocab_size=3)), place.with_suffix(".safetensors"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_headless, "neither a masked nor a causal head .its configuration names BertModel"),
        (_save_causal_bert, "use a causal model, because this one depends on later tokens"),
        (
            _save_small_vocabulary,
            "its vocabulary has 3 tokens: use a model with 13 tokens, like the tokenizer of the clones in .*",
        ),
        (_small, "the model has 5 positions"),
        (lambda place: place, "model=.*no such model|cannot be reached"),
    ],
)
def test_unsuitable_models_are_reported_in_one_line(make, message, tmp_path):
    clones = clones_of(tmp_path / "clones", words(), 13, text=rows_of(words()))
    expect_error(message, list, clone_losses([make(tmp_path / "model")], clones, device="cpu"))


def test_tokenizer_that_changes_the_text_is_rejected(tmp_path):
    place, plain = save(tmp_path / "bert"), tiny_tokenizer().backend_tokenizer
    rows = torch.tensor([plain.encode("café, naïve").ids[:6]])
    clones = clones_of(tmp_path / "clones", plain, plain.get_vocab_size(), text=rows)
    with pytest.raises(InputError, match=r"does not preserve the text of the clones, .* becomes"):
        load_clone_scorer(place, clones, device="cpu")


def test_invalid_settings(tmp_path):
    clones = clones_of(tmp_path / "clones", words(), 13, text=rows_of(words()))
    empty = Clones.create(tmp_path / "e", words(), length=3, vocab_size=13)
    cases = [
        ("rows=", lambda: clone_losses(["m"], clones, rows=0)),
        ("share=", lambda: clone_losses(["m"], clones, share=1.5)),
        ("seed=", lambda: clone_losses(["m"], clones, seed=-1)),
        ("model=", lambda: list(clone_losses([], clones))),
        ("clones=", lambda: list(clone_losses(["m"], empty))),
    ]
    assert not calls_without_expected_error(cases)
