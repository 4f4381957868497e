"""Drawings of the page, as numbers that the template puts into SVG.

Drawn from the report's dict, so that a page can be made from JSON alone; colours are the page's,
so that they follow its light and dark. For figures of one's own there is `plotting`.
"""

from __future__ import annotations

from typing import Any

SIDE = 100.0  # of the unit square, in units of the drawing
RADIUS = (1.0, 2.6)  # of a marker, by the share of rows it stands for


def diagram(curves: dict[str, Any]) -> dict[str, Any]:
    """A reliability diagram: bands, lines and markers of source and target."""
    return {
        "of": curves["of"],
        "parts": [{"name": name, **_part(curves[name])} for name in ("source", "target")],
    }


def _part(curve: dict[str, Any]) -> dict[str, Any]:
    score, low, high = curve["score"], curve["low"], curve["high"]
    there = list(zip(score, high, strict=True)) + list(zip(score, low, strict=True))[::-1]
    most = max(curve["mass"])
    return {
        "band": _path(there),
        "line": _path(list(zip(score, curve["frequency"], strict=True))),
        "markers": [
            {
                "x": _x(f),
                "y": _y(q),
                "r": round(RADIUS[0] + (RADIUS[1] - RADIUS[0]) * (mass / most) ** 0.5, 2),
                "low": _y(a),
                "high": _y(b),
                "about": f"says {f:.3f}, is {q:.3f} ({a:.3f} to {b:.3f}), {mass:.1%} of rows",
            }
            for f, q, a, b, mass in zip(
                score, curve["frequency"], low, high, curve["mass"], strict=True
            )
        ],
    }


def _path(points: list[tuple[float, float]]) -> str:
    return " ".join(f"{_x(x)},{_y(y)}" for x, y in points)


def _x(value: float) -> float:
    return round(SIDE * value, 2)


def _y(value: float) -> float:
    return round(SIDE * (1 - value), 2)
