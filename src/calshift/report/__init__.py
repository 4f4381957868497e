"""Summaries of results as plain dicts, and their output formats."""

from calshift.report.comparison_summary import comparison_dict, render_comparison_text
from calshift.report.html import fragment, render_html, write_report
from calshift.report.markdown import render_markdown, render_metrics_markdown
from calshift.report.metrics_summary import metrics_dict, metrics_fragment
from calshift.report.monitoring_summary import monitoring_dict
from calshift.report.page.recalibration_page import render_recalibration_html
from calshift.report.prometheus import render_metrics_prometheus, render_prometheus
from calshift.report.recalibration_summary import recalibration_dict
from calshift.report.summary import origin, render_json, summarize, weights_dict
from calshift.report.text import render_metrics_text, render_text
from calshift.report.threshold_summary import curve_fragment, threshold_dict, threshold_fragment

__all__ = [
    "comparison_dict", "curve_fragment", "fragment", "metrics_dict", "metrics_fragment",
    "monitoring_dict", "origin", "recalibration_dict", "render_comparison_text", "render_html",
    "render_json", "render_markdown", "render_metrics_markdown", "render_metrics_prometheus",
    "render_metrics_text", "render_prometheus", "render_recalibration_html", "render_text",
    "summarize", "threshold_dict", "threshold_fragment", "weights_dict", "write_report",
]  # fmt: skip
