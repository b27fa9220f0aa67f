"""Tasks of a run: computations per random target, and outputs of the library's sampler."""

from trialogue_lab.ledger import Part, parts_by_seed
from trialogue_lab.studies.smc_criteria.branches import measure_branches
from trialogue_lab.studies.smc_criteria.config import Config
from trialogue_lab.studies.smc_criteria.curves import measure_curves
from trialogue_lab.studies.smc_criteria.draws import measure_draws
from trialogue_lab.studies.smc_criteria.products import measure_products
from trialogue_lab.studies.smc_criteria.trees import measure_library, measure_trees


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, which compute how many particles sequential Monte Carlo needs.

    Particles are sequences that the sampler extends in parallel.

    Args:
        config: Settings of the run.

    Returns:
        Five tasks per seed compute exact results for random targets, small random models (trees), and ROC curves of
        verifiers. Further tasks sample outputs, one for each set of outputs.
    """
    computed = {
        "products": measure_products,
        "branches": measure_branches,
        "curves": measure_curves,
        "trees": measure_trees,
        "library": measure_library,
    }
    return [
        *parts_by_seed(config, config.seeds, **computed),
        *parts_by_seed(config, config.draw_seeds, draws=measure_draws),
    ]
