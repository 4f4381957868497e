"""Tables are sorted by their headers, with the mouse and with the keyboard."""

from __future__ import annotations

import pytest

from tests.browser.pages import page_of, page_of_classes

pytestmark = pytest.mark.browser

NUMBERS = [None, 0.5, 10.25, 0.25]  # as text, even counted as people do, 0.5 is before 0.25
UP = ["0.25", "0.5", "10.25", ""]
DOWN = ["10.25", "0.5", "0.25", ""]
COLUMNS = {
    "source prior": "prior_source",
    "target prior": "prior_target",
    "weight": "weight",
    "source error": "source_root",
    "target error": "root",
}
NEVER_UNKNOWN = ("prior_source", "prior_target")


def header(page, name, table="#classes"):
    return page.locator(f"{table} th", has=page.locator(f'button:text-is("{name}")'))


def column(page, name, table="#classes"):
    """Values of a column from top to bottom: as the script knows them, or else as text."""
    at = header(page, name, table).evaluate("head => head.cellIndex")
    cells = page.locator(f"{table} tbody tr td:nth-child({at + 1})")
    return cells.evaluate_all("all => all.map(c => c.dataset.v ?? c.textContent.trim())")


def marked(page, table="#classes"):
    """The headers that say how they are sorted."""
    heads = page.locator(f"{table} th[aria-sort]")
    return heads.evaluate_all("all => all.map(h => [h.innerText.trim(), h.ariaSort])")


@pytest.mark.parametrize("name", COLUMNS)
def test_numbers_sort_as_numbers_and_what_is_unknown_comes_last(visit, name):
    known = COLUMNS[name] in NEVER_UNKNOWN
    numbers = [5.0 if one is None else one for one in NUMBERS] if known else NUMBERS
    down = ["10.25", "5.0", "0.5", "0.25"] if known else DOWN
    up = down[::-1] if known else UP
    page = visit(page_of_classes(**{COLUMNS[name]: numbers})).page
    header(page, "class").locator("button").click()  # what is not known stands first
    for wanted, direction in ((down, "descending"), (up, "ascending"), (down, "descending")):
        header(page, name).locator("button").click()
        assert column(page, name) == wanted
        assert marked(page) == [[name, direction]]


def test_names_sort_as_people_count(visit):
    page = visit(page_of_classes(**{"class": ["class 10", "zebra", "class 9", "Ape"]})).page
    up = ["Ape", "class 9", "class 10", "zebra"]
    for wanted, direction in ((up, "ascending"), (up[::-1], "descending"), (up, "ascending")):
        header(page, "class").locator("button").click()
        assert column(page, "class") == wanted
        assert marked(page) == [["class", direction]]


def test_rows_move_as_a_whole(visit):
    page = visit(page_of("missing class")).page
    rows = page.locator("#classes tbody tr")
    before = sorted(rows.all_inner_texts())
    header(page, "target prior").locator("button").click()
    assert sorted(rows.all_inner_texts()) == before


def test_a_missing_class_comes_last_by_its_weight_both_ways(visit):
    page = visit(page_of("missing class")).page
    for _ in range(2):
        header(page, "weight").locator("button").click()
        assert column(page, "class")[-1] == "ferret"


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_the_keyboard_sorts_too(visit, key):
    page = visit(page_of_classes(weight=NUMBERS)).page
    header(page, "target prior").locator("button").focus()
    page.keyboard.press("Tab")
    focused = page.locator(":focus")
    assert focused.inner_text() == "weight"
    assert focused.evaluate("one => getComputedStyle(one).outlineStyle") == "solid"
    for wanted in (DOWN, UP):
        page.keyboard.press(key)
        assert column(page, "weight") == wanted


@pytest.mark.parametrize(("kind", "name"), [("plain", "target error"), ("binary", "target prior")])
def test_the_page_says_how_it_comes_sorted(visit, kind, name):
    page = visit(page_of(kind)).page
    values = [float(one) for one in column(page, name)]
    assert values == sorted(values, reverse=True)
    assert marked(page) == [[name, "descending"]]


def test_headers_are_called_by_their_words(visit):
    page = visit(page_of("plain")).page
    for name in ("class", *COLUMNS):  # the arrow is not read aloud: aria-sort says it
        button = page.locator("#classes").get_by_role("button", name=name, exact=True)
        assert button.count() == 1


def test_tables_are_sorted_apart(visit):
    page = visit(page_of("plain")).page
    before = column(page, "class")
    header(page, "observed share", "#assumption").locator("button").click()
    shares = [float(one) for one in column(page, "observed share", "#assumption")]
    assert shares == sorted(shares, reverse=True)
    assert column(page, "class") == before
