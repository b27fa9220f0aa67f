"""Tests of documentation pages of studies."""

import re
from dataclasses import replace

from biased_coin import STUDY

from refusals import expect_error
from trialogue_lab import studies
from trialogue_lab.ledger import Entry, judged
from trialogue_lab.ledger.pages.forest import forest
from trialogue_lab.ledger.pages.study_pages import cited_documents, studies_page, study_page, study_pictures


def test_a_page_shows_all_its_figures(entry: Entry) -> None:
    shown = re.findall(r"^\[!\[.*\]\((.*)\)\]\(\1\)$", study_page(entry), re.MULTILINE)
    assert sorted(shown) == sorted(f"{STUDY.name}/{name}" for name in study_pictures(entry))


def test_rows_of_a_table_have_equal_numbers_of_cells(entry: Entry) -> None:
    text = study_page(entry) + studies_page([entry])
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(tables) == len(STUDY.tables) + 2 + len({verdict.claim.origin for verdict in entry.verdicts})
    for table in tables:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1, table
        assert len(table.splitlines()) > 2


def test_every_claim_is_shown_with_its_verdict(entry: Entry) -> None:
    lines = study_page(entry).splitlines()
    for verdict in entry.verdicts:
        [line] = [line for line in lines if line.startswith(f"| {verdict.claim.full_statement[:20]}")]
        assert f"**{verdict.answer}**" in line


def test_the_forest_plot_shows_published_numbers(entry: Entry) -> None:
    def words(published: str) -> str:
        first = entry.verdicts[0]
        shown = replace(entry, verdicts=(replace(first, claim=replace(first.claim, published=published)),))
        [axes] = forest(shown).draw(shown.rows).axes
        return axes.texts[-1].get_text()

    assert "published: 0.7   holds if > 0.5*" in words("0.7")
    shortened = words("seventy in a hundred, or a little more")
    assert "published: seventy in a hundred, or a …   holds if" in shortened
    assert "published" not in words("not printed")


def test_a_study_without_a_result_has_no_page() -> None:
    hint = f"study='{STUDY.name}': has no finished result: use `trialogue run"
    expect_error(hint, study_page, judged(STUDY, None))


def test_a_page_links_to_the_publications_of_its_statements() -> None:
    study = studies.find("exact-rejection")
    assert list(cited_documents(study)) == ["cars", "asap"]
    assert cited_documents(STUDY) == {}
