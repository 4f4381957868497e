"""The page in light and dark, on a phone, and on paper."""

from __future__ import annotations

import pytest

from tests.browser.pages import KINDS, odd_result, page_of, page_with_status

pytestmark = pytest.mark.browser

ENOUGH = 4.5  # WCAG 2.1, level AA, of text
PHONES = (360, 320)
DESKTOP = {"width": 1280, "height": 800}
A4 = 718  # px between margins of a centimetre
STATUSES = ("fine", "breached", "untrusted")
# of every element that holds text of its own: what it is, its colour, its background, its opacity
TEXTS = """() => {
  const solid = colour => !/, 0\\)$|transparent/.test(colour);
  const behind = one => {
    for (let e = one; e; e = e.parentElement)
      if (solid(getComputedStyle(e).backgroundColor)) return getComputedStyle(e).backgroundColor;
    return "rgb(255, 255, 255)";
  };
  const opacity = one => one ? getComputedStyle(one).opacity * opacity(one.parentElement) : 1;
  const own = one => [...one.childNodes].some(n => n.nodeType === 3 && n.data.trim());
  return [...document.body.querySelectorAll("*")]
    .filter(e => own(e) && !["SCRIPT", "title"].includes(e.tagName))
    .map(e => [
      `${e.tagName} ${e.textContent.trim().slice(0, 30)}`,
      e instanceof SVGElement ? getComputedStyle(e).fill : getComputedStyle(e).color,
      behind(e), opacity(e),
    ]);
}"""


def channels(colour: str) -> list[float]:
    """Red, green, blue from 0 to 1."""
    return [float(one) / 255 for one in colour[colour.index("(") + 1 : -1].split(",")[:3]]


def luminance(rgb: list[float]) -> float:
    """WCAG's relative luminance."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(colour: str, background: str, opacity: float = 1.0) -> float:
    below = channels(background)
    seen = [opacity * a + (1 - opacity) * b for a, b in zip(channels(colour), below, strict=True)]
    low, high = sorted((luminance(seen), luminance(below)))
    return (high + 0.05) / (low + 0.05)


def pale(page) -> list[str]:
    """Texts that stand out too little from what is behind them."""
    found = page.evaluate(TEXTS)
    assert len(found) > 50
    return [what for what, *colours in found if contrast(*colours) < ENOUGH]


def background(page) -> str:
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def width(page) -> int:
    return page.evaluate("document.documentElement.scrollWidth")


def phone(wide: int) -> dict:
    return {"viewport": {"width": wide, "height": 740}}


def test_contrast_is_that_of_the_standard():
    assert contrast("rgb(0, 0, 0)", "rgb(255, 255, 255)") == pytest.approx(21)
    assert contrast("rgb(118, 118, 118)", "rgb(255, 255, 255)") == pytest.approx(4.54, abs=0.01)
    assert contrast("rgb(0, 0, 0)", "rgb(255, 255, 255)", 0.0) == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("status", STATUSES)
def test_text_stands_out(visit, status, scheme):
    page = visit(page_with_status(status), color_scheme=scheme).page
    for what in ("body", ".faint", ".verdict strong"):
        colour = page.locator(what).first.evaluate("one => getComputedStyle(one).color")
        assert contrast(colour, background(page)) >= ENOUGH
    assert pale(page) == []


def test_dark_is_dark_and_light_is_light(visit):
    light, dark = (
        luminance(channels(background(visit(page_of("plain"), color_scheme=one).page)))
        for one in ("light", "dark")
    )
    assert dark < 0.05
    assert light > 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_a_phone_need_not_scroll_sideways(visit, kind):
    for wide in PHONES:
        assert width(visit(page_of(kind), **phone(wide)).page) <= wide


@pytest.mark.parametrize("kind", KINDS)
def test_tables_scroll_on_their_own_where_a_phone_is_too_narrow(visit, kind):
    page = visit(page_of(kind), **phone(360)).page
    for box in page.locator(".scroll").all():
        box.evaluate("one => one.scrollTo(10000, 0)")
        end = box.locator("th").last.evaluate("one => one.getBoundingClientRect().right")
        assert end <= 360


@pytest.mark.parametrize("kind", KINDS)
def test_a_desktop_shows_every_column(visit, kind):
    page = visit(page_of(kind), viewport=DESKTOP).page
    hidden = "all => all.map(one => one.scrollWidth - one.clientWidth)"
    assert max(page.locator(".scroll").evaluate_all(hidden)) <= 0


def test_in_a_notebook_a_long_name_is_broken(visit):
    shown = f'<!doctype html><meta charset="utf-8"><body>{odd_result()._repr_html_()}</body>'
    assert width(visit(shown, viewport=DESKTOP).page) <= DESKTOP["width"]


@pytest.mark.parametrize("status", STATUSES)
def test_paper_is_white_and_its_text_stands_out_also_where_the_screen_is_dark(visit, status):
    page = visit(page_with_status(status), "print", color_scheme="dark").page
    assert background(page) == "rgb(255, 255, 255)"
    assert pale(page) == []


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_cut_off_on_paper(visit, kind):
    assert width(visit(page_of(kind), "print", **phone(A4)).page) <= A4


def test_on_paper_an_interval_is_not_larger_than_its_estimate(visit):
    page = visit(page_of("plain"), "print").page
    sizes = "one => [one, one.parentElement].map(e => parseFloat(getComputedStyle(e).fontSize))"
    interval, estimate = page.locator("#classes .ends").first.evaluate(sizes)
    assert interval <= estimate


def test_on_paper_numbers_of_conditions_are_in_one_line(visit):
    cells = visit(page_of("untrusted"), "print", **phone(A4)).page.locator("#conditions tbody td")
    lines = cells.evaluate_all(
        """all => all.filter(e => [1, 2, 3].includes(e.cellIndex) && e.textContent).map(e => {
          const text = document.createRange();
          text.selectNodeContents(e);
          return new Set([...text.getClientRects()].map(box => box.top)).size;
        })"""
    )
    assert set(lines) == {1}


def test_page_prints(visit, artefacts):
    page = visit(page_of("odd names"), "print", color_scheme="dark").page
    margin = dict.fromkeys(("top", "right", "bottom", "left"), "1cm")
    printed = page.pdf(path=artefacts / "print.pdf", format="A4", margin=margin)
    assert printed.startswith(b"%PDF-")
    assert 1 <= printed.count(b"/Type /Page\n") <= 6


@pytest.mark.parametrize("kind", ["plain", "untrusted", "missing class", "odd names"])
def test_pictures_for_people(visit, artefacts, kind):
    schemes = {one: {"color_scheme": one} for one in ("light", "dark")}
    sizes = {"phone": phone(360), "print": {"media": "print", **phone(A4)}}
    for look, options in {**schemes, **sizes}.items():
        page = visit(page_of(kind), **options).page
        place = artefacts / f"{kind.replace(' ', '-')}-{look}.png"
        page.screenshot(path=place, full_page=True)
        assert place.stat().st_size > 10_000
