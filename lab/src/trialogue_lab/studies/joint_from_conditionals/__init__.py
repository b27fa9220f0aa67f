"""When do conditionals that were learned from masks give the joint law, and how loose is the theorem that says so?

Question (Q1) of chapter 4 of the thesis. Theorem 4.1.4, Corollary 4.3.1 and Lemmas 4.3.5 and 4.3.6 on cliques of two
and three equal spins, whose two parameters are fitted by the stated loss within a box: the constant of approximate
tensorization is bounded from above, conditionals from below, and the box is covered by cells, all with certainty, at
sizes chosen so that the bound is below one. There it is larger than the distance of any law of the box from the data's:
it cannot fail, and how loose it is is a table and no claim. Beside it stand the decays that chapter 4 reads from its
constants, chi^2 from the Poincaré constant and KL from approximate tensorization, and the convexity of Proposition
4.3.6 on random models.

Claims on Theorem 4.1.4, Corollary 4.3.1 and Lemma 4.3.5 were registered and later withdrawn for that reason; the page
of the study lists them. The other steps of the proof have no claim either. Proposition 4.3.1 applies the definition of
approximate tensorization, and Proposition 4.3.2 bounds a divergence by the largest term of its sum. Corollary 4.3.2 is
the union bound of Corollary 4.3.1 over cells, and the theorem uses it directly.

Deviations: the bound asks for many masks of every sample, whose counts are drawn at once; one site is masked at a time.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis sections 4.1.2, 4.1.3, 4.3.4 and 4.3.11: Theorem 4.1.4, Definitions 4.1.5 and 4.1.9, "
    "Proposition 4.3.6",
)
