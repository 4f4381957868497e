"""Columns of an arrow schema, and their replacement by other numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from calshift.io.columns import check_unique
from calshift.io.formats.base import check_rows


class ArrowColumns:
    """Columns of an arrow schema."""

    classes: tuple[str, ...] | None = None
    renamed: ClassVar[dict[str, str]] = {}

    def _describe(self, schema: Any) -> None:
        import pyarrow.types as kinds

        self.names = tuple(schema.names)
        check_unique(self.names, self.path)
        self.lists = tuple(
            field.name
            for field in schema
            if kinds.is_list(field.type)
            or kinds.is_large_list(field.type)
            or kinds.is_fixed_size_list(field.type)
        )

    def rows_of(self, column: str) -> int | None:
        """None: not known before the file is read."""
        return None

    path: Path
    names: tuple[str, ...]
    lists: tuple[str, ...]


def resize_batches(batches: Iterable[Any], rows: int, first: int = 0) -> Iterator[Any]:
    """Record batches of exactly so many rows except the last, without the first rows."""
    waiting: list[Any] = []
    wanted = rows
    for batch in batches:
        first, batch = max(first - batch.num_rows, 0), batch.slice(min(first, batch.num_rows))
        while batch.num_rows:
            waiting.append(batch.slice(0, wanted))
            batch, wanted = batch.slice(wanted), wanted - waiting[-1].num_rows
            if not wanted:
                yield _concatenate(waiting)
                waiting, wanted = [], rows
    if waiting:
        yield _concatenate(waiting)


def _concatenate(batches: list[Any]) -> Any:
    import pyarrow as pa

    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def replace_columns(table: Any, numbers: dict[str, np.ndarray], path: Path) -> Any:
    """The table with other numbers in some columns, of the types that were there."""
    for name, values in numbers.items():
        check_rows(path, table.num_rows, len(values))
        place = table.schema.get_field_index(name)
        field = table.schema.field(place)
        made = make_column(values, field.type)
        table = table.set_column(place, field.with_type(made.type), made)
    return table


def make_column(values: np.ndarray, kind: Any) -> Any:
    """Numbers as a column of a type, or of double where the type is not a float."""
    import pyarrow as pa
    import pyarrow.types as kinds

    if values.ndim == 1:
        return pa.array(values, kind if kind in (pa.float32(), pa.float64()) else pa.float64())
    inner = kind.value_type if kind.value_type in (pa.float32(), pa.float64()) else pa.float64()
    n, K = values.shape
    flat = pa.array(values.ravel(), inner)
    if kinds.is_fixed_size_list(kind):
        return pa.FixedSizeListArray.from_arrays(flat, K)
    if kinds.is_large_list(kind):
        return pa.LargeListArray.from_arrays(pa.array(np.arange(n + 1) * K, pa.int64()), flat)
    return pa.ListArray.from_arrays(pa.array(np.arange(n + 1) * K, pa.int32()), flat)
