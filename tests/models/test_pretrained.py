"""Pretrained models as oracles: cache, output head and error messages."""

import math

import pytest
import torch
import transformers

from models.packed.test_choice import shift_positions
from models.ragged_schedule import fresh_pass as fresh
from models.ragged_schedule import largest_error
from models.tiny_pretrained import SMALL, random_model, save_tiny, tiny_model, tiny_oracle, tiny_tokenizer
from refusals import expect_error
from trialogue.errors import InputError
from trialogue.models.caching import position_cache
from trialogue.models.hub.pretrained import PretrainedOracle, load_pretrained
from trialogue.models.networks.probe import Probe
from trialogue.randomness import generator
from trialogue.samplers import ValueGuided, generate, truncated
from trialogue.verifiers import ProbeVerifier

CAPACITY, VOCAB = 14, 300


def scaled_model(kind: str, config: object) -> torch.nn.Module:
    """Return a transformers model whose random weights are large enough to distinguish prefixes."""
    return random_model(lambda: getattr(transformers, kind)(config), 7, 6)


def models() -> dict[str, torch.nn.Module]:
    return {
        "llama": tiny_model(),
        "gpt2": scaled_model(
            "GPT2LMHeadModel",
            # The longest sequences use all position embeddings.
            transformers.GPT2Config(vocab_size=VOCAB, n_embd=16, n_layer=2, n_head=2, n_positions=CAPACITY),
        ),
        # The head limits its logits by a tanh, so it is not plain.
        "gemma2": scaled_model(
            "Gemma2ForCausalLM",
            transformers.Gemma2Config(
                **SMALL, head_dim=4, final_logit_softcapping=5.0, query_pre_attn_scalar=4, sliding_window=64
            ),
        ),
        "qwen2": scaled_model("Qwen2ForCausalLM", transformers.Qwen2Config(**SMALL)),
    }


@pytest.mark.parametrize("kind", models())
def test_ragged_schedules_equal_uncached_passes(kind, monkeypatch):
    oracle = PretrainedOracle(models()[kind], tiny_tokenizer())
    assert oracle.plain_head == (kind != "gemma2")
    with torch.inference_mode():
        for seed in range(30 if kind == "llama" else 9):
            # The memory of a cache grows, or is large enough from the start.
            monkeypatch.setattr(position_cache, "_FIRST_POSITIONS", (2, 256)[seed % 2])
            assert largest_error(oracle, seed, memory=(1, 5, 4096)[seed % 3], capacity=CAPACITY) < 1e-3


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [
        (torch.float64, 30.0),
        (torch.float32, 30.0),
        (torch.bfloat16, 30.0),
        (torch.float16, 30.0),
        # With small weights all distributions are flat, and log-probabilities differ in the fourth digit only.
        (torch.float32, 1.0),
    ],
    ids=str,
)
def test_wrong_cache_is_rejected(monkeypatch, dtype, scale):
    model = tiny_model(scale=scale).to(dtype)
    oracle = PretrainedOracle(model, tiny_tokenizer())
    assert oracle.batch_size == 16
    shift_positions(monkeypatch)
    with pytest.raises(InputError, match=r"cached passes differ from uncached ones\. Use recompute=True"):
        PretrainedOracle(model, tiny_tokenizer())
    monkeypatch.undo()
    # Store padding at the position of a token.
    monkeypatch.setattr(position_cache.PositionCache, "padding", 1)
    if scale > 1:
        expect_error(r"cached passes differ", PretrainedOracle, model, tiny_tokenizer())


def test_recomputing_gives_equal_samples_and_counts_positions():
    prompts = ["the cat", "a list: [1", "yes"]
    cached = generate(tiny_oracle(), prompts, max_new_tokens=8, num_samples=3)
    recomputed = generate(tiny_oracle(recompute=True), prompts, max_new_tokens=8, num_samples=3)
    assert cached.sequences() == recomputed.sequences()
    assert torch.allclose(cached.log_prob, recomputed.log_prob, atol=1e-4)
    lengths = [len(tiny_tokenizer()(prompt)["input_ids"]) for prompt in prompts]
    # Every position is evaluated once: the prompts, and each token except the last, without shared prefixes.
    assert cached.total.positions <= sum(lengths) + int((cached.lengths - cached.prompt_lengths - 1).sum())
    assert recomputed.total.positions > 3 * cached.total.positions


