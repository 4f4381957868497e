"""Where there is no Java or Spark, tests are skipped, but never silently in CI."""

from __future__ import annotations

import builtins
import shutil

import pytest

from calshift.engines.spark.tables import open_spark
from calshift.errors import InvalidInput
from calshift.io.columns import ColumnSpec
from tests.engines import conftest


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)


def test_without_java_tests_are_skipped_with_a_reason():
    with pytest.raises(pytest.skip.Exception, match="need java"):
        conftest.check_spark()


def test_without_pyspark_tests_are_skipped_with_a_reason(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(conftest, "find_spec", lambda name: None)
    with pytest.raises(pytest.skip.Exception, match="need pyspark"):
        conftest.check_spark()


def test_in_ci_java_must_be_there(monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="need java"):
        conftest.check_spark()


def test_without_pyspark_a_table_cannot_be_opened(monkeypatch):
    real = builtins.__import__

    def lacking(name, *arguments, **more):
        if name.startswith("pyspark"):
            raise ImportError(name)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", lacking)
    with pytest.raises(InvalidInput, match=r"need pyspark: pip install 'calshift\[spark\]'"):
        open_spark("predictions", ColumnSpec())
