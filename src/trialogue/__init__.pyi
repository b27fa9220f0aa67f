from . import data as data
from . import generation as generation
from . import inspection as inspection
from . import models as models
from . import samplers as samplers
from . import testing as testing
from . import training as training
from . import verifiers as verifiers
from .models.hub.pretrained import load_pretrained as load_pretrained
from .models.hub.pretrained_masked import load_pretrained_masked as load_pretrained_masked
from .samplers.chains.engine import run_chain as run_chain
from .samplers.chains.simulation.sweeps import run_sweeps as run_sweeps
from .samplers.confidence import confidence as confidence
from .samplers.exact import exact_distribution as exact_distribution
from .samplers.exact import target_distribution as target_distribution
from .samplers.exact import total_variation as total_variation
from .samplers.exact import transition_matrix as transition_matrix
from .samplers.judging import judge as judge
from .samplers.prefix.engine import generate as generate
from .samplers.prefix.engine import stream as stream
from .samplers.scoring import score as score
from .samplers.truncation import truncated as truncated
from .samplers.unmasking import unmask as unmask
from .verifiers.targets import power as power
from .verifiers.targets import tilted as tilted

__version__: str
