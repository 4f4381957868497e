"""Coordinates of the page's reliability diagrams, which the template puts into SVG.

They come from the report's dict, so that a page can be made from JSON alone; colours are those of
the page and follow its light and dark themes. `calshift.plotting` draws with matplotlib instead.
"""

from __future__ import annotations

from typing import Any

SIDE = 100.0  # of the unit square, in units of the drawing
RADIUS = (1.0, 2.6)  # of a marker, by its share of the rows


def reliability_diagram(curves: dict[str, Any]) -> dict[str, Any]:
    """Bands, lines and markers of source and target."""
    parts = [{"name": name, **_part(curves[name])} for name in ("source", "target")]
    return {"of": curves["of"], "parts": parts}


def _part(curve: dict[str, Any]) -> dict[str, Any]:
    score, frequency, low, high = (curve[k] for k in ("score", "frequency", "low", "high"))
    outline = [*zip(score, high, strict=True), *reversed([*zip(score, low, strict=True)])]
    most = max(curve["mass"])
    return {
        "band": _path(outline),
        "line": _path([*zip(score, frequency, strict=True)]),
        "markers": [
            {
                "x": _x(f),
                "y": _y(q),
                "r": round(RADIUS[0] + (RADIUS[1] - RADIUS[0]) * (mass / most) ** 0.5, 2),
                "low": _y(a),
                "high": _y(b),
                "about": f"predicted {f:.3f}, frequency {q:.3f} ({a:.3f} to {b:.3f}), "
                f"{mass:.1%} of rows",
            }
            for f, q, a, b, mass in zip(score, frequency, low, high, curve["mass"], strict=True)
        ],
    }


def _path(points: list[tuple[float, float]]) -> str:
    return " ".join(f"{_x(x)},{_y(y)}" for x, y in points)


def _x(value: float) -> float:
    return round(SIDE * value, 2)


def _y(value: float) -> float:
    return round(SIDE * (1 - value), 2)
