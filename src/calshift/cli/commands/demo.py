"""calshift demo: the main job on predictions that come with the package."""

from __future__ import annotations

from typing import Any

import click

from calshift import data
from calshift.api import calibration_error, target_calibration_error
from calshift.cli.options import command_line, debug_option
from calshift.cli.outputs import check_outputs, deliver, quietly, say
from calshift.recalibration.recalibrate import recalibrate
from calshift.report import check_writable, summary, write_atomically
from calshift.report.verdict import Gate

INTRODUCTION = """\
Fashion-MNIST, and a ResNet-20 trained on a long-tailed mix of its ten classes.
Source: {source:,} labelled images of that mix. Target: {target:,} images, as many of each class;
their labels stay hidden until the end.
"""


@click.command()
@click.option(
    "--report", default="calshift-report.html", show_default=True, help="Where the page goes."
)
@click.option(
    "--files", metavar="FOLDER", help="Also write the data as source.csv and target.csv there."
)
@debug_option
def demo(report: str, files: str | None) -> int:
    """Run the main job on a real network's predictions, and hold it against the truth."""
    options: dict[str, Any] = {"report": report, "json": None, "markdown": None, "prometheus": None}
    check_outputs(options)
    places = {} if files is None else {name: f"{files}/{name}.csv" for name in ("source", "target")}
    for place in places.values():
        check_writable(place)
    source, target = data.fashion_mnist()
    say(INTRODUCTION.format(source=len(source), target=len(target)))
    with quietly():
        result = target_calibration_error(source, None, target.unlabelled())
    shown = summary(result, Gate(), command=command_line())
    deliver(shown, {**options, "quiet": False})
    truth = calibration_error(target)
    low, high = truth.confidence_interval(root=True)
    say(
        f"\nAnd with the target's labels? {truth.root:.4f} ({low:.4f} to {high:.4f}). "
        f"Without them: {result.root:.4f}."
    )
    with quietly():
        mended = recalibrate(source, None, target.unlabelled(), check=False)
    low, high = mended.after.confidence_interval(root=True)
    known = calibration_error(mended.probabilities, target.labels, interval=None)
    say(
        f"Mended, without them: {mended.after.root:.4f} ({low:.4f} to {high:.4f}). "
        f"And with them: {known.root:.4f}."
    )
    for place, sample in zip(places.values(), (source, target.unlabelled()), strict=False):
        write_atomically(place, data.as_csv(sample))
    if places:
        pair = " ".join(places.values())
        say(f"Now try: calshift check {pair}")
        say(f"and: calshift recalibrate {pair} -o {files}/mended.csv")
    say(f"The report: {report}")
    return int(shown["exit_code"])
