"""Do conditional distributions that are learned from masked samples determine the joint, and how loose is the bound?

Studies question (Q1) of chapter 4 of the thesis. Theorem 4.1.4, Corollary 4.3.1 and Lemmas 4.3.5 and 4.3.6 are tested
on cliques of two and three equal spins, whose two parameters are fitted within a box by the stated loss. The constant
of approximate tensorization is bounded from above, the conditionals are bounded from below, and the box is covered by
cells. All of these bounds are rigorous. The sample sizes are chosen so that the bound of the theorem is below one. At
these sizes, the bound is larger than the distance between the data's distribution and any distribution in the box. It
therefore cannot fail, and its looseness is reported in a table and not as a claim. The study also tests the decay rates
that chapter 4 derives from its constants: chi^2 from the Poincaré constant, and KL from approximate tensorization. It
tests the convexity of Proposition 4.3.6 on random models.

Claims on Theorem 4.1.4, Corollary 4.3.1 and Lemma 4.3.5 were registered and later withdrawn for this reason. The page
of the study lists them. The other steps of the proof have no claim either. Proposition 4.3.1 applies the definition of
approximate tensorization, and Proposition 4.3.2 bounds a divergence by the largest term of its sum. Corollary 4.3.2 is
the union bound of Corollary 4.3.1 over cells, and the theorem uses it directly.

Deviations: The bound requires many masks per sample, so that only their counts are sampled. One site is masked at a
time.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis sections 4.1.2, 4.1.3, 4.3.4 and 4.3.11: Theorem 4.1.4, Definitions 4.1.5 and 4.1.9, "
    "Proposition 4.3.6",
)
