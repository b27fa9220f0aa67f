from .chains import (
    Ergodicity as Ergodicity,
)
from .chains import (
    chain_ergodicity as chain_ergodicity,
)
from .chains import (
    chain_transitions as chain_transitions,
)
from .chains import (
    ergodicity as ergodicity,
)
from .transitions import transition_matrix as transition_matrix
from .walks import (
    Law as Law,
)
from .walks import (
    exact_law as exact_law,
)
from .walks import (
    target_law as target_law,
)
from .walks import (
    total_variation as total_variation,
)
from .walks import (
    walk_transitions as walk_transitions,
)
