"""Where there is no browser, tests are skipped, but never silently in CI."""

from __future__ import annotations

import shutil

import pytest

from tests.browser import conftest


def test_without_chromium_tests_are_skipped_with_a_reason(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(pytest.skip.Exception, match="need chromium"):
        conftest.chromium()


def test_without_playwright_tests_are_skipped_with_a_reason(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(conftest, "find_spec", lambda name: None)
    with pytest.raises(pytest.skip.Exception, match="need playwright"):
        conftest.chromium()


def test_in_ci_the_browser_must_be_there(monkeypatch):
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(pytest.fail.Exception, match="need chromium"):
        conftest.chromium()
