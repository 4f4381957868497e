"""Conditions on class weights: each function checks one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calshift._core.text import class_names, small_ess_warning
from calshift.diagnostics.boundary import check_boundary, corrected_prediction
from calshift.diagnostics.conditions import unchecked
from calshift.diagnostics.label_tables import LabelTables
from calshift.results import ClassWeights, Diagnostic

TOO_SMALL_ESS = 20.0
UNSEEN_SHARE = 0.05  # of the target in classes not in the source
UNTRUSTED_SHARE = 0.25  # of the target in classes whose weight is not reliable
MOST_DISTANCE = 0.25  # expected total variation of the target prior
AGREEMENT_LEVEL = 0.02
MOST_LACK_OF_FIT = 4.8  # standard errors
MOST_AMPLIFIED = 6.0  # change of the class priors relative to that of the mean prediction
MOST_APART = 0.5  # total variation between the class priors and the corrected mean prediction
LEAST_CHANGE = 0.1  # of the class priors in total variation, below which noise decides
LEAST_INFORMATION = 0.01  # of predictions on labels, relative to the entropy of the class shares
GIVEN = ("given", "labels")  # methods of weights that were not estimated from predictions


def are_estimated(weights: ClassWeights) -> bool:
    """Whether the weights were estimated from the predictions of these samples."""
    return weights.influence is not None and weights.method not in GIVEN


def weight_conditions(
    weights: ClassWeights, tables: LabelTables | None, n_target: float, checked: bool
) -> Iterator[Diagnostic]:
    """Conditions of weights, by the way they were made; ``checked``: label shift was."""
    yield check_unseen_classes(weights)
    yield check_effective_size(weights)
    if not are_estimated(weights):
        return
    yield check_class_weights(weights)
    yield check_conditioning(weights)
    yield check_boundary(weights, tables, n_target)
    if weights.discrimination is not None:
        yield check_discrimination(weights)
    yield check_agreement(weights)
    yield check_lack_of_fit(weights, checked)
    yield check_amplification(weights, tables)


def check_unseen_classes(weights: ClassWeights) -> Diagnostic:
    """The share of the target in classes that the source lacks."""
    name, share = "unseen-classes", weights.unseen_share
    unseen = np.isnan(weights.values)
    if unseen.any() and weights.predicted is None and share == 0:
        missing = class_names(np.flatnonzero(unseen), weights.classes)
        return unchecked(name, UNSEEN_SHARE, f"the source lacks {missing}: its share is unknown")
    if share <= UNSEEN_SHARE:
        text = f"classes that the source lacks have {share:.1%} of the target"
        return Diagnostic(name, share, UNSEEN_SHARE, True, text)
    notes = (note for note in weights.warnings if note.startswith("the source lacks"))
    lacks = f"the source lacks classes with {share:.0%} of the target (limit {UNSEEN_SHARE:.0%})"
    return Diagnostic(name, share, UNSEEN_SHARE, False, next(notes, lacks))


def check_effective_size(weights: ClassWeights) -> Diagnostic:
    """The effective sample size of the weighted source."""
    ess, name = weights.ess, "effective-sample-size"
    passed = bool(ess >= TOO_SMALL_ESS)
    text = small_ess_warning(ess) + ("" if passed else f" (at least {TOO_SMALL_ESS:g} needed)")
    return Diagnostic(name, ess, TOO_SMALL_ESS, passed, text)


def check_class_weights(weights: ClassWeights) -> Diagnostic:
    """Convergence, and the share of the target in classes whose weight is not reliable."""
    name = "class-weights"
    known = [c for c in weights.untrusted if not np.isnan(weights.values[c])]
    share = weights.unseen_share + sum(float(weights.prior_target[c]) for c in known)
    share = min(share, 1.0)
    if not weights.converged:
        notes = (note for note in weights.warnings if "did not converge" in note)
        text = next(notes, f"{weights.method} did not converge")
        return Diagnostic(name, share, UNTRUSTED_SHARE, False, text)
    passed, limit = share <= UNTRUSTED_SHARE, f" (limit {UNTRUSTED_SHARE:.0%})"
    text = f"{share:.0%} of the target is in classes whose weight is not trusted"
    return Diagnostic(name, share, UNTRUSTED_SHARE, passed, text + ("" if passed else limit))


def check_conditioning(weights: ClassWeights) -> Diagnostic:
    """The expected total variation between the estimated target prior and the true one."""
    name, distance = "conditioning", weights.expected_distance
    if distance is None:
        return unchecked(name, MOST_DISTANCE, "the error of the target prior is not known")
    passed = bool(distance <= MOST_DISTANCE)
    text = f"the expected error of the class distribution of the target is {distance:.2f}"
    if not passed:
        text += f" in total variation (limit {MOST_DISTANCE:g}): it is almost undetermined"
    return Diagnostic(name, float(distance), MOST_DISTANCE, passed, text)


def check_discrimination(weights: ClassWeights) -> Diagnostic:
    """The information of calibrated predictions on the label, relative to the entropy."""
    found = float(weights.discrimination or 0.0)
    passed, name = found >= LEAST_INFORMATION, "discrimination"
    text = f"predictions explain {found:.1%} of the entropy of the source's labels"
    if not passed:
        notes = (n for n in weights.warnings if n.startswith("the model does not discriminate:"))
        text = next(notes, f"{text} (at least {LEAST_INFORMATION:.0%} needed)")
    return Diagnostic(name, found, LEAST_INFORMATION, passed, text)


def check_agreement(weights: ClassWeights) -> Diagnostic:
    """Whether two methods with different assumptions give the same target prior."""
    name, p = "agreement", weights.agreement_p_value
    if p is None:
        why = f"{weights.method} was not compared with a method of other assumptions"
        return unchecked(name, AGREEMENT_LEVEL, why)
    passed = bool(p >= AGREEMENT_LEVEL)
    text = f"two methods with different assumptions agree on the class priors (p = {p:.2g})"
    if not passed:
        text = (
            f"two methods with different assumptions disagree on the class priors (p = {p:.2g}, "
            f"limit {AGREEMENT_LEVEL:g})"
        )
    return Diagnostic(name, float(p), AGREEMENT_LEVEL, passed, text)


def check_lack_of_fit(weights: ClassWeights, allowed: bool = True) -> Diagnostic:
    """The largest difference between the target and what label shift implies, standardised.

    ``allowed``: intervals allow for it, as they do where label shift is checked.
    """
    name, largest = "lack-of-fit", weights.lack_of_fit
    if largest is None:
        why = f"{weights.method} was not compared with other means of the predictions"
        return unchecked(name, MOST_LACK_OF_FIT, why)
    passed = largest <= MOST_LACK_OF_FIT
    text = (
        "means of the target differ from what label shift implies by at most "
        f"{largest:.1f} standard errors"
    )
    if not passed:
        text += f" (limit {MOST_LACK_OF_FIT:g})"
    elif allowed and weights.error_factor > 1:
        text += f"; standard errors are multiplied by {weights.error_factor:.2f}"
    return Diagnostic(name, largest, MOST_LACK_OF_FIT, passed, text)


def check_amplification(weights: ClassWeights, tables: LabelTables | None) -> Diagnostic:
    """The change of the class priors relative to that of the mean prediction.

    A model that separates the classes poorly shows little of a change of the class priors; any
    other small change of its predictions is then taken for a large change of the priors. So the
    priors may neither change many times as much as the mean prediction, nor be far from it.
    """
    name = "amplification"
    if tables is None or tables.means is None or weights.predicted is None:
        return unchecked(name, MOST_AMPLIFIED, "mean predictions were not compared")
    before = np.where(tables.counts > 0, tables.means, 0.0) @ tables.counts
    shift = float(np.abs(weights.predicted - before / tables.counts.sum()).sum()) / 2
    change = float(np.abs(weights.prior_target - weights.prior_source).sum()) / 2
    if change <= LEAST_CHANGE:
        text = f"the class priors change by {change:.1%} (total variation) only"
        return Diagnostic(name, 1.0, MOST_AMPLIFIED, True, text)
    corrected = corrected_prediction(weights.predicted, tables)
    apart = float(np.abs(weights.prior_target - corrected).sum()) / 2
    if apart > MOST_APART:
        text = (
            f"the class priors differ by {apart:.0%} (total variation) from the mean prediction, "
            f"corrected by the source (limit {MOST_APART:.0%})"
        )
        return Diagnostic(name, apart, MOST_APART, False, text)
    factor = change / max(shift, 1e-12)
    text = f"the class priors change {factor:.1f} times as much as the mean prediction"
    passed = factor <= MOST_AMPLIFIED
    if not passed:
        text += f" (limit {MOST_AMPLIFIED:g}): a small violation of label shift is amplified"
    return Diagnostic(name, factor, MOST_AMPLIFIED, passed, text)
