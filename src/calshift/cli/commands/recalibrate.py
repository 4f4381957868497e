"""calshift recalibrate: the target's file with recalibrated probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from calshift.cli import options as opt
from calshift.cli import outputs as out
from calshift.cli.options import read_weights
from calshift.cli.progress import progress_bar
from calshift.cli.samples import read_pair
from calshift.io.formats.base import check_file
from calshift.recalibration import DEFAULT_RECALIBRATOR, RECALIBRATORS
from calshift.recalibration.recalibrate import recalibrate as recalibrate_target
from calshift.report import recalibration_dict, render_json


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
@opt.gate_options
@click.option("--save", metavar="FILE", help="Write the recalibrator, for `calshift apply`.")
@out.json_option
@opt.debug_option
def recalibrate(source: str, target: str, **options: Any) -> int:
    """Recalibrate the probabilities of TARGET, without its labels.

    The output has all columns and rows of TARGET; only the probabilities differ. The calibration
    error before and after (cross-fitted) is printed; --max-error applies to the error after.
    """
    out.check_outputs(options, ("output", "save", "json"), (source, target))
    out.check_same_extension(options["output"], target)
    gate = opt.gate_option(options)
    check_file(Path(target))  # the output is one file
    pair = read_pair(source, target, opt.column_spec(options))
    weights = options["weights"]
    if weights is not None:
        weights = read_weights(weights, pair.source.classes, pair.source.n_classes)
    with out.ignore_warnings(), progress_bar("fits") as progress:
        found = recalibrate_target(
            pair.engines[0], None, pair.engines[1], method=options["method"], weights=weights,
            folds=options["folds"], rng=options["seed"], check=not options["no_check"],
            progress=progress,
        )  # fmt: skip
    report = recalibration_dict(found, gate, **opt.provenance(source, target), seed=options["seed"])
    out.write_bytes(options["output"], pair.file.rewrite(found.probabilities))
    out.write_text(options["save"], render_json(found.recalibrator.to_dict()))
    out.write_text(options["json"], render_json(report))
    to_stderr = "-" in (options["json"], options["save"], options["output"])
    out.print_verdict(report["verdict"], report["status"], to_stderr)
    out.echo(f"\n{found.table(gate.level)}\n", to_stderr)
    where = [] if options["output"] == "-" else [f"Written to {options['output']}."]
    for note in (*report["notes"], *where):
        out.echo(out.wrap(note), to_stderr)
    return int(report["exit_code"])
