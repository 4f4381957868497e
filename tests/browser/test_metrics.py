"""The section "How good is the model now": on a phone, on paper, in the dark, in a notebook."""

from __future__ import annotations

import pytest

from tests.browser.pages import WITH_METRICS, metrics_of, page_of
from tests.browser.test_appearance import A4, DESKTOP, pale, phone, width

pytestmark = pytest.mark.browser

WORDS = ("Prevalence now", "Positive predictive value now", "Missed cases per 1000 now")
# whether all text of an element is inside it and inside the window
CUT = """all => all.filter(one => one.scrollWidth > one.clientWidth + 1 ||
  one.getBoundingClientRect().right > innerWidth).map(one => one.textContent)"""


@pytest.mark.parametrize("kind", ["metrics", "metrics untrusted"])
def test_a_desktop_shows_the_figures_without_scrolling(visit, kind):
    page = visit(page_of(kind), viewport={"width": 1280, "height": 1100}).page
    for words in WORDS:
        box = page.locator(".figures .figure", has_text=words).bounding_box()
        assert box["y"] + box["height"] <= 1100


@pytest.mark.parametrize("kind", WITH_METRICS)
@pytest.mark.parametrize("wide", [360, 320])
def test_on_a_phone_names_are_whole_and_now_comes_first(visit, kind, wide):
    page = visit(page_of(kind), **phone(wide)).page
    assert width(page) <= wide
    assert page.locator("#metrics :is(td, th, .figure, .what)").evaluate_all(CUT) == []
    for row in page.locator("table.metrics tbody tr").all():
        name, now, before, change = (cell.bounding_box() for cell in row.locator("td").all())
        assert name["y"] + name["height"] <= now["y"] + 1
        assert now["x"] < before["x"] < change["x"]
        assert now["y"] == pytest.approx(before["y"], abs=3)


def test_on_a_phone_heads_stand_above_their_columns(visit):
    page = visit(page_of("metrics"), **phone(360)).page
    heads = page.locator("table.metrics th:visible").all()
    cells = page.locator("table.metrics tbody tr").first.locator("td").all()[1:]
    assert [one.inner_text().split("\n")[0] for one in heads] == ["now", "before", "change"]
    for head, cell in zip(heads, cells, strict=True):
        assert head.bounding_box()["x"] == pytest.approx(cell.bounding_box()["x"], abs=2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["metrics", "metrics untrusted"])
def test_texts_stand_out(visit, kind, scheme):
    assert pale(visit(page_of(kind), color_scheme=scheme).page) == []


@pytest.mark.parametrize("kind", ["metrics", "metrics untrusted"])
def test_texts_stand_out_on_paper(visit, kind):
    page = visit(page_of(kind), "print", color_scheme="dark", **phone(A4)).page
    assert width(page) <= A4
    assert pale(page) == []


def test_what_is_not_trusted_looks_and_reads_otherwise(visit):
    def shown(kind: str) -> tuple[str, str, bool]:
        page = visit(page_of(kind)).page
        big = page.locator(".figures .big").first
        style = big.evaluate(
            "one => getComputedStyle(one).fontWeight + getComputedStyle(one).color"
        )
        now = page.locator("table.metrics .now").first
        weight = now.evaluate("one => getComputedStyle(one).fontWeight")
        return style, weight, "not trusted" in page.locator(".figures .figure").first.inner_text()

    trusted, doubtful = shown("metrics"), shown("metrics untrusted")
    assert trusted[0] != doubtful[0]
    assert trusted[1] != doubtful[1]
    assert (trusted[2], doubtful[2]) == (False, True)


def test_an_untrusted_section_begins_with_the_reason(visit):
    page = visit(page_of("metrics untrusted"), viewport=DESKTOP).page
    reason = page.locator("#metrics .notice")
    assert reason.is_visible()
    first = page.locator("#metrics .figure").first
    assert reason.bounding_box()["y"] < first.bounding_box()["y"]


@pytest.mark.parametrize("kind", ["metrics", "metrics of odd names"])
def test_a_notebook_shows_a_table(visit, kind):
    shown = f'<!doctype html><meta charset="utf-8"><body>{metrics_of(kind)._repr_html_()}</body>'
    found = visit(shown, viewport=DESKTOP)
    assert width(found.page) <= DESKTOP["width"]
    assert found.page.locator("table tbody tr").count() == len(metrics_of(kind))
    assert found.page.locator("script, img").count() == 0
    assert found.dialogs == []


@pytest.mark.parametrize("kind", ["metrics", "metrics untrusted", "metrics of many"])
def test_pictures_of_metrics(visit, artefacts, kind):
    looks = {
        "light": {}, "dark": {"color_scheme": "dark"}, "phone": phone(360),
        "print": {"media": "print", **phone(A4)},
    }  # fmt: skip
    for look, options in looks.items():
        place = artefacts / f"{kind.replace(' ', '-')}-{look}.png"
        visit(page_of(kind), **options).page.screenshot(path=place, full_page=True)
        assert place.stat().st_size > 10_000
