from .claims import (
    Claim as Claim,
)
from .claims import (
    Pilot as Pilot,
)
from .claims import (
    Verdict as Verdict,
)
from .claims import (
    evaluate as evaluate,
)
from .entries import (
    Entry as Entry,
)
from .entries import (
    judged as judged,
)
from .entries import (
    ledger as ledger,
)
from .entries import (
    ledger_frame as ledger_frame,
)
from .entries import (
    ledger_records as ledger_records,
)
from .figures import Figure as Figure
from .results import (
    Result as Result,
)
from .results import (
    find_result as find_result,
)
from .results import (
    load_rows as load_rows,
)
from .tables import Table as Table
