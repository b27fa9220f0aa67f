"""Tiny random Llama model and a byte-level tokenizer, created in memory."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from trialogue.models.hub.pretrained import PretrainedOracle

TEXT = (
    "the cat sat on the mat, and the dog ran after the cat.",
    'a list: [1, 2, 3], a name: "anna", a number: 42, true or false, yes or no',
    "café, naïve, 東京, 😀 and back to plain text\n\nassert f(1, 2) == 3",
)
TEMPLATE = (
    "{% for message in messages %}<s>{{ message['role'] }}: {{ message['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant: {% endif %}"
)


@cache
def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """Return a byte-level BPE tokenizer with 300 tokens, where ids 0, 1, 2 are <pad>, <s> (BOS) and </s> (EOS)."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[AddedToken(text, special=True) for text in ("<pad>", "<s>", "</s>")],
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )
    fast.chat_template = TEMPLATE
    return fast


SMALL = {
    "vocab_size": 300,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
"""Settings of a small decoder for the tokens of `tiny_tokenizer`."""


def random_model(build: Callable[[], Any], seed: int, factor: float = 1.0) -> Any:
    """Return the model that `build` initialises from `seed`, with its matrices multiplied by `factor`."""
    with torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(seed)
        model = build()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(factor)
    return model.eval()


def tiny_model(seed: int = 0, scale: float = 30.0, **config: object) -> LlamaForCausalLM:
    """Return a model with two layers of width 16, whose initial weights are multiplied by `scale` / 4."""
    settings = SMALL | {"max_position_embeddings": 256} | config
    return random_model(lambda: LlamaForCausalLM(LlamaConfig(**settings)), seed, scale / 4)


def tiny_oracle(seed: int = 0, **settings: object) -> PretrainedOracle:
    """Return the tiny model as an oracle."""
    return PretrainedOracle(tiny_model(seed), tiny_tokenizer(), name="tiny", **settings)


def next_distribution(
    oracle: PretrainedOracle, tokens: Sequence[int] = (5, 9, 30, 4), rows: int = 1
) -> Tensor:
    """Return log-probabilities (vocab,) after `tokens`, whose last token is evaluated in a separate pass."""
    prefixes, stop = torch.tensor([tokens] * rows), torch.full((rows,), len(tokens))
    context, storage = oracle.open(rows, len(tokens)), torch.arange(rows)
    with torch.inference_mode():
        context.features(prefixes, torch.zeros_like(stop), stop - 1, storage)
        return context.log_probs(context.features(prefixes, stop - 1, stop, storage))[0]


def mlp_by_hand(self: Any, states: Tensor) -> Tensor:
    """Implementation of `LlamaMLP.forward` that reads layer weights, which packed layers do not support."""
    gate, up = (functional.linear(states, layer.weight) for layer in (self.gate_proj, self.up_proj))
    return functional.linear(self.act_fn(gate) * up, self.down_proj.weight)


def save_tiny(folder: Path, seed: int = 0, tokenizer: bool = True) -> Path:
    """Save the tiny model and optionally its tokenizer to `folder` in the format of Hugging Face."""
    tiny_model(seed).save_pretrained(folder)
    if tokenizer:
        tiny_tokenizer().save_pretrained(folder)
    return folder
