"""calshift apply: a saved recalibrator on new rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from calshift._core.outputs import Outputs
from calshift.cli.options import column_options, column_spec, debug_option, recalibrated_option
from calshift.cli.outputs import check_outputs, check_same_extension, echo, stage
from calshift.cli.samples import open_target
from calshift.errors import InvalidInput
from calshift.io.formats.base import check_file
from calshift.recalibration.base import Recalibrator


@click.command()
@click.argument("recalibrator", type=click.Path())
@click.argument("target", type=click.Path())
@column_options
@click.option(
    "--sample-weight",
    metavar="COLUMN",
    help="Column of TARGET that has frequency weights: it is no probability, and stays as it is.",
)
@recalibrated_option
@debug_option
def apply(recalibrator: str, target: str, **options: Any) -> int:
    """Recalibrate new rows with a saved recalibrator.

    RECALIBRATOR is a file of `calshift recalibrate --save`. It is valid for the class priors it was
    fitted to; fit a new one when they change.
    """
    check_outputs(options, ("output",), (recalibrator, target))
    check_same_extension(options["output"], target)
    loaded = _load(Path(recalibrator))
    names = None if loaded.classes_ is None else tuple(map(str, loaded.classes_))
    reader = open_target(target, column_spec({"label": None, **options}), names)
    with Outputs() as files:
        blocks = (loaded.transform(batch).p for batch in reader.batches(0))
        rows = reader.parts.files[0].rewrite(blocks, stage(files, options["output"]))
    echo(f"{rows:,} rows recalibrated by {loaded!r}", options["output"] == "-")
    return 0


def _load(path: Path) -> Recalibrator:
    check_file(path)
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as problem:
        msg = f"{path} cannot be read as JSON: is it a file of `calshift recalibrate --save`?"
        raise InvalidInput(msg) from problem
    try:
        return Recalibrator.from_dict(saved)
    except InvalidInput as problem:
        msg = f"{path} is not a file of `calshift recalibrate --save`: {problem}"
        raise InvalidInput(msg) from problem
