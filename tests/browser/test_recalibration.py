"""The page of a recalibration: on a phone, on paper, in the dark, without scripts."""

from __future__ import annotations

import warnings
from functools import cache

import pytest

import calshift
from calshift import Predictions, UnreliableWeights
from calshift.recalibration.assessment.predicted_classes import PredictedClasses
from calshift.report import recalibration_dict, render_recalibration_html
from calshift.report.verdict import Gate
from tests.browser.pages import ODD_NAMES, SHOWN_NAMES, samples, screening_samples, sharper_samples
from tests.browser.test_appearance import A4, DESKTOP, pale, phone, width
from tests.browser.test_metrics import CUT
from tests.browser.test_policy import ACTS, LOADS, with_injected, without_policy

pytestmark = pytest.mark.browser


def fashion_samples():
    source, target = calshift.data.fashion_mnist()
    return source, target.p


KINDS = {
    "ten classes": fashion_samples,
    "two classes": screening_samples,
    "untrusted": sharper_samples,
    "odd names": lambda: samples(ODD_NAMES),
}


@cache
def page_of(kind: str) -> str:
    source, p_target = KINDS[kind]()
    target = Predictions(p_target, classes=source.classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreliableWeights)
        found = calshift.recalibrate(source, None, target)
    rows = PredictedClasses.of(source.n_classes, source.classes, "argmax", None)
    rows.add(target, found.requested.transform(target))  # so that there are changes
    report = recalibration_dict(found, Gate(), predicted=rows.to_dict(), curves=True)
    return render_recalibration_html(report)


@pytest.mark.parametrize("kind", KINDS)
def test_it_loads_nothing_and_has_no_script(visit, kind):
    found = visit(page_of(kind))
    assert found.complaints == []
    assert found.requests == [found.address]
    assert found.page.locator("script").count() == 0
    assert found.page.locator("#predicted tbody tr").count() > 1


def test_what_is_injected_cannot_act_and_loads_nothing(visit):
    found = visit(with_injected(page_of("ten classes"), "".join([*ACTS.values(), *LOADS.values()])))
    found.page.wait_for_load_state("networkidle")
    assert found.dialogs == []
    assert found.reached == []


def test_names_are_text_even_where_no_policy_would_stop_them(visit):
    found = visit(without_policy(page_of("odd names")))
    names = found.page.locator("#predicted tbody td:first-child").all_text_contents()
    assert names == list(SHOWN_NAMES)
    assert found.page.locator("img, script").count() == 0
    assert found.dialogs == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wide", [360, 320])
def test_a_phone_need_not_scroll_and_nothing_is_cut(visit, kind, wide):
    page = visit(page_of(kind), **phone(wide)).page
    assert width(page) <= wide
    assert page.locator(":is(td, .figure, .what):visible").evaluate_all(CUT) == []
    hidden = "all => all.map(one => one.scrollWidth - one.clientWidth)"
    assert max(page.locator(".scroll").evaluate_all(hidden)) <= 0


def test_on_a_phone_words_stand_below_their_line(visit):
    page = visit(page_of("ten classes"), **phone(360)).page
    for table in ("#predicted", "#trust"):
        for row in page.locator(f"{table} tbody tr").all()[:3]:
            name, before, after, words = (cell.bounding_box() for cell in row.locator("td").all())
            assert name["x"] < before["x"] < after["x"]
            assert words["y"] >= max(one["y"] + one["height"] for one in (before, after)) - 1
            assert words["width"] > 300


@pytest.mark.parametrize("kind", KINDS)
def test_a_desktop_shows_every_column(visit, kind):
    page = visit(page_of(kind), viewport=DESKTOP).page
    hidden = "all => all.map(one => one.scrollWidth - one.clientWidth)"
    assert max(page.locator(".scroll").evaluate_all(hidden)) <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["ten classes", "untrusted"])
def test_texts_stand_out(visit, kind, scheme):
    assert pale(visit(page_of(kind), color_scheme=scheme).page) == []


@pytest.mark.parametrize("kind", KINDS)
def test_on_paper_nothing_is_cut_off_or_pale(visit, kind):
    page = visit(page_of(kind), "print", color_scheme="dark", **phone(A4)).page
    assert width(page) <= A4
    assert pale(page) == []


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_of_recalibrations(visit, artefacts, kind):
    looks = {
        "light": {}, "dark": {"color_scheme": "dark"}, "phone": phone(360),
        "print": {"media": "print", **phone(A4)},
    }  # fmt: skip
    for look, options in looks.items():
        place = artefacts / f"recalibration-{kind.replace(' ', '-')}-{look}.png"
        visit(page_of(kind), **options).page.screenshot(path=place, full_page=True)
        assert place.stat().st_size > 10_000
