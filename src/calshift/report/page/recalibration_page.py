"""A recalibration as one self-contained HTML page, made from its dict alone."""

from __future__ import annotations

from typing import Any

from calshift.report.page.document import describe_inputs, security_policy
from calshift.report.page.recalibration_view import view_recalibration
from calshift.report.page.templates import load_template, read_template

STYLES = ("page.css", "metrics.css", "recalibration.css")


def render_recalibration_html(report: dict[str, Any]) -> str:
    """A page without scripts that loads nothing; its content security policy forbids both."""
    context = {
        **view_recalibration(report),
        "checked": describe_inputs(report["inputs"], [report["after"]["rows"]]),
        "style": "".join(map(read_template, STYLES)),
        "policy": security_policy(),
    }
    return str(load_template("recalibration.html").render(context))
