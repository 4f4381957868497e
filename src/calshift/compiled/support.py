"""What compiled loops are made with: numba's options, and numbers worked on side by side.

Imported where numba is installed only.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

# files with compiled loops, and those that they take constants from
MADE_OF = ("support", "binning", "tridiagonal", "regression", "rows")
LANES = 8  # numbers in double precision that are worked on at once

Loop = TypeVar("Loop", bound=Callable[..., Any])


def edition(folder: Path) -> str:
    """A number that changes with the files that loops are made of."""
    held = b"".join((folder / f"{name}.py").read_bytes() for name in MADE_OF)
    return f"{zlib.crc32(held):08x}"


_EDITION = edition(Path(__file__).parent)
_machine = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})


def compiled(loop: Loop) -> Loop:
    """A loop as machine code, which numba keeps in a file beside its own.

    It would take that file for good as long as the loop's own source stays the same, whatever has
    become of other loops that it calls: so the name under which it is kept tells of all of them.
    """
    loop.__qualname__ = f"{loop.__qualname__}_{_EDITION}"
    return cast(Loop, _machine(loop))


_WHOLE = ir.IntType(64)
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)


@compiled
def part(f: np.ndarray | None, rows: slice) -> np.ndarray | None:
    """Some of the frequency weights, if there are any."""
    return None if f is None else f[rows]


@intrinsic
def bits(context: Any, score: Any) -> Any:
    """The bits of a float as a whole number."""

    def codegen(ctx: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], _WHOLE)

    return types.int64(types.float64), codegen


@intrinsic
def add_scaled(context: Any, x: Any, i: Any, y: Any, j: Any, lane: Any, size: Any) -> Any:
    """``x[i, here] += size * y[j, here]``, here the LANES numbers from ``lane * LANES`` on.

    Both are C arrays of doubles. numba would not do it at once: it cannot know that x and y have
    nothing in common.
    """

    def codegen(ctx: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def at(array: int, row: int) -> Any:
            kind = signature.args[array]
            held = ctx.make_array(kind)(ctx, builder, arguments[array])
            stride = builder.extract_value(held.strides, 0)
            before = builder.mul(stride, whole(row))
            ahead = builder.mul(whole(4), ir.Constant(_WHOLE, LANES * 8))
            begin = builder.ptrtoint(held.data, _WHOLE)
            place = builder.add(begin, builder.add(before, ahead))
            return builder.inttoptr(place, _VECTOR.as_pointer())

        def whole(number: int) -> Any:
            return ctx.cast(builder, arguments[number], signature.args[number], types.uint64)

        def loaded(place: Any) -> Any:
            vector = builder.load(place)
            vector.align = 8
            return vector

        none, into = ir.Constant(_VECTOR, ir.Undefined), at(0, 1)
        first = ir.Constant(ir.IntType(32), 0)
        one = builder.insert_element(none, arguments[5], first)
        mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        scaled = builder.fmul(
            builder.shuffle_vector(one, none, mask), loaded(at(2, 3)), flags=("contract",)
        )
        kept = builder.store(builder.fadd(loaded(into), scaled, flags=("contract",)), into)
        kept.align = 8
        return ctx.get_dummy_value()

    return types.void(x, i, y, j, lane, types.float64), codegen
