"""When does the first of two factored layers start to grow, and does it wait until pairwise interactions are learned?

The study is about the one-dimensional model of the document on the distributional simplicity bias (equations 7 to 13,
appendix B). All quantities of this model can be computed. A network with layers A1 and A2 predicts the token x_0 from
the other tokens x as A2 . (x + (A1 x)^2), and its weights follow the gradient flow of the squared error. The flow is
compared with gradients by automatic differentiation and with samples.

Gaussian tokens have only pairwise interactions. For them, the flow is compared with its closed form, its fixed point
and the lower bound, with and without weight decay. Other tokens have three-body interactions. For them, the growth rate
of the first layer from almost zero is fitted. It is compared with the stability matrix of equation 13, as published and
as corrected. The correction is a factor of two, and uses rows of the layer instead of its diagonal. One replication is
one random distribution with random initial weights.

Corrections by this project: The lower bound holds with Gamma = A1 C A1^T, and the document has A1 C A1. The flow does
not keep the first layer diagonal. In the published example, which has tokens with positive skew, G is negative
definite. The first layer still grows if the entries of the last layer have both signs.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(__name__, source="Distributional simplicity bias: equations 7 to 13, appendix B")
