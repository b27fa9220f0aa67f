"""Every entry of the five documents has a row in the table of coverage, with code, claims and tests that exist."""

import importlib.util
import re
from dataclasses import replace
from pathlib import Path

import pytest

from refusals import expect_error
from trialogue_lab.ledger.pages.screens import matches
from trialogue_lab.ledger.stored import COMMITTED, PLACES

ROOT = Path(__file__).parents[1]
IDENTIFIERS = ROOT / "tests" / "document_entries.txt"
ENTRIES = ROOT.parent / "shared" / "claims"
"""Lists of the entries of the documents, which are not part of the repository."""


@pytest.fixture(scope="module")
def coverage():
    path = ROOT / "docs" / "document_coverage.py"
    spec = importlib.util.spec_from_file_location("document_coverage", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def sections(coverage):
    return coverage.load_rows()


@pytest.fixture(scope="module")
def claims(coverage):
    return coverage.load_claims()


def test_every_entry_has_one_row(sections):
    rows = [row.identifier for rows in sections.values() for row in rows]
    assert sorted(rows) == IDENTIFIERS.read_text(encoding="utf-8").splitlines()


def test_the_page_is_generated_from_existing_code_claims_and_tests(coverage, sections, claims):
    page = coverage.make_page(sections, claims)
    assert page == coverage.PAGE.read_text(encoding="utf-8"), "run `make pages`"
    links = dict(re.findall(r"^\[(\d+)\]: (\.\./.*\.py)$", page, re.MULTILINE))
    assert set(re.findall(r"`\]\[(\d+)\]", page)) == links.keys()
    assert len(links) > 100
    assert all((coverage.PAGE.parent / link).is_file() for link in links.values())
    assert links["1"] == "../src/trialogue/data/potts/chain.py"
    assert "[`PottsChain.max_energy`][1]" in page


def test_the_ledger_finds_all_claims_of_an_entry_by_its_name(coverage, sections, claims):
    places = (COMMITTED / PLACES).read_text(encoding="utf-8")
    assert places == coverage.list_places(sections, claims), "run `make pages`"
    rows = [(row, coverage.claims_of(row, claims)) for rows in sections.values() for row in rows]
    assert sum(bool(own) for _, own in rows) > 150
    missed = {row.place for row, own in rows if not all(matches(claim, row.place) for claim in own)}
    assert not missed


def test_every_published_claim_of_the_documents_belongs_to_an_entry(coverage, sections, claims):
    rows = [row for rows in sections.values() for row in rows]
    found = {(claim["study"], claim["claim"]) for row in rows for claim in coverage.claims_of(row, claims)}
    documents = {row.document for row in rows}
    published = {
        (claim["study"], claim["claim"])
        for claim in claims
        if (claim["statement_id"] or "").partition(":")[0] in documents
    }
    assert len(published) > 300
    assert not published - found


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"code": ["theory.potts.no_such_module.one_wall"]}, "no such name can be imported"),
        ({"code": ["trialogue.data.PottsChain.no_such_name"]}, "no such name can be imported"),
        ({"statements": ["S0-T1"]}, "thesis:Table 0='S0-T1': the ledger has no such claim"),
        ({"claims": ["query-complexity/no-such-*"]}, "the ledger has no such claim"),
        ({"tests": ["tests/test_coverage.py::test_of_nothing"]}, "there is no such test"),
        ({"code": ["trialogue.data.PottsChain"]}, "say why it has neither a verdict nor a test"),
    ],
)
def test_rows_with_errors_are_rejected(changed, message, coverage, sections, claims):
    (row, *_), *_ = sections.values()
    row = replace(row, document="thesis", name="Table 0", entry={"title": "A table"} | changed)

    def state():
        return coverage.check(row, coverage.claims_of(row, claims))

    expect_error(message, state)


def test_entries_without_a_number_need_a_place(coverage, sections):
    row = next(row for rows in sections.values() for row in rows if " " not in row.name)
    assert row.place == row.entry["place"]
    entry = {key: value for key, value in row.entry.items() if key != "place"}
    expect_error(
        "say where the document has it: place", lambda: coverage.check(replace(row, entry=entry), [])
    )


def test_the_state_combines_the_verdicts_of_the_published_claims(coverage, sections):
    (row, *_), *_ = sections.values()

    def state(*verdicts):
        return coverage.check(row, [{"origin": "published", "verdict": verdict} for verdict in verdicts])

    cases = {
        ("holds", "not tested"): "holds",
        ("holds", "undecided"): "partly holds",
        ("holds", "undecided", "refuted"): "partly refuted",
        ("undecided", "refuted"): "refuted",
        ("undecided", "withdrawn"): "undecided",
    }
    assert {verdicts: state(*verdicts) for verdicts in cases} == cases


