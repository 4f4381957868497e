"""Options of metrics, and the arguments made from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from calshift.cli.cost_table import read_cost
from calshift.cli.options import Decorator, choice_option, combine_options
from calshift.cli.samples import OpenedSamples
from calshift.errors import InvalidInput
from calshift.metrics.catalogue import OF_MANY, OF_TWO, Setting, make_metrics
from calshift.metrics.decision_rule import make_decision_rule, validate_cost, validate_positive
from calshift.report.requirements import Requirement

REPORTED_OF_TWO = ("prevalence", "precision", "recall", "missed_cases", "accuracy")

metric_option = click.option(
    "--metric",
    metavar="NAME",
    multiple=True,
    help="A metric of TARGET, such as accuracy, precision, f1_macro, roc_auc, log_loss, "
    "recall_per_class or 'recall[NAME]' (docs/metrics.md); repeatable.",
)

require_option = click.option(
    "--require",
    metavar="TEXT",
    multiple=True,
    help="A requirement such as 'accuracy>=0.9', with >=, >, <= or <, which the interval must "
    "show to be met; repeatable. Exit status 1 if it is not.",
)

COSTS = (
    "a csv by predicted (row) and true class (column); of two classes also "
    "'false_positive=1,false_negative=20'."
)


def make_decision_options(cost: str, decision: str, threshold: str) -> Decorator:
    """--cost, --decision, --decision-threshold and --positive, with what they mean."""
    return combine_options(
        click.option("--cost", metavar="FILE", help=f"{cost}: {COSTS}"),
        choice_option("--decision", ("argmax", "cost"), decision),
        click.option("--decision-threshold", type=float, metavar="T", help=threshold),
        click.option(
            "--positive", metavar="CLASS", help="The positive class.  [default: the second of two]"
        ),
    )


decision_options = make_decision_options(
    "Costs for expected_cost",
    "Which class is predicted: the most probable, or the one of least expected cost.",
    "Of two classes the positive one is predicted at a probability of at least T.",
)

metric_options = combine_options(metric_option, require_option, decision_options)


@dataclass(frozen=True)
class MetricRequest:
    """What was asked for about metrics.

    Attributes
    ----------
    named : the metrics named by --metric and --require, those of "..._per_class" one by one
    arguments : metrics, decision, cost and positive of `target_metrics`
    requirements : of --require
    """

    named: tuple[str, ...]
    arguments: dict[str, Any]
    requirements: tuple[Requirement, ...]

    @property
    def key(self) -> tuple[tuple[str, Any], ...]:
        """What was asked, for a checkpoint."""
        return tuple(self.arguments.items())


def read_requirements(options: dict[str, Any]) -> tuple[Requirement, ...]:
    """The requirements; a malformed one is an error before any file is read."""
    return tuple(Requirement.parse(text) for text in options.get("require", ()))


def usual_metrics(K: int, *, report: bool = False) -> tuple[str, ...]:
    """The metrics of so many classes that are not asked for by name."""
    if K == 2:
        return REPORTED_OF_TWO if report else OF_TWO
    return OF_MANY


def request_metrics(
    options: dict[str, Any], samples: OpenedSamples, first: tuple[str, ...]
) -> MetricRequest:
    """The metrics to compute, validated; those that come ``first`` are not asked for by name."""
    K, classes = samples.n_classes, samples.classes
    requirements = read_requirements(options)
    named = (*options["metric"], *(one.metric for one in requirements))
    cost, decision = read_cost(options["cost"], classes, K), _decision(options)
    positive = _positive(options["positive"], classes)
    label = validate_positive(positive, K, classes)
    matrix = validate_cost(cost, K, label)
    make_decision_rule(decision, K, label, matrix)
    setting = Setting(K, classes, label, matrix)
    found = {one.name: one.bounds for one in make_metrics(named, setting)} if named else {}
    for one in requirements:
        one.check_limit(found)
    if first and cost is not None:
        first = (*first, "expected_cost")
    names = list(dict.fromkeys((*first, *named)))
    arguments = {"metrics": names, "decision": decision, "cost": cost, "positive": positive}
    return MetricRequest(tuple(found), arguments, requirements)


def _positive(asked: str | None, classes: tuple[Any, ...] | None) -> str | int | None:
    """The name of a class, or its number."""
    if asked is None or asked in map(str, classes or ()):
        return asked
    return int(asked) if asked.isascii() and asked.isdigit() else asked


def _decision(options: dict[str, Any]) -> Any:
    """The rule: a threshold, or what --decision names."""
    threshold = options["decision_threshold"]
    if threshold is None:
        return options["decision"]
    if options["decision"] != "argmax":
        msg = "--decision-threshold cannot be combined with --decision cost"
        raise InvalidInput(msg)
    return threshold
