"""calshift threshold: the decision threshold for the target, and what it changes."""

from __future__ import annotations

from typing import Any

import click

from calshift._core.atomic_write import check_drawable, write_figure
from calshift._core.outputs import Outputs
from calshift._core.text import note_lines
from calshift._core.validate import validate_level
from calshift.cli import options as opt
from calshift.cli import outputs as out
from calshift.cli.metric_options import make_decision_options, metric_option, request_metrics
from calshift.cli.samples import LoadedPair, OpenedSamples, read_pair
from calshift.decisions import decision_curve, decision_threshold
from calshift.decisions.threshold import KEPT, SHOWN_OF_MANY, SHOWN_OF_TWO
from calshift.errors import InvalidInput
from calshift.recalibration import DEFAULT_RECALIBRATOR, RECALIBRATORS
from calshift.report import origin, render_json, threshold_dict
from calshift.results import DecisionThreshold
from calshift.weights import DEFAULT

present_rule_options = make_decision_options(
    "The class of least expected cost is predicted",
    "The present rule: the most probable class, or the one of least expected cost with the "
    "probabilities as they are.",
    "The present threshold of two classes.  [default: the most probable class is predicted]",
)


@click.command()
@opt.file_options
@present_rule_options
@click.option("--keep", type=click.Choice(KEPT), help="The metric of two classes that is kept.")
@click.option(
    "--at",
    type=float,
    metavar="VALUE",
    help="With --keep: at least VALUE is kept, of the alarm rate at most VALUE.",
)
@click.option(
    "--method",
    type=click.Choice([*RECALIBRATORS]),
    metavar="NAME",
    help=f"With --cost, how probabilities are recalibrated: {', '.join(RECALIBRATORS)}.  [default: "
    f"{DEFAULT_RECALIBRATOR}]",
)
@metric_option
@opt.weights_option(DEFAULT)
@opt.seed_option
@opt.no_check_option
@opt.waive_option
@opt.level_option
@out.json_option
@click.option("--plot", metavar="FILE", help="Draw the decision curve of two classes.")
@click.option("--quiet", "-q", is_flag=True, help="Print the verdict only.")
@opt.debug_option
def threshold(source: str, target: str, **options: Any) -> int:
    """Find the decision threshold for TARGET, without its labels.

    Either --cost, for the least expected cost (of more than two classes a rule instead of a
    threshold), or --keep and --at. Prints each metric with the present rule and with the new one.
    Exit status 1 if no threshold keeps the metric, 3 if the result is not reliable.
    """
    out.check_outputs(options, ("json", "plot"), (source, target))
    _check_goal(options)
    if options["plot"] is not None:
        check_drawable(options["plot"])
    level = validate_level(options["level"])
    pair = read_pair(source, target, opt.column_spec(options))
    _check_classes(options, pair.source.n_classes)
    named, arguments = _request(options, pair.opened())
    with out.ignore_warnings():
        found = decision_threshold(pair.source, None, pair.target, **arguments)
    report = threshold_dict(
        found, level, asked=named, settings=_settings(options),
        origin=origin(**opt.provenance(source, target)),
    )  # fmt: skip
    with Outputs() as files:
        out.stage_text(files, options["json"], render_json(report))
        if options["plot"] is not None:
            figure = _draw(pair, arguments, level)
            write_figure(options["plot"], figure, files.open(options["plot"]))
    to_stderr = options["json"] == "-"
    out.print_verdict(report["verdict"], report["status"], to_stderr)
    if not options["quiet"]:
        out.echo("\n".join(["", found.table(level), *_notes(found)]), to_stderr)
    return int(report["exit_code"])


def _check_goal(options: dict[str, Any]) -> None:
    """Refuse what cannot be meant, before any file is read."""
    keep, at = options["keep"], options["at"]
    if (options["cost"] is None) == (keep is None):
        msg = f"give either --cost, or --keep ({', '.join(KEPT)}) with --at VALUE"
        raise InvalidInput(msg)
    if keep is None and at is not None:
        msg = "--at belongs to --keep; costs decide by themselves"
        raise InvalidInput(msg)
    if keep is not None and options["method"] is not None:
        msg = "--method belongs to --cost; --keep needs no recalibration"
        raise InvalidInput(msg)
    if keep is not None and options["decision"] == "cost":
        msg = "--decision cost needs --cost; with --keep use --decision-threshold T, or neither"
        raise InvalidInput(msg)
    if keep is not None and not (at is not None and 0 < at < 1):
        got = "" if at is None else f"; got {at:g}"
        msg = f"--keep {keep} needs --at, a value between 0 and 1 such as 0.9{got}"
        raise InvalidInput(msg)


def _check_classes(options: dict[str, Any], K: int) -> None:
    if K == 2:
        return
    if options["keep"] is not None:
        msg = f"--keep is for two classes; there are {K}: use --cost"
        raise InvalidInput(msg)
    if options["plot"] is not None:
        msg = f"--plot draws the decision curve of two classes; there are {K}: leave it out"
        raise InvalidInput(msg)


def _request(
    options: dict[str, Any], samples: OpenedSamples
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The metrics asked for by name, and the arguments of `decision_threshold`."""
    first = options["keep"] or "expected_cost"
    usual = SHOWN_OF_TWO if samples.n_classes == 2 else SHOWN_OF_MANY
    request = request_metrics(options, samples, (first, *(() if options["metric"] else usual)))
    weights = opt.read_weights(options["weights"], samples.classes, samples.n_classes)
    return request.named, {
        **request.arguments, "keep": options["keep"], "at": options["at"], "weights": weights,
        "method": options["method"] or DEFAULT_RECALIBRATOR, "check": not options["no_check"],
        "waive": options["waive"], "rng": options["seed"],
    }  # fmt: skip


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    """What was asked, in plain values."""
    method = options["method"] or DEFAULT_RECALIBRATOR
    return {
        "keep": options["keep"], "at": options["at"], "seed": options["seed"],
        "method": None if options["keep"] else method, "weights": options["weights"],
        "check": not options["no_check"], "waive": list(options["waive"]),
    }  # fmt: skip


def _draw(pair: LoadedPair, arguments: dict[str, Any], level: float) -> Any:
    """The decision curve."""
    asked = {name: arguments[name] for name in ("positive", "weights", "check", "waive", "rng")}
    with out.ignore_warnings():
        curve = decision_curve(pair.source, None, pair.target, **asked)
    return curve.plot(level=level).figure


def _notes(found: DecisionThreshold) -> list[str]:
    """The rules in words, and the warnings but for that of the verdict."""
    lines = [f"present rule: {found.unchanged.decision}"]
    if found.recalibrated_threshold is not None:
        at = f"{found.recalibrated_threshold:.4g}"
        lines.append(f"after recalibration the threshold is {at}, which follows from the costs")
    elif found.threshold is None:
        lines.append("to apply it: `calshift recalibrate`, then the class of least expected cost")
    return [*map(out.wrap, lines), *note_lines(found.warnings[not found.reached :])]