def test_statements_include_their_parts_only_with_an_asterisk(coverage, sections, claims):
    (row, *_), *_ = sections.values()

    def found(statement):
        chosen = replace(row, document="thesis", entry={"statements": [statement]})
        return {claim["statement_id"] for claim in coverage.claims_of(chosen, claims)}

    assert found("V-T311") == {"thesis:V-T311"}
    assert found("V-T311.*") == {"thesis:V-T311", "thesis:V-T311.proof"}  # and not V-T311b


@pytest.mark.skipif(not ENTRIES.is_dir(), reason="the lists of the entries are not part of the repository")
def test_the_identifiers_are_those_of_the_lists_of_entries():
    assert IDENTIFIERS.read_text(encoding="utf-8").splitlines() == sorted(listed_identifiers(ENTRIES))


DOCUMENTS = {
    "potts": "potts",
    "interaction_order": "clones",
    "type_signature": "type-signature",
    "memorization": "memorization",
    "topics": "thesis",
    "dyck_mechanisms": "thesis",
    "verification": "thesis",
    "masked": "thesis",
}
"""Document of each list of entries."""
KINDS = {
    "Definition": ("Definition", "Def", "D"),
    "Theorem": ("Theorem", "Thm", "T", ""),
    "Lemma": ("Lemma", "L"),
    "Proposition": ("Proposition", "Prop"),
    "Corollary": ("Corollary", "Cor", "C"),
    "Assumption": ("Assumption", "A"),
    "Table": ("Table", "Tab"),
    "Figure": ("Figure", "Fig"),
    "Algorithm": ("Algorithm",),
    "Remark": ("Remark",),
    "Claim": ("Claim",),
    "Experiment": ("Experiment", "Exp"),
}
"""Words for each kind of numbered entry, in text and at the start of keys."""
KIND_OF = {word: kind for kind, words in KINDS.items() for word in words}
NUMBER = r"\d+(?:\.\d+)*[a-z]?"
NUMBERS = rf"{NUMBER}(?:(?:\s*(?:,|/|-|–|=)\s*|,? and ){NUMBER}(?!\d*\s*%))*"
WORDS = "|".join(sorted((word for word in KIND_OF if len(word) > 1), key=len, reverse=True))
HEADING = re.compile(r"#{1,3} ((?:S[014]|[A-Z])-\S*)\s*(.*)")
TITLE = 75
"""Number of characters of a heading in which an entry names its own number, and not another entry."""


def listed_identifiers(folder):
    """Return the numbered entries that the lists name, and the keys of entries without a number."""
    found = set()
    for name, document in DOCUMENTS.items():
        for line in (folder / f"{name}.md").read_text(encoding="utf-8").splitlines():
            if heading := HEADING.match(line):
                key = heading[1].rstrip(",:")
                own = {*numbered(document, f"{key} {heading[2]}"[:TITLE]), *numbers_of_key(document, key)}
                found |= {f"{document}:{each}" for each in own or {key}}
            if document not in ("clones", "type-signature"):
                found |= {f"{document}:{each}" for each in numbered(document, line)}
            if bullet := re.match(r" ?- (2\.2\.\d+(?:, 2\.2\.\d+)*) ", line):
                found |= {f"{document}:{each}" for each in expand("Lemma", bullet[1])}
            if document == "memorization":
                found |= {f"{document}:{each}" for each in re.findall(r"\b(Large|Deep): N=", line)}
    return found


def numbered(document, text):
    """Return the entries that a text names by kind and number, such as "Theorem 3.1.1"."""
    names = re.findall(rf"\b({WORDS})s?\.?\s*({NUMBERS})", text)
    return [
        each for word, numbers in names for each in expand(KIND_OF[word], numbers) if is_valid(document, each)
    ]


def numbers_of_key(document, key):
    """Return the entries whose numbers are part of a key, such as "D-T2.2.1" or "T-Fig2.7/2.8"."""
    match = re.fullmatch(rf"(?:S\d|[A-Z])-([A-Za-z]*)({NUMBERS})", key)
    if not match or match[1] not in KIND_OF or ("." not in match[2] and match[1] not in ("Fig", "Tab")):
        return []
    return [each for each in expand(KIND_OF[match[1]], match[2]) if is_valid(document, each)]


def expand(kind, numbers):
    """Return "<kind> <number>" for each number of a list with ranges, such as "3.1.1-3.1.7"."""
    found, at = [], 0
    for match in re.finditer(NUMBER, numbers):
        if numbers[at : match.start()].strip() in ("-", "–"):
            chapter, dot, last = match[0].rpartition(".")
            first = re.findall(r"\d+", found[-1])[-1]
            found += [f"{kind} {chapter}{dot}{number}" for number in range(int(first) + 1, int(last))]
        found.append(f"{kind} {match[0]}")
        at = match.end()
    return found


def is_valid(document, name):
    """Return whether a document has entries of this kind with as many parts in their number."""
    kind, number = name.split()
    parts = number.count(".") + 1
    if document == "thesis":
        return parts == {"Figure": 2, "Table": 2, "Algorithm": 1}.get(kind, 3)
    if document == "clones":
        return kind in ("Figure", "Table")
    return (parts > 1) == (document == "potts")
