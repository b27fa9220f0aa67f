"""Training of byte-level BPE tokenizers."""

from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from trialogue.errors import InputError
from trialogue.validation import check, integer_range


def require_bpe_size(size: int, special: Sequence[str], field: str) -> int:
    """Raise `InputError` if a vocabulary is too small for 256 bytes and the special tokens.

    Args:
        size: Vocabulary size.
        special: Special tokens.
        field: Name of `size` for error messages.

    Returns:
        The vocabulary size.

    Raises:
        InputError: If the size is too small.
    """
    minimum = 256 + len(special)
    hint = f"use at least {minimum} for 256 bytes and the special tokens ({', '.join(special)})"
    return check(field, size, integer_range(minimum), hint)


def train_byte_level_bpe(
    lines: Iterable[str], size: int, special: Sequence[str], *, prefix_space: bool, field: str
) -> Tokenizer:
    """Train a byte-level BPE tokenizer (Sennrich et al. 2016; Radford et al. 2019).

    Tokens do not cross the boundaries of lines or of the words of GPT-2's pre-tokenizer. Pairs that occur once are not
    merged.

    Args:
        lines: Training text.
        size: Vocabulary size.
        special: Special tokens. Their ids are 0, 1, ...
        prefix_space: Whether the tokenizer adds a space before each text.
        field: Name of `size` for error messages.

    Returns:
        Tokenizer with exactly `size` tokens.

    Raises:
        InputError: If `size` is too small for 256 bytes and the special tokens, or too large for the text.
    """
    require_bpe_size(size, special, field)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        show_progress=False,
        special_tokens=list(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(lines, trainer)
    supported = tokenizer.get_vocab_size()
    if supported < size:
        hint = f"use a longer text or at most {supported} tokens, because the text supports no more"
        raise InputError(field, size, hint)
    return tokenizer
