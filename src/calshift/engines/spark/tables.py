"""Spark tables opened as engines."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from calshift.engines import Spark
from calshift.engines.spark.errors import short_errors
from calshift.engines.spark.rows import TableRows, in_order, may_be_names, spark_label_encoder
from calshift.errors import InvalidInput
from calshift.io.columns import ColumnSpec, check_unique, column_spec, find_columns
from calshift.io.file_reader import LabelCodes, python_option_names
from calshift.io.prediction_file import binary_class_names

MOST_LABELS = 100_000  # different ones; a column with more does not contain labels
WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")


def scan_spark(
    frame: Any,
    *,
    label: str | None = None,
    columns: str | Sequence[str] | None = None,
    sample_weight: str | None = None,
    logits: bool = False,
    classes: Sequence[Any] | None = None,
    labelled: bool | None = None,
) -> Spark:
    """A Spark DataFrame of predictions, for the functions that take ``p_source`` or ``p_target``.

    Its rows stay where they are: executors sum them up, and the driver gets only the sums.

    Parameters
    ----------
    frame : with a column of arrays or of vectors, one column a class, or one of binary scores
    label : the column of labels, whole numbers or the classes' names
    columns : the probabilities: one name, several, or a pattern with a star
    sample_weight : the column of the frequency weights: 2 counts as two rows, 0 removes the row
    logits : whether they are logits or log-probabilities
    classes : their names, and the order in which columns that name them are taken
    labelled : whether labels are read; None reads them where there are any

    Examples
    --------
    >>> import calshift
    >>> source = calshift.scan_spark(spark.table("validated"))  # doctest: +SKIP
    >>> target = calshift.scan_spark(spark.table("today"), labelled=False)  # doctest: +SKIP
    >>> print(calshift.target_calibration_error(source, None, target))  # doctest: +SKIP
    """
    if not hasattr(frame, "mapInArrow"):
        msg = f"frame must be a Spark DataFrame; got {type(frame)!r}"
        raise InvalidInput(msg)
    spec = column_spec(columns, label, logits, labelled, sample_weight)
    with python_option_names():
        return _open_frame(frame, "frame", spec, classes)


def open_spark(table: str, spec: ColumnSpec, classes: Sequence[Any] | None = None) -> Spark:
    """`scan_spark` of a table by its name, or of a path of parquet files."""
    session = _session()
    with short_errors(table):
        path = "/" in table or os.sep in table or Path(table).exists()
        frame = session.read.parquet(table) if path else session.table(table)
    return _open_frame(frame, table, spec, classes)


def _session() -> Any:
    """The active session, or a new one."""
    with warnings.catch_warnings(), short_errors("no session; is there a Java 17 or later?"):
        warnings.simplefilter("ignore", FutureWarning)  # about pandas, which is not used here
        try:
            from pyspark.sql import SparkSession
        except ImportError:
            msg = "Spark's tables need pyspark: pip install 'calshift[spark]'"
            raise InvalidInput(msg) from None
        session = SparkSession.builder.getOrCreate()
    context = getattr(session, "sparkContext", None)
    if context is not None and context.master.startswith("local"):
        # the python3 of the path may lack what this one has
        context.pythonExec = os.environ.get("PYSPARK_PYTHON", sys.executable)
    return session


def _open_frame(frame: Any, table: str, spec: ColumnSpec, classes: Sequence[Any] | None) -> Spark:
    kinds = _kinds(frame, table)
    lists = [name for name, kind in kinds.items() if kind.typeName() == "array" or _is_vector(kind)]
    columns = find_columns(list(kinds), lists, spec, table)
    label, first = columns.label, columns.probabilities[0]
    single = len(columns.probabilities) == 1 and first not in lists
    found, order = in_order(binary_class_names(columns.classes, single), classes, table, single)
    rows = TableRows(table, columns, found, spec.logits, order)
    if label is not None:
        rows = replace(rows, codes=_codes(frame, label, kinds, found, table))
    # dots and quotes in a name have a meaning in Spark: columns are sent under their numbers
    read = (_column(name, kinds[name]).alias(f"c{k}") for k, name in enumerate(rows.read))
    return Spark(frame.select(*read), rows)


def _kinds(frame: Any, table: str) -> dict[str, Any]:
    """The types of the columns."""
    with short_errors(table):
        names, fields = list(frame.columns), frame.schema.fields
    check_unique(names, table)
    return {field.name: field.dataType for field in fields}


def _is_vector(kind: Any) -> bool:
    """Whether it is the type of Spark's own classifiers."""
    return type(kind).__name__ == "VectorUDT"


def _column(name: str, kind: Any) -> Any:
    from pyspark.sql.functions import col

    found = col("`" + name.replace("`", "``") + "`")
    if not _is_vector(kind):
        return found
    from pyspark.ml.functions import vector_to_array

    return vector_to_array(found)


def _codes(
    frame: Any, label: str, kinds: dict[str, Any], classes: tuple[Any, ...] | None, table: str
) -> LabelCodes | None:
    """Codes of the labels that occur; None where they are numbers that cannot be names."""
    if kinds[label].simpleString() in WHOLE_NUMBERS and not may_be_names(classes):
        return None
    with short_errors(table):
        rows = frame.select(_column(label, kinds[label])).distinct().limit(MOST_LABELS + 1)
        found = [value for (value,) in rows.collect()]
    where = f"{table}, column {label!r}"
    if len(found) > MOST_LABELS:
        msg = f"{where} has more than {MOST_LABELS:,} different values: are they labels?"
        raise InvalidInput(msg)
    return spark_label_encoder(
        sorted(str(value) for value in found if value is not None), classes, where
    )
