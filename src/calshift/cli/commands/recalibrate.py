"""calshift recalibrate: the target's file with recalibrated probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from calshift.cli.options import (
    column_spec,
    debug_option,
    file_options,
    gate_option,
    gate_options,
    method_option,
    no_check_option,
    provenance,
    recalibrated_option,
    seed_option,
    value_option,
    weights_option,
)
from calshift.cli.outputs import (
    check_outputs,
    check_same_extension,
    echo,
    ignore_warnings,
    json_option,
    print_verdict,
    wrap,
    write_bytes,
    write_text,
)
from calshift.cli.progress import progress_bar
from calshift.cli.samples import read_pair
from calshift.cli.weights_option import read_weights
from calshift.io.formats.base import check_file
from calshift.recalibration import DEFAULT_RECALIBRATOR, RECALIBRATORS
from calshift.recalibration.recalibrate import recalibrate as recalibrate_target
from calshift.report import recalibration_dict, render_json


@click.command()
@file_options
@recalibrated_option
@method_option(
    RECALIBRATORS,
    DEFAULT_RECALIBRATOR,
    "'shift' recalibrates and adapts to the class priors; 'temperature', 'ensemble' and "
    "'label-free' keep the ranking of classes.",
)
@weights_option(None, " The default depends on --method.")
@value_option("--folds", 5, "Folds of the cross-fitted error after recalibration.")
@seed_option
@no_check_option
@gate_options
@click.option("--save", metavar="FILE", help="Write the recalibrator, for `calshift apply`.")
@json_option
@debug_option
def recalibrate(source: str, target: str, **options: Any) -> int:
    """Recalibrate the probabilities of TARGET, without its labels.

    The output has all columns and rows of TARGET; only the probabilities differ. The calibration
    error before and after (cross-fitted) is printed; --max-error applies to the error after.
    """
    check_outputs(options, ("output", "save", "json"), (source, target))
    check_same_extension(options["output"], target)
    gate = gate_option(options)
    check_file(Path(target))  # the output is one file
    pair = read_pair(source, target, column_spec(options))
    weights = options["weights"]
    if weights is not None:
        weights = read_weights(weights, pair.source.classes, pair.source.n_classes)
    with ignore_warnings(), progress_bar("fits") as progress:
        found = recalibrate_target(
            pair.engines[0], None, pair.engines[1], method=options["method"], weights=weights,
            folds=options["folds"], rng=options["seed"], check=not options["no_check"],
            progress=progress,
        )  # fmt: skip
    report = recalibration_dict(found, gate, **provenance(source, target), seed=options["seed"])
    write_bytes(options["output"], pair.file.rewrite(found.probabilities))
    write_text(options["save"], render_json(found.recalibrator.to_dict()))
    write_text(options["json"], render_json(report))
    to_stderr = "-" in (options["json"], options["save"], options["output"])
    print_verdict(report["verdict"], report["status"], to_stderr)
    echo(f"\n{found.table(gate.level)}\n", to_stderr)
    where = [] if options["output"] == "-" else [f"Written to {options['output']}."]
    for note in (*report["notes"], *where):
        echo(wrap(note), to_stderr)
    return int(report["exit_code"])
