"""When does the first of two factored layers start to grow, and does it wait until pairwise interactions are learned?

Studies the one-dimensional model of the document on the distributional simplicity bias (equations 7 to 13, appendix B),
in which all quantities can be computed. The flow is compared with gradients by automatic differentiation and with
samples. For Gaussian tokens, which have only pairwise interactions, it is compared with its closed form, its fixed
point and the lower bound, with and without weight decay. For tokens with three-body interactions, the growth rate of
the first layer from almost zero is fitted. It is compared with the stability matrix of equation 13, both as published
and as corrected by a factor of two and by using rows of the layer instead of its diagonal. One replication is one
random distribution with random initial weights.

Corrections by this project: The lower bound holds with Gamma = A1 C A1^T, and the document has A1 C A1. The flow does
not keep the first layer diagonal. In the published example, which has tokens with positive skew, G is negative
definite. The first layer still grows if the entries of the last layer have both signs.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(__name__, source="Distributional simplicity bias: equations 7 to 13, appendix B")
