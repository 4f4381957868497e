"""Names of metrics in words, for people who know the measures of a diagnostic test."""

from __future__ import annotations

from typing import NamedTuple


class MetricName(NamedTuple):
    """A metric in words: its name, what it measures, and the class if it is of one."""

    name: str
    meaning: str = ""
    label: str | None = None


PER_1000 = ("missed_cases", "false_alarms")
SHARES = (
    "prevalence", "alarm_rate", "accuracy", "balanced_accuracy", "precision", "recall",
    "specificity", "npv",
)  # fmt: skip
AVERAGES = {
    "macro": "mean of the classes",
    "weighted": "mean of the classes by prevalence",
    "micro": "all classes pooled",
}
NAMES = {
    "accuracy": ("Accuracy", "of all cases, the share predicted correctly"),
    "alarm_rate": ("Alarm rate", "of all cases, the share predicted positive"),
    "average_precision": ("Average precision", "mean precision at the scores of positive cases"),
    "balanced_accuracy": ("Balanced accuracy", "mean sensitivity of the classes"),
    "brier_score": ("Brier score", "squared error of the probabilities; 0 is best"),
    "calibration_intercept": ("Calibration intercept", "of the log-odds; 0 is best"),
    "calibration_slope": ("Calibration slope", "of the log-odds; 1 is best"),
    "cohen_kappa": ("Cohen's kappa", "agreement beyond chance; 1 is best"),
    "expected_cost": ("Expected cost", "mean cost of a case"),
    "f1": ("F1", "harmonic mean of positive predictive value and sensitivity"),
    "false_alarms": ("False alarms per 1000", "negative cases predicted positive, of 1000 cases"),
    "log_loss": ("Log loss", "of the probabilities; 0 is best"),
    "matthews_corrcoef": ("Matthews correlation", "of predicted and true classes; 1 is best"),
    "missed_cases": ("Missed cases per 1000", "positive cases predicted negative, of 1000 cases"),
    "npv": (
        "Negative predictive value (NPV)",
        "of cases predicted negative, the share that are negative",
    ),
    "oe_ratio": (
        "Observed / expected (O:E)",
        "positive cases relative to the sum of their probabilities; 1 is best",
    ),
    "precision": (
        "Positive predictive value (PPV, precision)",
        "of cases predicted positive, the share that are positive",
    ),
    "prevalence": ("Prevalence", "of all cases, the share that are positive"),
    "recall": (
        "Sensitivity (recall)",
        "of positive cases, the share predicted positive",
    ),
    "roc_auc": ("Area under the ROC curve (AUC)", "1 is best, 0.5 is chance"),
    "roc_auc_ovr": ("AUC of each class against the rest, mean", "1 is best, 0.5 is chance"),
    "specificity": ("Specificity", "of negative cases, the share predicted negative"),
}  # fmt: skip


def unit_of(name: str, given: str | None = None) -> str:
    """How a metric is shown: "share" in percent, "per 1000", or "number".

    Scores that are no shares of cases, such as the AUC, are numbers even if they are in [0, 1];
    ``given`` is the unit of metrics not known here.
    """
    stem = _split(name)[0]
    if stem in PER_1000:
        return "per 1000"
    if stem in SHARES or stem.startswith("top_"):
        return "share"
    return "number" if stem in NAMES else given or "number"


def name_in_words(name: str, title: str) -> MetricName:
    """The metric in words; its title if there are none."""
    stem, average, label = _split(name)
    if stem not in NAMES:
        return MetricName(title[:1].upper() + title[1:] if title != name else title)
    words, meaning = NAMES[stem]
    if average:
        return MetricName(f"{words}, {average}", AVERAGES[average])
    return MetricName(words, meaning) if label is None else MetricName(words, label=label)


def _split(name: str) -> tuple[str, str, str | None]:
    """Stem, average, class: "recall", "", "cat" of "recall[cat]"."""
    stem, bracket, label = name.partition("[")
    if bracket and label.endswith("]"):
        return stem, "", label[:-1]
    start, _, average = name.rpartition("_")
    return (start, average, None) if average in AVERAGES else (name, "", None)
