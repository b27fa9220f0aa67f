"""The pages of documentation that are made from rows."""

import re
from dataclasses import replace

import pytest
from biased_coin import STUDY

from trialogue.errors import InputError
from trialogue_lab.ledger import Entry, judged
from trialogue_lab.ledger.pages.forest import forest
from trialogue_lab.ledger.pages.study_pages import studies_page, study_page, study_pictures


def test_every_picture_that_a_page_shows_is_drawn_and_the_other_way_round(entry: Entry) -> None:
    shown = re.findall(r"^!\[.*\]\((.*)\)$", study_page(entry), re.MULTILINE)
    assert sorted(shown) == sorted(f"{STUDY.name}/{name}" for name in study_pictures(entry))


def test_lines_of_a_table_have_one_number_of_cells(entry: Entry) -> None:
    text = study_page(entry) + studies_page([entry])
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(tables) == len(STUDY.tables) + 2 + len({verdict.claim.origin for verdict in entry.verdicts})
    for table in tables:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1, table
        assert len(table.splitlines()) > 2


def test_every_claim_is_told_with_its_verdict(entry: Entry) -> None:
    page = study_page(entry)
    for verdict in entry.verdicts:
        [line] = [
            line for line in page.splitlines() if line.startswith(f"| {verdict.claim.full_statement[:20]}")
        ]
        assert f"**{verdict.answer}**" in line


def test_the_picture_of_claims_shows_what_is_in_print(entry: Entry) -> None:
    def texts(published: str) -> list[str]:
        first = entry.verdicts[0]
        shown = replace(entry, verdicts=(replace(first, claim=replace(first.claim, published=published)),))
        [axes] = forest(shown).draw(shown.rows).axes
        return [text.get_text() for text in axes.texts]

    assert "published: 0.7   holds if > 0.5 (grade)" in texts("0.7")[-1]
    assert (
        "published: seventy in a hundred, or a …   holds if"
        in texts("seventy in a hundred, or a little more")[-1]
    )
    assert "in print" not in texts("not printed")[-1]


def test_a_study_without_a_result_says_how_to_make_one() -> None:
    with pytest.raises(InputError, match=f"study='{STUDY.name}': has no finished result: use `trialogue run"):
        study_page(judged(STUDY, None))
