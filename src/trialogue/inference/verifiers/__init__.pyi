from .combination import (
    All as All,
)
from .combination import (
    Product as Product,
)
from .function import (
    FunctionVerifier as FunctionVerifier,
)
from .function import (
    TextVerifier as TextVerifier,
)
from .function import (
    Threshold as Threshold,
)
from .grammar import GrammarVerifier as GrammarVerifier
from .probe import ProbeVerifier as ProbeVerifier
from .python_file import python_verifier as python_verifier
from .random import RandomVerifier as RandomVerifier