def test_shared_prompt_is_evaluated_once():
    prompt = "the dog ran after the cat, and the cat sat on the mat"
    length = len(tiny_tokenizer()(prompt)["input_ids"])
    run = generate(tiny_oracle(), [prompt], max_new_tokens=1, num_samples=16)
    assert run.total.positions == length
    assert run.total.forward_passes == 1


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("top_k", [None, 5])
def test_forward_passes_are_counted(recompute, top_k):
    oracle, passes = tiny_oracle(recompute=recompute), []
    handle = oracle.body.register_forward_pre_hook(lambda *_: passes.append(1))
    prompts = [[5] * 40, [6] * 3, [7] * 15, [8] * 2, [5] * 39]
    run = generate(truncated(oracle, top_k=top_k), prompts, max_new_tokens=1)
    handle.remove()
    # Rows of very different lengths are evaluated in separate passes: 40 with 39, 15, 3 with 2.
    assert run.total.forward_passes == len(passes) == 3
    assert run.forward_passes.tolist() == [1] * 5


def test_verifier_values_do_not_depend_on_batch_size():
    runs = [
        generate(
            tiny_oracle(batch_size=rows),
            ["the"],
            sampler=ValueGuided(),
            verifier=ProbeVerifier(Probe(16, seed=3), 1),
            max_new_tokens=2,
            num_samples=2,
            batch_size=2,
        )
        for rows in (16, 300)
    ]
    assert runs[0].sequences() == runs[1].sequences()
    assert runs[0].total.verifier_calls == runs[1].total.verifier_calls
    assert runs[0].total.positions == runs[1].total.positions
    assert runs[0].total.forward_passes > 300 / 16 > runs[1].total.forward_passes


@pytest.mark.parametrize("kind", ["llama", "gemma2"])
def test_hidden_states_equal_transformers(kind):
    oracle = PretrainedOracle(models()[kind], tiny_tokenizer())
    tokens = torch.randint(3, VOCAB, (3, 9), generator=generator(0, "hidden"))
    stop = torch.tensor([9, 4, 6])
    with torch.inference_mode():
        context = oracle.open(3, 9, (0, 1))
        features = context.features(tokens, torch.zeros_like(stop), stop, torch.arange(3))
        for row, length in enumerate(stop.tolist()):
            output = oracle.model(input_ids=tokens[row : row + 1, :length], output_hidden_states=True)
            for layer in (-1, 0, 1):
                assert torch.allclose(
                    context.hidden(features, layer)[row], output.hidden_states[layer][0, -1], atol=1e-4
                )
    expect_error(r"layers=2: must be -1", oracle.open, 1, 4, (2,))


def test_end_tokens_are_merged():
    model = tiny_model()
    model.generation_config.eos_token_id = [2, 7, 11]
    oracle = PretrainedOracle(model, tiny_tokenizer())
    assert (oracle.eos, oracle.other_ends) == (2, (7, 11))
    model.generation_config.eos_token_id = [-1, 7, oracle.vocab_size]
    assert PretrainedOracle(model, tiny_tokenizer()).other_ends == (7,)
    model.generation_config.eos_token_id = [2, 7, 11]
    with torch.inference_mode():
        context = oracle.open(1, 4)
        tokens, one = torch.tensor([[5, 9, 4, 8]]), torch.tensor([4])
        output = context.log_probs(context.features(tokens, torch.tensor([0]), one, torch.tensor([0])))[0]
        expected = fresh(oracle, tokens[0]).exp()
    assert float(output[2].exp()) == pytest.approx(float(expected[[2, 7, 11]].sum()), abs=1e-5)
    assert output[[7, 11]].tolist() == [-math.inf, -math.inf]
    assert float(output.exp().sum()) == pytest.approx(1, abs=1e-5)


