"""Samples as ArviZ `InferenceData`, which recent versions of ArviZ represent as an xarray `DataTree`."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from trialogue.extras import from_extra


def inference_data(
    posterior: Mapping[str, Tensor],
    sample_stats: Mapping[str, Tensor | None],
    dims: Mapping[str, list[str]],
    attrs: Mapping[str, Any] | None = None,
) -> Any:
    """Convert tensors to ArviZ `InferenceData` (an xarray `DataTree`).

    Args:
        posterior: Tensors (chains, draws, ...) by name, the variables of the group "posterior".
        sample_stats: Tensors (chains, draws) by name, the variables of the group "sample_stats". None leaves one out.
        dims: Names of the axes after chain and draw, by variable.
        attrs: Attributes of the group "posterior".

    Returns:
        The `DataTree`.

    Raises:
        InputError: If the extra `chains` is not installed.
    """
    arviz = from_extra("arviz_base", "chains")
    stats = {name: values.cpu().numpy() for name, values in sample_stats.items() if values is not None}
    groups = {"posterior": {name: values.cpu().numpy() for name, values in posterior.items()}}
    if stats:
        groups["sample_stats"] = stats
    # The check of conventions would warn about runs with more chains than draws.
    return arviz.from_dict(
        groups, dims=dict(dims), attrs={"posterior": dict(attrs or {})}, check_conventions=False
    )
