"""The report as one HTML page that needs nothing else, and as a fragment for notebooks."""

from __future__ import annotations

from typing import Any

from calshift._core.text import percent

MOST_CLASSES = 800  # in the page's table; JSON has all. Keeps it below 500 KB
MOST_MOVED = 25  # classes drawn with their shares
MOST_RESIDUALS = 100


def page(report: dict[str, Any], diagrams: list[dict[str, Any]]) -> str:
    """A self-contained page: no request leaves it, and its policy forbids any."""
    return str(_template("page.html").render(_shown(report, diagrams)))


def fragment(report: dict[str, Any], plain: str) -> str:
    """The gist of the report for a notebook; ``plain`` is shown where jinja2 is absent."""
    try:
        template = _template("fragment.html")
    except ImportError:
        return preformatted(plain)
    return str(template.render(_shown(report, [])))


def preformatted(text: str) -> str:
    """Text as a notebook shows it."""
    from html import escape

    return f"<pre>{escape(text)}</pre>"


def _shown(report: dict[str, Any], diagrams: list[dict[str, Any]]) -> dict[str, Any]:
    """What the templates know: the report, in the order and amount in which it is shown."""
    with_errors = bool(report["classes"]) and "root" in report["classes"][0]
    classes = _largest(report["classes"], "root" if with_errors else "prior_target", MOST_CLASSES)
    known = [one for one in report["classes"] if one["prior_target"] is not None]
    moved = sorted(known, key=lambda one: -abs(_moved(one)))[:MOST_MOVED]
    script = _text("page.js")
    return {
        "report": report,
        "diagrams": diagrams,
        "classes": classes,
        "hidden": len(report["classes"]) - len(classes),
        "with_errors": with_errors,
        "with_intervals": with_errors and any(one["root_interval"] for one in classes),
        "with_shares": any(one["prior_target_interval"] for one in classes),
        "doubts": any(one["doubt"] for one in classes),
        "given": report["weights"] is not None and report["weights"]["method"] == "given",
        "known_shares": len(known),
        "power": "squared error" if report["settings"]["norm"] == 2 else "p-th power",
        "moved": sorted(moved, key=_moved),
        "most": max([_reach(one) for one in moved], default=1.0) or 1.0,
        "out_of_line": _out_of_line(report["assumption"]),
        "level": percent(report["level"]),
        "style": _text("page.css"),
        "script": script,
        "policy": _policy(script),
    }


def _shortened(name: str, most: int = 60) -> str:
    """A name of bearable length, so that the page stays small whatever classes are called."""
    return name if len(name) <= most else name[: most - 3] + "..."


def _share(value: float) -> str:
    """One decimal, or two significant digits where that would be nothing."""
    return f"{value:.1%}" if value >= 0.01 or value == 0 else f"{100 * value:.2g}%"


def _largest(classes: list[dict[str, Any]], by: str, most: int) -> list[dict[str, Any]]:
    return sorted(classes, key=lambda one: -(one[by] if one[by] is not None else -1.0))[:most]


def _moved(one: dict[str, Any]) -> float:
    return float(one["prior_target"] - one["prior_source"])


def _reach(one: dict[str, Any]) -> float:
    """The largest share that is drawn for a class."""
    ends = [one["prior_source_interval"], one["prior_target_interval"]]
    known = [pair[1] for pair in ends if pair is not None]
    return float(max(one["prior_source"], one["prior_target"], *known))


def _out_of_line(check: dict[str, Any] | None) -> list[dict[str, Any]]:
    if check is None:
        return []
    return sorted(check["by_class"], key=lambda one: -abs(one["residual"] or 0.0))[:MOST_RESIDUALS]


def _policy(script: str) -> str:
    """What the page may do: its own style, its one script, nothing from elsewhere."""
    import base64
    import hashlib

    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def _text(name: str) -> str:
    from importlib.resources import files

    return (files("calshift.report") / "templates" / name).read_text(encoding="utf-8")


def _template(name: str) -> Any:
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError:
        msg = "a report page needs jinja2: pip install 'calshift[report]'"
        raise ImportError(msg, name="jinja2") from None
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, loader=FunctionLoader(_text),
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(
        error=lambda value: f"{value:.4f}",
        share=_share,
        shortened=_shortened,
        number=lambda value: f"{value:.4g}",
        rows=lambda value: f"{value:,.10g}",
    )
    return environment.get_template(name)
