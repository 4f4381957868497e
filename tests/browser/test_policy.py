"""The page is alone: it asks nothing of the network, and nothing put into it can act."""

from __future__ import annotations

import re

import pytest

from calshift.report import render_html
from tests.browser.conftest import ELSEWHERE
from tests.browser.pages import IMAGE, KINDS, SCRIPT, SHOWN_NAMES, odd_result, page_of, plain_report

pytestmark = pytest.mark.browser

POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="[^"]*">\n')
ACTS = {
    "inline script": "<script>alert('inline script')</script>",
    "script with a nonce": "<script nonce=x>alert('script with a nonce')</script>",
    "handler": """<img src="data:," onerror="alert('handler')">""",
    "data": """<script src="data:text/javascript,alert('data')"></script>""",
    "frame": """<iframe srcdoc="<script>alert('frame')</script>"></iframe>""",
}
LOADS = {
    "image": f'<img src="{ELSEWHERE}/image">',
    "script": f'<script src="{ELSEWHERE}/script"></script>',
    "style": f'<link rel="stylesheet" href="{ELSEWHERE}/style">',
    "frame": f'<iframe src="{ELSEWHERE}/frame"></iframe>',
    "background": f'<p style="background:url({ELSEWHERE}/background)">x</p>',
    "font": (
        f"<style>@font-face{{font-family:f;src:url({ELSEWHERE}/font)}}</style>"
        '<p style="font-family:f">x</p>'
    ),
    "media": f'<video src="{ELSEWHERE}/media" preload="auto"></video>',
}
FETCH = f"fetch('{ELSEWHERE}/fetch').catch(() => null)"


def with_injected(html: str, text: str) -> str:
    """The page with something put into its body."""
    assert "</main>" in html
    return html.replace("</main>", f"{text}</main>")


def without_policy(html: str) -> str:
    changed, count = POLICY.subn("", html)
    assert count == 1
    return changed


@pytest.mark.parametrize("kind", KINDS)
def test_page_loads_without_complaint_and_asks_for_nothing_else(visit, kind):
    found = visit(page_of(kind))
    assert found.complaints == []
    assert found.requests == [found.address]
    assert found.page.evaluate("document.documentElement.classList.contains('js')")
    assert found.page.evaluate("document.compatMode") == "CSS1Compat"


def test_policy_stands_before_all_that_it_governs():
    html = page_of("plain")
    policy = POLICY.search(html)
    assert policy.start() < min(html.index("<style"), html.index("<script"))
    assert "default-src &#39;none&#39;" in policy[0]


def refusals(found) -> int:
    return sum("Content Security Policy" in one for one in found.complaints)


def test_what_is_injected_cannot_act(visit):
    found = visit(with_injected(page_of("plain"), "".join(ACTS.values())))
    assert found.dialogs == []
    assert refusals(found) >= len(ACTS)


def test_without_the_policy_it_would_act(visit):
    found = visit(with_injected(without_policy(page_of("plain")), "".join(ACTS.values())))
    assert sorted(found.dialogs) == sorted(ACTS)


def test_what_is_injected_loads_nothing(visit):
    found = visit(with_injected(page_of("plain"), "".join(LOADS.values())))
    found.page.wait_for_load_state("networkidle")
    assert found.reached == []
    assert refusals(found) >= len(LOADS)


def test_without_the_policy_it_would_load(visit):
    found = visit(with_injected(without_policy(page_of("plain")), "".join(LOADS.values())))
    found.page.wait_for_load_state("networkidle")
    assert sorted(found.reached) == sorted(LOADS)


@pytest.mark.parametrize(("policy", "reached"), [(True, []), (False, ["fetch"])])
def test_even_a_script_that_runs_cannot_fetch(visit, policy, reached):
    found = visit(page_of("plain") if policy else without_policy(page_of("plain")))
    found.page.evaluate(FETCH)
    assert found.reached == reached


def test_a_changed_script_does_not_run(visit):
    html = page_of("plain")
    changed = html.replace('classList.add("js")', 'classList.add("js", "evil")')
    assert changed != html
    assert not visit(changed).page.evaluate("document.documentElement.classList.length")


def test_names_of_classes_are_text(visit):
    found = visit(page_of("odd names"))
    names = found.page.locator("#classes tbody td:first-child").all_text_contents()
    assert sorted(names) == sorted(SHOWN_NAMES)
    assert found.page.locator("img").count() == 0
    assert found.page.locator("script").count() == 1
    assert found.dialogs == []
    assert found.complaints == []


def test_names_are_text_even_where_no_policy_would_stop_them(visit):
    found = visit(without_policy(page_of("odd names")))
    assert IMAGE in found.page.locator("#warnings").text_content()
    assert found.page.locator("img").count() == 0
    assert found.dialogs == []


def test_files_and_the_command_are_text(visit):
    report = plain_report()
    report["command"] = SCRIPT
    report["inputs"] = {IMAGE: {"path": SCRIPT, "sha256": "0" * 64}}
    found = visit(without_policy(render_html(report)))
    shown = found.page.locator("#settings").text_content()
    assert shown.count(SCRIPT) == 2
    assert IMAGE in shown
    assert found.dialogs == []


def test_in_a_notebook_names_are_text(visit):
    shown = odd_result()._repr_html_()
    found = visit(f'<!doctype html><meta charset="utf-8"><body>{shown}</body>')
    text = found.page.locator("body").text_content()
    assert all(name in text for name in SHOWN_NAMES)
    assert found.page.locator("img, script").count() == 0
    assert found.dialogs == []
