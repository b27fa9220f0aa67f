"""How far from the truth do parallel passes leave a translation whose tokens depend on each other, and why?

Section 4.2.4 of the thesis asks why refinement stutters, by attention; the theorems before it say that what draws all
tokens at once cannot follow how they depend. Here both meet: a made-up language whose law of translations is known,
with a dial for the dependence, so that the gap between the law of T passes and the truth is computed. Passes by perfect
answers come first: by the conditionals of each token given all others, which is what the theorems are about, and by a
perfect denoiser, which reads the token at a site too and knows that it may be wrong, which is what refinement trains.
Then refiners and their twin learn the language; where their laws can be listed, the gap is parted into what perfect
answers leave and what was not learned. Tables 4.4 and 4.5 are taken on the same networks.

Claims on where refiners stutter need refiners that have learned the task. They are not tested in a run whose refiners
of two stages translate less than half of the test sentences, as those of the preset `default` do.

Deviations: sentences of two to six made-up words in place of WMT, and networks of a tenth of a million parameters. A
folder of a translator and a text can be named, on which the tables of attention are taken too. Stutter is counted by
words as `trialogue.generation.translation.scores.stutter` does.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__, source="Thesis section 4.2.4, Tables 4.4 and 4.5; sections 4.2.2 and 4.2.3"
)
