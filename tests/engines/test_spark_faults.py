"""What Spark's tables can do wrong: bad rows are said in a line, lost workers change nothing."""

from __future__ import annotations

import os
import pickle
import signal
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import calshift
from calshift.engines.sample_summary import summary_terms
from calshift.engines.spark.tables import open_spark
from calshift.errors import InvalidInput
from calshift.io.columns import ColumnSpec
from tests.prediction_files import NAMES, SIMULATION, named

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
P, Y = SIMULATION.source(2000, rng=1)


# --- workers that die; these functions run on the executors


def exits() -> None:
    os._exit(9)


def is_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def loses_its_daemon() -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    is_killed()


def loses_its_executor() -> None:
    told = Path(f"/proc/{os.getppid()}/status").read_text(encoding="ascii")
    java = next(int(line.split()[1]) for line in told.splitlines() if line.startswith("PPid"))
    os.kill(java, signal.SIGKILL)


def deadly(batch, death, marker: str, part: int):
    """Kernel: counts, but the first worker that comes to a partition dies of it."""
    from pyspark import TaskContext

    if TaskContext.get().partitionId() == part:
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return summary_terms(batch)
        death()
    return summary_terms(batch)


@pytest.mark.parametrize(
    ("death", "most"),
    [(exits, 64), (is_killed, 64), (loses_its_daemon, 64), (loses_its_executor, 2)],
)
def test_a_worker_lost_in_a_pass_changes_nothing(written, tmp_path, monkeypatch, death, most):
    sample = calshift.scan_spark(written({"p": P, "y": Y}, parts=5))
    assert sample.summary.rows == 2000
    monkeypatch.setattr("calshift.engines.spark.engine.MOST_PARTS", most)
    unharmed = sample.total(summary_terms)
    marker = tmp_path / "died"
    harmed = sample.total(partial(deadly, death=death, marker=str(marker), part=2))
    assert marker.exists()
    assert pickle.dumps(harmed) == pickle.dumps(unharmed)


def test_a_worker_that_always_dies_is_given_up(written):
    sample = calshift.scan_spark(written({"p": P, "y": Y}, parts=1))
    with pytest.raises(InvalidInput, match=r"^frame: Spark gave up; a task failed again") as caught:
        sample.total(lambda batch: exits())
    assert "\n" not in str(caught.value)


# --- rows that are wrong


def spoiled(row: int, value: float) -> np.ndarray:
    p = P.copy()
    p[row] = value
    return p


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            {"p": spoiled(1203, 0.5), "y": Y},
            r"frame, partition \d must be probabilities that sum to 1 in each row; "
            r"row 203 sums to 1\.5",
        ),
        ({"p": spoiled(7, -1.0), "y": Y}, r"frame, partition \d must be .*; row 7, column 0 is -1"),
        (
            {"p": P, "y": np.where(np.arange(2000) == 1999, 3, Y)},
            r"frame, partition \d, column 'y' must be labels 0\.\.2; row 499 is 3",
        ),
        (
            {"p": [*P[:600].tolist(), [0.5, 0.5], *P[601:].tolist()], "y": Y},
            r"frame, partition \d: lists in column 'p' must have one number a class; row 0 has 3, "
            r"row 100 has 2",
        ),
        (
            {"p": [*P[:500].tolist(), *[[0.5, 0.5]] * 1500], "y": np.minimum(Y, 1)},
            r"frame: its lists must have one number a class; some rows have 2, others 3",
        ),
        (
            {"p": P, "y": [*Y[:10].tolist(), None, *Y[11:].tolist()]},
            r"frame, partition \d: column 'y' has no value in row 10: fill it or drop the row",
        ),
        ({"p": P[:0], "y": Y[:0]}, "frame has columns but no row"),
        (
            {"p": P, "y": ["-1", *map(str, Y[1:])]},
            r"frame, partition \d, column 'y' must be labels 0\.\.2; row 0 is -1",
        ),
        (
            {"p": [[row] for row in P.tolist()], "y": Y},
            r"frame, partition \d: lists in column 'p' must contain numbers; they contain list",
        ),
    ],
)
def test_wrong_rows_are_named_in_one_line(written, columns, said):
    sample = calshift.scan_spark(written(columns))
    with pytest.raises(InvalidInput, match=f"^{said}") as caught:
        _ = sample.summary
    assert "\n" not in str(caught.value)


