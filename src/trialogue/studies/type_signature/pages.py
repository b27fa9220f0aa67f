"""Tables of the study `type-signature`: trials per prime, primes by density, costs, work-arounds, networks."""

from pandas import DataFrame

from trialogue.ledger import Table
from trialogue.studies.rows import kind
from trialogue.studies.type_signature_rows import ROUTINES, STREAMS, TESTS, costs, network_digits, networks

_HEADS = {TESTS: "primality tests, factors first"}


def _trials(rows: DataFrame) -> DataFrame:
    chosen = kind(rows, "trials")
    lines = {}
    for digits, group in chosen.groupby("digits"):
        ordered = group.sort_values("position")
        lines[f"n = {digits:g}"] = {
            "primes": int(ordered.primes.iloc[0]),
            "trials, first digit": ordered.trials.iloc[0],
            "trials, last digit": ordered.trials.iloc[-1],
        }
    return DataFrame.from_dict(lines, orient="index")


def _density(rows: DataFrame) -> DataFrame:
    chosen = kind(rows, "density")
    lines: dict[str, dict[str, float]] = {}
    for (digits, length), group in chosen.groupby(["digits", "length"]):
        by_counted = group.set_index("counted").variation
        lines[f"n = {digits:g}, first {length:g}"] = {
            "integral alone": by_counted.loc[0],
            "last four counted": by_counted.loc[4],
            "uniform digits": group.uniform.iloc[0],
        }
    return DataFrame.from_dict(lines, orient="index")


def _costs(rows: DataFrame) -> DataFrame:
    return _by_size(rows, "mean")


def _costs_deviation(rows: DataFrame) -> DataFrame:
    return _by_size(rows, "std")


def _by_size(rows: DataFrame, how: str) -> DataFrame:
    columns = {_HEADS.get(routine, f"{routine}, product first"): costs(rows, routine) for routine in ROUTINES}
    frame = DataFrame({head: table.agg(how) for head, table in columns.items()})
    frame.index = [f"n = {digits:g}" for digits in frame.index]
    return frame


def _laws(rows: DataFrame) -> DataFrame:
    lines: dict[str, dict[str, object]] = {}
    for one in kind(rows, "law").to_dict("records"):
        lines[f"{one['stream']}, n = {one['digits']:g}"] = {
            "TV": one["variation"],
            "N / 2^b": None,
            "factorings": int(one["factorings"]),
        }
    for one in kind(rows, "seed").to_dict("records"):
        lines[f"seed of {one['bits']:g} bits, n = {one['digits']:g}"] = {
            "TV": one["variation"],
            "N / 2^b": one["bound"],
            "factorings": int(one["factorings"]),
        }
    return DataFrame.from_dict(lines, orient="index")


def _networks(rows: DataFrame) -> DataFrame:
    return _by_network(rows, "mean")


def _networks_deviation(rows: DataFrame) -> DataFrame:
    return _by_network(rows, "std")


def _by_network(rows: DataFrame, how: str) -> DataFrame:
    columns = {"valid": "valid tuples", "overlap": "overlap with the law", "excess": "KL (nats)"}
    lines = {}
    for digits in network_digits(rows):
        for stream in STREAMS:
            chosen = networks(rows, stream, digits)[list(columns)].agg(how)
            lines[f"n = {digits}, {stream}"] = {head: chosen[column] for column, head in columns.items()}
    return DataFrame.from_dict(lines, orient="index")


TABLES = (
    Table(
        title="Random primes by trial: primes, and expected trials per digit",
        source='Section "Randomized Tasks"',
        ours=_trials,
        rows_are="digits",
        note="Exact. At most n ln 10, about.",
    ),
    Table(
        title="Random primes by density: total variation of the first digits",
        source='Appendix, "Generating primes deterministically"',
        ours=_density,
        rows_are="digits",
        note="Exact. Once the last digits are counted the error stays what it was.",
    ),
    Table(
        title="Cost of the first digit of the second number of the tuple",
        source='Section "Factoring"',
        ours=_costs,
        deviation=_costs_deviation,
        rows_are="primes",
        note="Means over tuples; ± is the deviation over seeds.",
    ),
    Table(
        title="Laws of [pq, p, q] token by token",
        source='Sections "Factoring" and "Ways to get around this"',
        ours=_laws,
        rows_are="oracle",
        note="By enumeration; factorings are those of the whole enumeration, each prefix asked once.",
    ),
    Table(
        title="Networks trained on the same number of tuples",
        source="not in the post",
        ours=_networks,
        deviation=_networks_deviation,
        rows_are="trained on",
        note="± is the deviation over trainings. With a hidden stream the overlap counts true hidden streams only.",
    ),
)
