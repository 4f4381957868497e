"""The commands of the command line, made with click."""

from __future__ import annotations

import click

from calshift import __version__, simulate
from calshift.api import target_calibration_error


@click.group()
@click.version_option(__version__, prog_name="calshift")
def run() -> None:
    """Are a classifier's probabilities still true after the mix of classes changed?"""


@run.command()
@click.option("--seed", default=0, show_default=True, help="Of the simulated data.")
def demo(seed: int) -> None:
    """Run the main job on simulated data whose true error is known."""
    simulation = simulate.GaussianSimulation(n_classes=5, dimensions=5, seed=seed)
    source, labels = simulation.source(4000, rng=seed)
    target, _ = simulation.target(4000, rng=seed + 1)
    result = target_calibration_error(source, labels, target)
    truth = simulation.true_error(rows=400_000) ** 0.5
    click.echo("5 classes, 4000 labelled source rows; the target's mix is long-tailed, unlabelled.")
    click.echo(f"Estimated error on the target: {result.root:.4f}   (the truth: {truth:.4f})\n")
    click.echo(f"{result}\n\n{result.class_weights}")
