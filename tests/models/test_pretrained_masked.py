"""Masked Hugging Face models as oracles, compared with passes over single texts."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import Tensor

from models.tiny_pretrained import random_model, save_tiny
from refusals import expect_error
from trialogue.models.hub.checkpoint_loading import load_checkpoint
from trialogue.models.hub.pretrained_masked import PretrainedMasked, load_pretrained_masked
from trialogue.oracles import Masked
from trialogue.samplers import BlockGibbs, ChainRule, Gibbs, IndependentParallel, run_chain

WORDS = ("the", "cat", "dog", "sat", "ran", "on", "mat", "and")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
TEXTS = ["the cat sat on the mat", "the dog ran", "cat and dog and unknown"]
VOCAB = 16  # Three more than the size of the tokenizer.
KINDS = {"bert": "BertForMaskedLM", "albert": "AlbertForMaskedLM"}


@cache
def tokenizer(mask: bool = True) -> transformers.PreTrainedTokenizerFast:
    ids = {token: index for index, token in enumerate((*SPECIAL, *WORDS))}
    own = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    own.pre_tokenizer = pre_tokenizers.Whitespace()
    own.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(token, ids[token]) for token in ("[CLS]", "[SEP]")]
    )
    roles = {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]"} | (
        {"mask": "[MASK]"} if mask else {}
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=own, **{f"{role}_token": token for role, token in roles.items()}
    )


def network(kind: str = "bert") -> torch.nn.Module:
    sizes: dict[str, object] = {
        "vocab_size": VOCAB, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 2, "max_position_embeddings": 12, "pad_token_id": 0,
    }  # fmt: skip
    if kind == "albert":
        sizes["embedding_size"] = 8
    config = getattr(transformers, f"{kind.capitalize()}Config")(**sizes)
    return random_model(lambda: getattr(transformers, KINDS[kind])(config), 3, 12)


def save(folder: Path, kind: str = "bert", mask: bool = True) -> Path:
    network(kind).save_pretrained(folder)
    tokenizer(mask).save_pretrained(folder)
    return folder


def oracle(kind: str = "bert", batch_size: int = 32) -> PretrainedMasked:
    return PretrainedMasked(network(kind), tokenizer(), name="tiny", batch_size=batch_size)


def word_log_probs(model: torch.nn.Module, text: Tensor, masked: list[int]) -> Tensor:
    """Return log-probabilities (masked, vocab) at the `masked` sites of one text without padding."""
    inputs = text.clone()
    inputs[masked] = 4
    with torch.no_grad():
        logits = model(input_ids=inputs[None]).logits[0, masked]
    logits[:, :5] = logits[:, 13:] = -torch.inf
    return logits.log_softmax(-1)


def largest_difference(oracle: PretrainedMasked, model: torch.nn.Module) -> float:
    """Return the largest difference from passes over single texts, with one and two masked words."""
    tokens = oracle.encode(TEXTS)
    single_site, pairs = oracle.site_log_probs(tokens), torch.zeros_like(tokens, dtype=torch.bool)
    pairs[:, 1:3] = True
    together = oracle.log_probs(tokens, pairs)
    worst = 0.0
    for row, text in enumerate(TEXTS):
        length = len(text.split()) + 2
        own = tokens[row, :length]
        for site in range(1, length - 1):
            chosen = oracle.site_log_weights(tokens[row : row + 1], torch.tensor([site]))[0]
            expected = word_log_probs(model, own, [site])[0].exp()
            worst = max(worst, float((single_site[row, site].exp() - expected).abs().max()))
            worst = max(worst, float((chosen.exp() - expected).abs().max()))
        expected = word_log_probs(model, own, [1, 2]).exp()
        worst = max(worst, float((together[row, 1:3].exp() - expected).abs().max()))
    return worst


@pytest.mark.parametrize(("kind", "batch_size"), [("bert", 1), ("bert", 32), ("albert", 5)])
def test_conditionals_equal_transformers(kind, batch_size, tmp_path):
    loaded = load_pretrained_masked(save(tmp_path / kind, kind), batch_size=batch_size)
    assert isinstance(loaded, Masked)
    assert (loaded.vocab_size, loaded.mask, loaded.max_length) == (VOCAB, 4, 12)
    assert largest_difference(loaded, network(kind)) < 1e-5


class _ReadsPadding(PretrainedMasked):
    def logits_at(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        self._padding = None
        return super().logits_at(inputs, rows, sites)


def test_check_rejects_a_mutant():
    assert largest_difference(_ReadsPadding(network(), tokenizer()), network()) > 1e-2


def test_special_tokens_stay_fixed_and_are_never_proposed():
    model = oracle()
    tokens = model.encode(TEXTS)
    assert tokens.shape == (3, 8)
    assert model.free(tokens).sum(1).tolist() == [6, 3, 5]
    assert model.decode(tokens) == ["the cat sat on the mat", "the dog ran", "cat and dog and"]
    everything = torch.ones_like(tokens, dtype=torch.bool)
    for distributions in (model.site_log_probs(tokens), model.log_probs(tokens, everything)):
        frame = distributions[~model.free(tokens)].exp()
        assert torch.equal(frame, torch.nn.functional.one_hot(tokens[~model.free(tokens)], VOCAB).float())
        words = distributions[model.free(tokens)].exp()
        assert float(words[:, [0, 1, 2, 3, 4, 13, 14, 15]].max()) == 0
        assert float((words.sum(1) - 1).abs().max()) < 1e-5
    # A mask token in a text counts as a word that can change.
    masked = torch.tensor([[2, 4, 7, 3]])
    assert model.free(masked).tolist() == [[False, True, True, False]]


@pytest.mark.parametrize(
    ("chain", "get_model"),
    [
        (Gibbs(), lambda model: model),
        (Gibbs(order="sweep"), lambda model: model),
        (IndependentParallel(), lambda model: model),
        (BlockGibbs(block_size=3), ChainRule),
    ],
    ids=["gibbs", "sweeps", "parallel", "blocks"],
)
def test_chains_run_on_masked_models(chain, get_model):
    model = oracle()
    start = model.encode(TEXTS)
    found = run_chain(chain, get_model(model), start=start, steps=6, seed=1).tokens
    assert torch.equal(found[~model.free(start)], start[~model.free(start)])
    assert bool((found != start)[model.free(start)].any())
    assert not bool(torch.isin(found[model.free(start)], torch.tensor([0, 2, 3, 4])).any())


def save_without_head(folder: Path) -> Path:
    network().bert.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def test_loading_errors_explain_the_reason(tmp_path):
    for folder, message in (
        (
            save_without_head(tmp_path / "headless"),
            r"it is not a masked language model: its checkpoint lacks cls\.",
        ),
        (save_tiny(tmp_path / "causal"), r"it is a causal language model\. Use `generate` without"),
        (save(tmp_path / "no mask", mask=False), r"its tokenizer has no mask token"),
    ):
        expect_error(message, load_pretrained_masked, folder)


def test_masks_are_appended_before_the_special_tokens_that_end_a_text():
    model = oracle()
    for text, expected in (("", [2, 4, 4, 3]), ("the cat", [2, 5, 6, 4, 4, 3]), ("[SEP]", [2, 3, 4, 4, 3])):
        assert model.masked_prompt(text, 2).tolist() == expected


@pytest.mark.parametrize(("kind", "longest"), [("Bert", 12), ("Roberta", 11), ("MPNet", 10)])
def test_positions_reserved_for_padding_are_not_counted(kind, longest):
    sizes = {"vocab_size": VOCAB, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
    own = getattr(transformers, f"{kind}Config")(
        **sizes, num_attention_heads=2, max_position_embeddings=12, pad_token_id=0
    )
    oracle = PretrainedMasked(getattr(transformers, f"{kind}ForMaskedLM")(own), tokenizer())
    assert oracle.max_length == longest
    assert oracle.site_log_probs(torch.full((1, longest), 6)).shape == (1, longest, VOCAB)
    expect_error(f"has {longest} positions", oracle.site_log_probs, torch.full((1, longest + 1), 6))


def test_remote_code_is_reported_and_not_run(tmp_path):
    classes = {"AutoConfig": "own.Own", "AutoModelForMaskedLM": "own.Own", "AutoModelForCausalLM": "own.Own"}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "own", "auto_map": classes}))
    (tmp_path / "own.py").write_text("raise SystemExit")
    message = r"code from its repository\. If you trust it, use remote_code=True"
    expect_error(message, load_pretrained_masked, tmp_path)
    expect_error(message, load_checkpoint, "CausalLM", tmp_path)


def test_invalid_input_raises_one_line_errors():
    model, several = oracle(), torch.full((1, 13), 7)
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: model.encode(["the cat " * 6]), r"tokens=14: tiny has 12 positions"),
        (lambda: model.encode("the cat"), r"texts='the cat': give a list"),  # type: ignore[arg-type]
        (lambda: model.encode([]), r"texts=\[\]: give a list"),
        (lambda: model.site_log_probs(several[:, :4] + 9), r"tokens=16: use token ids from 0 to 15"),
        (lambda: model.site_log_probs(several), r"tokens=13: tiny has 12 positions"),
    ]
    for call, message in calls:
        expect_error(message, call)


def test_texts_of_different_lengths_need_padding():
    own = tokenizer.__wrapped__()
    own.pad_token = None
    model = PretrainedMasked(network(), own, name="tiny")
    expect_error(r"has no padding token\. Encode texts of different lengths separately", model.encode, TEXTS)
    assert model.encode(TEXTS[:1]).shape == (1, 8)