def test_the_first_partitions_complaint_is_told_whatever_the_stages(written, monkeypatch):
    sample = calshift.scan_spark(written({"p": np.full_like(P, 0.5), "y": Y}, parts=10))
    sample.first = [0, 2000, 10]
    monkeypatch.setattr("calshift.engines.spark.engine.MOST_PARTS", 2)
    with pytest.raises(InvalidInput, match="partition 0 must"):
        sample.total(summary_terms)


def test_labels_and_classes_that_do_not_fit_are_named(written):
    named_table = written({f"p_{name}": P[:, k] for k, name in enumerate(NAMES)} | {"y": named(Y)})
    with pytest.raises(InvalidInput, match=r"frame must have the classes 'a', 'b', 'c'; it has"):
        calshift.scan_spark(named_table, classes=["a", "b", "c"])
    with pytest.raises(InvalidInput, match=r"labels are names \('ant'\)"):
        calshift.scan_spark(written({"p": P, "y": named(Y)}))
    with pytest.raises(InvalidInput, match=r"3 classes, and names were given for 2"):
        _ = calshift.scan_spark(written({"p": P, "y": Y}), classes=["a", "b"]).summary
    with pytest.raises(InvalidInput, match=r"no column of labels, .*label="):
        calshift.scan_spark(written({"p": P}), labelled=True)
    with pytest.raises(InvalidInput, match="must be a Spark DataFrame"):
        calshift.scan_spark(P)


def test_a_table_that_grew_is_noticed(written):
    sample = calshift.scan_spark(written({"p": P, "y": Y}))
    sample.first = [0, 1999, 4]
    with pytest.raises(InvalidInput, match=r"1,999 rows in the first pass and 2,000 in a later"):
        sample.total(summary_terms)


def test_what_fails_in_a_kernel_is_told_without_java(written):
    sample = calshift.scan_spark(written({"p": P, "y": Y}, parts=1))
    with pytest.raises(RuntimeError, match=r"^frame: a task failed with ZeroDivisionError"):
        sample.total(lambda batch: 1 / 0)

    def lacking(batch):
        import package_that_is_nowhere  # noqa: F401

    with pytest.raises(InvalidInput, match="executors lacks package_that_is_nowhere: install"):
        sample.total(lacking)


def test_tables_are_opened_by_path_and_by_name(spark, written, tmp_path):
    written({"p": P, "y": Y}).createOrReplaceTempView("predictions")
    folder = next(path for path in tmp_path.iterdir() if path.is_dir())
    for name in ("predictions", str(folder)):
        assert open_spark(name, ColumnSpec()).summary.rows == 2000
    with pytest.raises(InvalidInput, match=r"^no_table: Spark gave up; \[TABLE_OR_VIEW_NOT_FOUND"):
        open_spark("no_table", ColumnSpec())
    with pytest.raises(InvalidInput, match=r"^/no/where: Spark gave up; \[PATH_NOT_FOUND"):
        open_spark("/no/where", ColumnSpec())


def test_a_truncated_part_is_named(spark, written, tmp_path):
    written({"p": P, "y": Y})
    part = next(tmp_path.glob("*/002.parquet"))
    part.write_bytes(part.read_bytes()[:-400])
    sample = calshift.scan_spark(
        spark.read.schema("p array<double>, y long").parquet(str(part.parent))
    )
    with pytest.raises(InvalidInput, match=r"002\.parquet") as caught:
        _ = sample.summary
    assert "\n" not in str(caught.value)
