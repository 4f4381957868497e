"""What every kind of page shows, with scripts and without."""

from __future__ import annotations

import re

import pytest

from calshift.report import render_html
from tests.browser.pages import (
    KINDS,
    LONG,
    NAMES,
    SHOWN_NAMES,
    page_of,
    page_with_status,
    plain_report,
    report_of_many,
    result_of_a_thousand_classes,
    written,
)

pytestmark = pytest.mark.browser

NO_WORD = re.compile(r"\b(None|nan|inf|undefined|NaN)\b|\{\{|\{%")
LARGEST = 500_000  # bytes of a page
SECTIONS = {"errors", "priors", "reliability", "classes", "weights", "assumption", "settings"}
PARTS = ("#errors table", "#classes table", "#priors .priors", "#reliability svg", "#settings dl")
LABELS = {"fine": "Within the limit", "breached": "Above the limit", "untrusted": "Not reliable"}


def size(html: str) -> int:
    return len(html.encode("utf-8"))


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_all_is_readable_with_scripts_and_without(visit, kind, scripts):
    shown = visit(page_of(kind), java_script_enabled=scripts).page
    assert shown.locator(".verdict p").is_visible()
    for what in PARTS:
        assert shown.locator(what).count() > 0
        assert all(one.is_visible() for one in shown.locator(what).all())
    wanted = SECTIONS - ({"assumption"} if kind == "unchecked" else set())
    sections = set(shown.locator("main section").evaluate_all("all => all.map(s => s.id)"))
    assert sections >= wanted
    assert ("assumption" in sections) == ("assumption" in wanted)
    assert not NO_WORD.search(shown.locator("body").inner_text())


def test_without_scripts_nothing_looks_sortable(visit):
    for scripts in (True, False):
        shown = visit(page_of("plain"), java_script_enabled=scripts).page
        arrow = shown.locator("#classes th button").first.evaluate(
            "one => getComputedStyle(one, '::after').content"
        )
        assert (arrow != "none") == scripts


@pytest.mark.parametrize("status", LABELS)
def test_the_verdict_says_in_words_what_its_colour_says(visit, status):
    verdict = visit(page_with_status(status)).page.locator(".verdict")
    assert verdict.locator("strong").text_content() == LABELS[status]
    assert verdict.locator("strong").is_visible()


def test_colours_of_the_three_verdicts_differ(visit):
    def colour(status: str) -> str:
        strong = visit(page_with_status(status)).page.locator(".verdict strong")
        return strong.evaluate("one => getComputedStyle(one).color")

    assert len({colour(status) for status in LABELS}) == 3


def test_an_untrusted_page_says_why_and_what_to_do(visit):
    shown = visit(page_of("untrusted")).page
    assert shown.locator("#warnings li").count() > 0
    assert shown.locator("#advice li").count() > 0
    assert "may be wrong" in shown.locator(".verdict").text_content()


def test_a_binary_page_has_two_classes_and_one_diagram(visit):
    shown = visit(page_of("binary")).page
    assert shown.locator("#classes tbody tr").count() == 2
    assert shown.locator("#reliability svg").count() == 1


def test_a_class_that_the_source_lacks_has_no_numbers(visit):
    row = visit(page_of("missing class")).page.locator("#classes tr", has_text="ferret")
    weight, _, now = row.locator("td").all_inner_texts()[3:6]
    assert weight.strip() == "unseen"  # an unseen weight has no standard error
    assert now.strip() == "unknown"


def test_a_page_without_interval_speaks_of_none(visit):
    shown = visit(page_of("no interval")).page
    assert "no interval" in shown.locator(".verdict").text_content()
    assert shown.locator("#errors .ends, #classes td:nth-child(6) .ends").count() == 0
    assert "Each interval" not in shown.locator("#classes").inner_text()


def test_given_weights_are_not_called_estimated(visit):
    shown = visit(page_of("given weights")).page
    assert "given" in shown.locator("#weights").inner_text()
    assert "estimated" not in shown.locator("#priors").inner_text()
    assert "standard error" not in shown.locator("#classes").inner_text()


@pytest.mark.parametrize("clear", [True, False])
def test_a_change_that_is_not_clear_is_said_to_be_none(visit, clear):
    report = plain_report()
    report["change"] = {"root": 0.03, "root_interval": [0.01 if clear else -0.01, 0.07]}
    report["change"]["clear"] = clear
    shown = visit(render_html(report)).page.locator("#errors").inner_text()
    assert ("no clear change" in shown) == (not clear)


def test_names_of_every_script_are_shown_and_long_ones_kept_whole_in_their_title(visit):
    cells = visit(page_of("odd names")).page.locator("#classes td:first-child")
    for name in SHOWN_NAMES:
        assert cells.get_by_text(name, exact=True).is_visible()
    assert cells.locator("[title]").get_attribute("title") == LONG


def test_names_are_in_every_part_that_is_about_classes(visit):
    shown = visit(page_of("plain")).page
    for part in ("#priors", "#reliability", "#classes", "#assumption"):
        text = shown.locator(part).inner_text()
        assert all(name in text for name in NAMES)


def test_diagrams_have_a_marker_for_both_samples(visit):
    for svg in visit(page_of("plain")).page.locator("#reliability svg").all():
        assert svg.locator("g.source rect.marker").count() > 0
        assert svg.locator("g.target circle.marker").count() > 0
        assert svg.get_attribute("aria-label").startswith("Reliability of ")


def test_a_thousand_classes_make_a_small_page_that_sorts(visit):
    html = written(result_of_a_thousand_classes())
    assert size(html) < LARGEST
    found = visit(html)
    assert found.complaints == []
    found.page.locator("#classes th button").first.click()
    assert found.page.locator("#classes th").first.get_attribute("aria-sort") == "ascending"
    assert "more classes are in the JSON output" in found.page.locator("#classes").inner_text()


@pytest.mark.parametrize("count", [1000, 5000])
def test_pages_of_many_classes_stay_small(visit, count):
    html = render_html(report_of_many(count))
    assert size(html) < LARGEST
    found = visit(html)
    shown = found.page.locator("#classes tbody tr").count()
    assert f"{count - shown} more classes" in found.page.locator("#classes").inner_text()
    assert found.complaints == []


def test_the_missing_class_is_named_in_the_warning(visit):
    assert "ferret" in visit(page_of("missing class")).page.locator("#warnings").inner_text()
