"""Do MiniLM and Gemma attend less within a topic than between words that often meet, and alike with random weights?

Ten draws of texts left five claims of `topic-pretrained` about attention undecided. This study makes the same
measurements in 20 further draws, for the two models on which so many draws suffice.

Deviations: those of `topic-pretrained`. MiniLM-L6 and Gemma 3 270M stand in for BERT and its like, and Brown and
WikiText-2 for Wikipedia.
"""

from trialogue_lab.ledger import Study
from trialogue_lab.studies.topic_pretrained.measure import parts

STUDY = Study.of_package(
    __name__,
    source="Thesis section 2.1.5.4, Tables 2.3 and 2.5",
    parts=parts,
)
