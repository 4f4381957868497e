"""calshift recalibrate: the target's file with recalibrated probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from calshift._core.memory import release_memory
from calshift._core.outputs import Outputs
from calshift.cli import options as opt
from calshift.cli import outputs as out
from calshift.cli.commands.monitor import metric_arguments, metric_options
from calshift.cli.options import read_weights
from calshift.cli.progress import progress_bar
from calshift.cli.samples import read_pair
from calshift.io.file_reader import FileReader
from calshift.io.formats.base import check_file
from calshift.recalibration import DEFAULT_RECALIBRATOR, RECALIBRATORS
from calshift.recalibration.assessment.predicted_classes import PredictedClasses
from calshift.recalibration.base import Recalibrator
from calshift.recalibration.recalibrate import recalibrate_samples
from calshift.report import recalibration_dict, render_json, render_recalibration_html

FORMATS: out.Formats = {"report": render_recalibration_html, "json": render_json}


@click.command()
@opt.file_options
@opt.recalibrated_option
@opt.method_option(
    RECALIBRATORS,
    DEFAULT_RECALIBRATOR,
    "'shift' recalibrates and adapts to the class priors; 'temperature', 'ensemble' and "
    "'label-free' keep the ranking of classes.",
)
@opt.weights_option(None, " The default depends on --method.")
@opt.value_option("--folds", 5, "Folds of the cross-fitted error after recalibration.")
@opt.seed_option
@opt.no_check_option
@opt.waive_option
@metric_options
@opt.gate_options
@click.option("--report", metavar="FILE", help="Write a report page (HTML).")
@click.option("--save", metavar="FILE", help="Write the recalibrator, for `calshift apply`.")
@out.json_option
@opt.debug_option
def recalibrate(source: str, target: str, **options: Any) -> int:
    """Recalibrate the probabilities of TARGET, without its labels.

    The output has all columns and rows of TARGET; only the probabilities differ. The calibration
    error and metrics before and after (cross-fitted) are printed; --max-error applies to the error
    after.
    """
    out.check_outputs(options, ("output", "save", "json", "report"), (source, target))
    out.check_same_extension(options["output"], target)
    gate, metrics = opt.gate_option(options), metric_arguments(options)
    check_file(Path(target))  # the output is one file
    pair = read_pair(source, target, opt.column_spec(options))
    weights = options["weights"]
    if weights is not None:
        weights = read_weights(weights, pair.source.classes, pair.source.n_classes)
    samples, reader = [pair.source, pair.target], pair.reader
    rows = PredictedClasses.of(
        pair.source.n_classes, pair.source.classes, metrics["decision"], metrics["positive"]
    )
    del pair  # so that its rows are released
    with out.ignore_warnings(), progress_bar("fits") as progress:
        found = recalibrate_samples(
            samples, method=options["method"], weights=weights, folds=options["folds"],
            rng=options["seed"], check=not options["no_check"], waive=options["waive"],
            progress=progress, **metrics,
        )  # fmt: skip
    full = options["report"] is not None or options["json"] is not None
    report = recalibration_dict(
        found, gate, **opt.provenance(source, target), seed=options["seed"],
        predicted=_count(reader, found.recalibrator, rows) if full else None, curves=full,
    )  # fmt: skip
    reader.parts.check_unchanged(0)
    release_memory()
    with Outputs() as files:
        blocks = (
            found.recalibrator.transform(batch).p for batch in reader.in_small_batches().batches(0)
        )
        reader.parts.files[0].rewrite(blocks, out.stage(files, options["output"]))
        out.stage_text(files, options["save"], render_json(found.recalibrator.to_dict()))
        out.stage_report(files, report, options, FORMATS)
    to_stderr = "-" in (options[name] for name in ("json", "save", "output", "report"))
    out.print_verdict(report["verdict"], report["status"], to_stderr)
    out.echo(f"\n{found.table(gate.level)}\n", to_stderr)
    where = [] if options["output"] == "-" else [f"Written to {options['output']}."]
    for note in (*report["notes"], *where):
        out.echo(out.wrap(note), to_stderr)
    return int(report["exit_code"])


def _count(
    reader: FileReader, recalibrator: Recalibrator, rows: PredictedClasses
) -> dict[str, Any]:
    """The target's rows by predicted class before and after, read a few rows at a time."""
    for batch in reader.in_small_batches(weighted=True).batches(0):
        rows.add(batch, recalibrator.transform(batch))
    return rows.to_dict()
