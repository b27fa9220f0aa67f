from .chain import ValueGuidedChain as ValueGuidedChain
from .chain import value_guided_chain as value_guided_chain
from .closed_forms import FirstLeaf as FirstLeaf
from .closed_forms import action_level_distribution as action_level_distribution
from .closed_forms import first_leaf as first_leaf
from .closed_forms import leaf_mass as leaf_mass
from .closed_forms import stationary_probabilities as stationary_probabilities
