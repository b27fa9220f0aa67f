"""A vocabulary of subwords over bytes, trained on text."""

from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from trialogue.errors import InputError
from trialogue.validation import check, integer_range


def checked_size(size: int, special: Sequence[str], field: str) -> int:
    """Return `size`; raises `InputError` for `field` where it has no room for the bytes and the `special` tokens."""
    least = 256 + len(special)
    hint = (
        f"256 bytes and the special tokens ({', '.join(special)}) take {least} of them: use at least {least}"
    )
    return check(field, size, integer_range(least), hint)


def trained_byte_level_bpe(
    lines: Iterable[str], size: int, special: Sequence[str], *, prefix_space: bool, field: str
) -> Tokenizer:
    """The byte-level BPE (Sennrich et al. 2016; Radford et al. 2019) of `size` tokens that is trained on `lines`.

    Tokens cross neither words, as GPT-2 cuts them, nor lines. Ids 0 to len(special) - 1 are the `special` tokens; with
    `prefix_space` a space is put before each text. Raises `InputError` for `field` where `size` has no room for bytes
    and special tokens, and where there is nothing left to merge before the vocabulary is full, pairs that occur once
    apart.
    """
    checked_size(size, special, field)
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
        hint = f"the text supports {supported} tokens: use at most as many, or a longer text"
        raise InputError(field, size, hint)
    return tokenizer
