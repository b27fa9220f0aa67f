"""The masked language model of reactions that the package `rxnmapper` carries, as a folder that transformers loads.

RXNMapper (Schwaller et al. 2021, Extraction of organic chemistry grammar from unsupervised learning of chemical
reactions) is an ALBERT over the tokens of reaction SMILES. Its weights are a pickle, read here with tensors alone
allowed, and its tokenizer is code, built here as one of the `tokenizers` library.
"""

from pathlib import Path
from typing import Any

SMILES = (
    r"(\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|\/|:|~|@|\?|>>?|\*|\$|\%[0-9]{2}|[0-9])"
)
"""The tokens of a SMILES string: the pattern of the package's own tokenizer."""


def smiles_tokenizer(vocabulary: Path) -> Any:
    """The fast tokenizer whose tokens are the lines of the file `vocabulary`; a text becomes [CLS] text [SEP]."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    tokens = vocabulary.read_text(encoding="utf-8").splitlines()
    ids = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(SMILES), behavior="removed", invert=True)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(token, ids[token]) for token in ("[CLS]", "[SEP]")]
    )
    tokenizer.decoder = decoders.Fuse()
    names = {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **{f"{role}_token": token for role, token in names.items()}
    )


def convert(source: Path, folder: Path) -> None:
    """Write model and tokenizer of `source` (config.json, pytorch_model.bin, vocab.txt) to `folder`."""
    import torch
    from transformers import AutoModelForMaskedLM

    model = AutoModelForMaskedLM.from_pretrained(
        source, dtype=torch.float32, use_safetensors=False, weights_only=True, local_files_only=True
    )
    tokenizer = smiles_tokenizer(source / "vocab.txt")
    tokenizer.model_max_length = model.config.max_position_embeddings
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