def test_sequences_longer_than_sliding_window_are_rejected():
    config = transformers.MistralConfig(**SMALL, sliding_window=12)
    model = scaled_model("MistralForCausalLM", config)
    oracle = PretrainedOracle(model, tiny_tokenizer(), name="mistral")
    assert generate(oracle, [[5, 6, 7]], max_new_tokens=9).lengths.tolist() <= [12]
    with pytest.raises(
        InputError, match=r"capacity=13: mistral attends within a sliding window of 12 tokens"
    ):
        generate(oracle, [[5, 6, 7]], max_new_tokens=10)
    whole = PretrainedOracle(model, tiny_tokenizer(), recompute=True)
    assert len(generate(whole, [[5, 6, 7]], max_new_tokens=20, num_samples=2).lengths) == 2


def gpt_neo(window):
    config = transformers.GPTNeoConfig(
        vocab_size=VOCAB,
        hidden_size=16,
        num_layers=2,
        num_heads=2,
        attention_types=[[["global", "local"], 1]],
        window_size=window,
        max_position_embeddings=64,
        bos_token_id=1,
        eos_token_id=2,
    )
    return scaled_model("GPTNeoForCausalLM", config)


FEW = {"vocab_size": VOCAB, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
NEVER_CACHED = {
    "mamba": (
        lambda: scaled_model(
            "MambaForCausalLM",
            transformers.MambaConfig(
                vocab_size=VOCAB,
                hidden_size=16,
                num_hidden_layers=2,
                state_size=4,
                bos_token_id=1,
                eos_token_id=2,
            ),
        ),
        r"model='old': its state \(recurrent\) cannot be rewound\. Use recompute=True",
    ),
    # Its mask is aligned with the end of the longest row.
    "gpt-neo": (lambda: gpt_neo(8), r"cached passes differ from uncached ones\. Use recompute=True"),
    "gpt-neo, wide": (lambda: gpt_neo(64), r"cached passes differ from uncached ones\. Use recompute=True"),
    "bloom": (
        lambda: scaled_model(
            "BloomForCausalLM",
            transformers.BloomConfig(vocab_size=VOCAB, hidden_size=16, n_layer=2, n_head=2),
        ),
        "model='old': it does not support rows of different lengths .*recompute",
    ),
    "falcon": (
        lambda: scaled_model(
            "FalconForCausalLM", transformers.FalconConfig(**FEW, alibi=True, bos_token_id=1, eos_token_id=2)
        ),
        "model='old': it does not support rows of different lengths .*recompute",
    ),
}


@pytest.mark.parametrize("kind", NEVER_CACHED)
def test_models_without_valid_cache_need_recompute(kind):
    make, message = NEVER_CACHED[kind]
    model = make()
    expect_error(message, PretrainedOracle, model, tiny_tokenizer(), name="old")
    oracle = PretrainedOracle(model, tiny_tokenizer(), recompute=True)
    with torch.inference_mode():
        assert max(largest_error(oracle, seed, memory=1) for seed in range(4)) < 1e-3


@pytest.mark.parametrize("checked", [True, False], ids=["checked", "taken"])
def test_local_layers_limit_the_sequence_length(monkeypatch, checked):
    model = gpt_neo(8)
    model.config.attention_layers = ["global", "local" if not checked else "global"]
    # Without ragged passes, only the window of its mask makes results wrong.
    together = PretrainedOracle._cache_error
    monkeypatch.setattr(
        PretrainedOracle, "_cache_error", lambda self, length: together(self, length) if length > 6 else 0.0
    )
    assert PretrainedOracle(model, tiny_tokenizer()).window == 8


class LocalLlama(transformers.LlamaForCausalLM):
    """Llama with a sliding window, whose length has a name in the configuration that transformers does not use."""

    def forward(self, input_ids, past_key_values=None, attention_mask=None, **settings):
        if past_key_values is None:
            place = torch.arange(input_ids.shape[1])
            seen = (place <= place[:, None]) & (place > place[:, None] - self.config.local_span_window)
            attention_mask = torch.zeros(seen.shape).masked_fill(~seen, -math.inf)[None, None]
            attention_mask = attention_mask.expand(len(input_ids), -1, -1, -1)
        return super().forward(
            input_ids, past_key_values=past_key_values, attention_mask=attention_mask, **settings
        )


@pytest.mark.parametrize(
    ("kind", "stated", "window"),
    [
        ("LlamaForCausalLM", 9, None),
        ("LocalLlama", 9, 9),
        ("LlamaForCausalLM", 100, 100),
        ("LocalLlama", 64, None),
    ],
)
def test_windows_with_other_config_names_are_checked(monkeypatch, kind, stated, window):
    monkeypatch.setattr(transformers, "LocalLlama", LocalLlama, raising=False)
    positions = 64 if stated == 64 else 256
    config = transformers.LlamaConfig(**SMALL | {"max_position_embeddings": positions})
    config.local_span_window, config.window_layers, config.span_window_pattern = stated, 3, 2
    # Without a plain head, every pass evaluates the complete model.
    model = scaled_model(kind, config)
    monkeypatch.setattr(PretrainedOracle, "_has_plain_head", lambda self: False)
    oracle = PretrainedOracle(model, tiny_tokenizer(), name="local")
    assert oracle.window == window
    oracle.open(1, 64 if window is None else window)
    if window is not None:
        expect_error(f"local attends within a sliding window of {window} tokens", oracle.open, 1, window + 1)


def test_models_load_from_folders(tmp_path):
    oracle = load_pretrained(save_tiny(tmp_path / "tiny"))
    texts = generate(oracle, ["the cat"], max_new_tokens=5, num_samples=2).sequences()
    assert texts == generate(tiny_oracle(), ["the cat"], max_new_tokens=5, num_samples=2).sequences()
    half = load_pretrained(tmp_path / "tiny", dtype="bfloat16")
    assert half.dtype == torch.bfloat16
    run = generate(half, ["the cat"], max_new_tokens=3)
    assert bool(run.log_prob.isfinite().all())


def save_pickled(folder):
    save_tiny(folder)
    (folder / "model.safetensors").unlink()
    torch.save(tiny_model().state_dict(), folder / "pytorch_model.bin")
    return folder


def save_truncated(folder):
    weights = save_tiny(folder) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    return folder


def save_bert(folder):
    sizes = {"vocab_size": 16, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    config = transformers.BertConfig(**sizes, num_attention_heads=2)
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder / "nowhere" / "at all", r"no such model on the hub, and no such folder"),
        (lambda folder: folder / "lost.gguf", r"there is no such file"),
        (lambda folder: save_tiny(folder / "mute", tokenizer=False), r"it has no tokenizer that can be read"),
        (lambda folder: save_pickled(folder / "pickled"), r"no safetensors weights"),
        (lambda folder: save_truncated(folder / "cut"), r"its weights are truncated or damaged"),
        (lambda folder: save_bert(folder / "bert"), r"it is a masked language model\. Use `unmask`"),
    ],
    ids=["missing", "gguf", "no-tokenizer", "pickled", "cut-short", "masked"],
)
def test_loading_errors_explain_the_reason(tmp_path, make, message):
    expect_error(message, load_pretrained, make(tmp_path))


@pytest.mark.parametrize(
    "device", ["nowhere", "cuda:99", "meta", *([] if torch.backends.cuda.is_built() else ["cuda"])]
)
def test_missing_devices_are_reported(device):
    expect_error(f"device='{device}': it cannot be used here: ", load_pretrained, "anything", device=device)


def test_invalid_arguments_are_reported():
    oracle = tiny_oracle()
    expect_error(r"dtype='int8'", load_pretrained, "anything", dtype="int8")
    expect_error(r"batch_size=0: use at least 1", tiny_oracle, batch_size=0)
    expect_error(r"capacity=300|max_new_tokens|prompts", generate, oracle, [[5] * 300], max_new_tokens=2)
    expect_error(r"texts and token ids", generate, oracle, ["yes", [3]], max_new_tokens=2)
