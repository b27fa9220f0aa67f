"""Does the first of two factored layers wait until two bodies are learned, and what then makes it move?

In the model of one dimension of the document on the distributional simplicity bias (equations 7 to 13, appendix B) all
is computable. The flow is held against gradients by automatic differentiation and samples; on Gaussian tokens, which
have two bodies only, against its closed form, its fixed point and the lower bound; with a decay of weights until the
first layer has died, and without it. On tokens with interactions of three bodies the growth of the first layer from
almost nothing is fitted, and held against the stability matrix of equation 13 as printed and as corrected: a factor of
two, and rows of the layer in place of its diagonal. One replication is a law with weights, drawn at random.

Corrections of ours: the lower bound holds with Gamma = A1 C A1^T, where A1 C A1 is printed; the diagonal is no
direction that the flow keeps to; and in the printed example, of tokens with a skew above zero, G is negative definite,
and the first layer grows all the same where the last one has entries of both signs.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Distributional simplicity bias: equations 7 to 13, appendix B",
)
