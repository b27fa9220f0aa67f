"""Do MiniLM and Gemma attend less within a topic than between words that co-occur, and equally with random weights?

Ten samples of texts left five claims of `topic-pretrained` about attention undecided. This study repeats the
measurements on 20 further samples, for the two models for which this number suffices.

Deviations: the same as in `topic-pretrained`. MiniLM-L6 and Gemma 3 270M replace BERT and similar models, and Brown and
WikiText-2 replace Wikipedia.
"""

from trialogue_lab.ledger import Study
from trialogue_lab.studies.topic_pretrained.measure import parts

STUDY = Study.of_package(__name__, source="Thesis section 2.1.5.4, Tables 2.3 and 2.5", parts=parts)
