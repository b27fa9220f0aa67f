from . import analysis as analysis
from . import data as data
from . import generation as generation
from . import inference as inference
from . import ledger as ledger
from . import models as models
from . import studies as studies
from . import testing as testing
from . import theory as theory
from . import training as training
from .inference.chains.engine import run_chain as run_chain
from .inference.laws import exact_law as exact_law
from .inference.laws import target_law as target_law
from .inference.laws import total_variation as total_variation
from .inference.laws import transition_matrix as transition_matrix
from .inference.simulation.sweeps import run_sweeps as run_sweeps
from .inference.truncation import truncated as truncated
from .inference.walks.engine import generate as generate
from .inference.walks.engine import stream as stream
from .models.pretrained import load_pretrained as load_pretrained

__version__: str
