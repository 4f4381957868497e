"""One headless Chromium a module, and pages opened in it that remember all they did."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
ELSEWHERE = "http://elsewhere.test"
PATIENCE = 5_000  # ms that an action may take


@dataclass
class Visit:
    """A page that is open, and what happened in it since it was opened."""

    page: Any
    address: str = ""
    complaints: list[str] = field(default_factory=list)  # of the console, and errors of scripts
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    reached: list[str] = field(default_factory=list)  # addresses elsewhere that would be loaded

    def __post_init__(self) -> None:
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", self._dismiss)
        self.page.route(f"{ELSEWHERE}/**", self._answer)
        self.page.set_default_timeout(PATIENCE)

    def open(self, address: str) -> Visit:
        for happened in (self.complaints, self.requests, self.dialogs, self.reached):
            happened.clear()
        self.address = address
        self.page.goto(address)
        return self

    def _dismiss(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _answer(self, route: Any) -> None:
        self.reached.append(route.request.url.removeprefix(f"{ELSEWHERE}/"))
        route.fulfill(body="")


def absent(what: str) -> None:
    """Skip, but in CI fail: there the browser must be."""
    reason = f"the report page's tests need {what}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def chromium() -> str:
    """Where the browser is."""
    place = shutil.which("chromium")
    if place is None:
        absent("chromium")
    if find_spec("playwright") is None:
        absent("playwright")
    return str(place)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    place = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=place, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def windows(browser: Any) -> dict[str, Visit]:
    """A window for each set of options, since making one is slow."""
    return {}


@pytest.fixture
def visit(browser: Any, windows: dict[str, Visit], tmp_path: Path) -> Callable[..., Visit]:
    """A function that opens the text of a page, from a file, as its readers do.

    A page opened before with the same options is left.
    """

    def opened(html: str, media: str = "screen", **options: Any) -> Visit:
        key = repr((media, sorted(options.items())))
        if key not in windows:
            windows[key] = Visit(browser.new_context(**options).new_page())
            windows[key].page.emulate_media(media=media)
        place = tmp_path / "report.html"
        place.write_text(html, encoding="utf-8", newline="")
        return windows[key].open(place.as_uri())

    return opened


@pytest.fixture
def artefacts(tmp_path: Path) -> Path:
    """Where screenshots are kept."""
    folder = Path(os.environ.get("CALSHIFT_ARTEFACTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
