"""Synthetic documents with topics, and small models with random weights, for tests."""

from itertools import product
from typing import Any

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from trialogue.models.hub.attention_weights import AttentionModel
from trialogue.randomness import derive_seed, numpy_generator

_TOPICS, _WORDS, _DOCUMENTS, _LENGTH = 4, 10, 80, 40


def make_synthetic_documents() -> list[str]:
    """Return random documents of 40 words, for tests.

    The vocabulary has four topics of ten words. A tenth of all words are from random topics. Of the others, about 80 %
    are from one topic of the document and 20 % from a second one.
    """
    random = numpy_generator(0, "made-up documents")
    words = list_synthetic_words()
    documents = []
    for _ in range(_DOCUMENTS):
        own = random.choice(_TOPICS, 2, replace=False)
        topics = random.choice(own, _LENGTH, p=(0.8, 0.2))
        strays = random.random(_LENGTH) < 0.1
        topics[strays] = random.choice(_TOPICS, strays.sum())
        numbers = topics * _WORDS + random.integers(0, _WORDS, _LENGTH)
        documents.append(" ".join(words[number] for number in numbers))
    return documents


def list_synthetic_words() -> list[str]:
    """Return the words of the documents, sorted by topic."""
    syllables = [first + second for first, second in product("bdklm", "aeiou")]
    return ["".join(pair) for pair in product(syllables, syllables)][: _TOPICS * _WORDS]


def make_synthetic_tokenizer() -> Any:
    """Return a fast tokenizer with one token per word of the synthetic documents.

    All other words become the unknown token.
    """
    import transformers

    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", *list_synthetic_words()])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]"
    )


def make_tiny_model(name: str, *, causal: bool) -> AttentionModel:
    """Return a transformer with two layers of width 16 and random weights, for tests.

    Args:
        name: Name of the model, which is the seed of its weights.
        causal: Whether the model is a decoder instead of an encoder.
    """
    import transformers

    tokenizer = make_synthetic_tokenizer()
    shape: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 64,
        "pad_token_id": 0,
        "attn_implementation": "eager",
    }
    config = transformers.LlamaConfig(**shape) if causal else transformers.BertConfig(**shape)
    model_class = transformers.LlamaModel if causal else transformers.BertModel
    model = AttentionModel(model_class(config), tokenizer, name=name).with_random_weights(
        derive_seed(0, name)
    )
    model.name = name
    return model
