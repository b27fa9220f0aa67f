"""Speed of autoregressive translation, compared with `MarianMTModel.generate` and with iterative refinement.

The models have random weights, 2 encoder and 2 decoder layers of width 256, and 4,000 tokens. The first comparison is
greedy generation of equally many tokens by this package and by `MarianMTModel`, for 1 and for 64 sources of 10 tokens.
The second one generates 10, 20 and 40 tokens for one source, and compares this with four steps of a refiner that is
given these lengths, with one and with five hypotheses. The contenders alternate on one thread. The tables show the CPU
seconds of the fastest round.

    python benchmarks/translation.py
"""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from record import Record
from trialogue.data.parallel.vocabulary import BOS, EOS, PAD
from trialogue.models.encoder_decoder.config import EncoderDecoderConfig
from trialogue.models.encoder_decoder.network import EncoderDecoder
from trialogue.models.encoder_decoder.refiner import Refiner
from trialogue.models.encoder_decoder.twin import CausalTranslator
from trialogue.randomness import generator
from trialogue.samplers.chains.refinement import Refinement
from trialogue.samplers.translation.refining import LengthBeam
from trialogue.samplers.translation.writing import BeamSearch

VOCAB, WIDTH, LAYERS, HEADS, LONGEST = 4000, 256, 2, 4, 64
SOURCE, ROUNDS, SPARE = 10, 15, 10
"""Number of tokens per source, number of rounds, and the additional tokens that `BeamSearch` allows for each source."""


def network(*, causal: bool) -> EncoderDecoder:
    """Return a network that never samples the end-of-sequence token."""
    config = EncoderDecoderConfig(
        vocab_size=VOCAB,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        heads=HEADS,
        width=WIDTH,
        mlp_width=4 * WIDTH,
        max_length=LONGEST,
        causal=causal,
        positional_attention=not causal,
    )
    made = EncoderDecoder(config).eval()
    with torch.no_grad():
        made.token_embedding.weight[EOS] = 0
    return made


def marian() -> Any:
    """Return a `MarianMTModel` with the same number of layers, width and vocabulary size, and tied embeddings."""
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=VOCAB,
        d_model=WIDTH,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=4 * WIDTH,
        decoder_ffn_dim=4 * WIDTH,
        max_position_embeddings=LONGEST,
        pad_token_id=PAD,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    return MarianMTModel(config).eval()


def of_length(refiner: EncoderDecoder, length: int) -> Refiner:
    """Return the refiner with a length predictor that is concentrated near `length`."""
    with torch.no_grad():
        distance = (torch.arange(LONGEST + 1) - length).abs()
        refiner.length_head.weight.zero_()
        refiner.length_head.bias.copy_(-distance.float())
    return Refiner(refiner)


def measured(acts: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Run the contenders in alternation and return the CPU seconds of the fastest round of each."""
    found: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, act in acts.items():
            began = time.process_time()
            act()
            found[name] = min(found.get(name, math.inf), time.process_time() - began)
    return found


def main() -> None:
    torch.set_num_threads(1)
    record, out = Record("translation"), Console()
    table = Table(title="Seconds of CPU")
    for head in ("sources", "tokens", "what", "s"):
        table.add_column(head, justify="left" if head == "what" else "right")
    twin, peer = CausalTranslator(network(causal=True)), marian()
    drawn = torch.randint(4, VOCAB, (64, SOURCE), generator=generator(0, "sources")).tolist()

    def print_row(name: str, seconds: float, sources: int, tokens: int) -> None:
        record.add(name, round(seconds, 5), what="CPU, s", sources=sources, tokens=tokens)
        table.add_row(str(sources), str(tokens), name, f"{seconds:.5f}")

    for sources in (1, 64):
        given = drawn[:sources]
        inputs = torch.tensor([[*source, EOS] for source in given])
        tokens = SPARE + 1
        words = {"max_new_tokens": tokens, "min_new_tokens": tokens, "do_sample": False, "num_beams": 1}
        library = partial(peer.generate, inputs, **words)
        ours = partial(BeamSearch(ratio=0.0).translate, twin, given)
        assert len(ours()[0].best) == tokens - 1
        assert library().shape[1] == tokens + 1
        for name, seconds in measured({"twin": ours, "generate of transformers": library}).items():
            print_row(name, seconds, sources, tokens)
    refiner = network(causal=False)
    for length in (10, 20, 40):
        search, conditioned = BeamSearch(ratio=(length - SPARE) / SOURCE), of_length(refiner, length)
        acts: dict[str, Callable[[], object]] = {"twin": partial(search.translate, twin, drawn[:1])}
        for count in (1, 5):
            beam = LengthBeam(4, count, Refinement(keep="nothing"), drop_repeats=False)
            acts[f"refiner, 4 steps, {count}"] = partial(beam.translate, conditioned, drawn[:1])
        for name, seconds in measured(acts).items():
            print_row(name, seconds, 1, length)
    out.print(table)
    record.write()


if __name__ == "__main__":
    main()
