"""What can be read off the attention of a network that only copies its input?

Section 2.2.4.1 of the thesis, Figures 2.19 to 2.21: networks of one and four layers say at each position which bracket
stands there. How much do they copy, what do they still copy once their attention is made uniform, and does a layer
look as if it attended to something? A network without a residual, which must attend, is the control.

Deviations: 200 updates on fresh prefixes of 28 brackets.
"""

from trialogue_lab.ledger import Study

STUDY = Study.of_package(
    __name__,
    source="Thesis section 2.2.4.1: Figures 2.19 to 2.21",
)
