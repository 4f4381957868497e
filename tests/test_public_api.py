"""The public API: its names, their signatures, their documentation and its examples."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from importlib import metadata

import pytest

import calshift

MODULES = ["calshift", *(m.name for m in pkgutil.walk_packages(calshift.__path__, "calshift."))]
NAMES = sorted(calshift.__all__)
FUNCTIONS = [name for name in NAMES if inspect.isfunction(getattr(calshift, name))]

# What is promised to users: (parameters in order, keyword-only parameters). A function may come
# in a later version; a parameter may come later; none may have another name.
ASKED = ("kind", "norm", "estimator", "bins", "binning")
SURE = ("interval", "n_boot", "rng", "n_jobs", "progress")
PASSES = ("progress", "checkpoint")  # of data that is read in passes
FOUND = ("label", "columns", "logits", "classes", "labelled")
PAIR = ("p_source", "y_source", "p_target")
PROMISED = {
    "calibration_error": (("p", "y"), (*ASKED, *SURE, *PASSES)),
    "target_calibration_error": (PAIR, ("weights", "check", "drift", *ASKED, *SURE, *PASSES)),
    "label_shift_weights": (PAIR, ("method", "diagnose", *PASSES)),
    "weights_from_labels": (("y_source", "y_target", "n_classes"), ()),
    "check_label_shift": (PAIR, ("level", "n_boot", "rng", *PASSES)),
    "scan": (("data",), (*FOUND, "batch_rows", "jobs", "progress")),
    "scan_spark": (("frame",), FOUND),
    "reliability_curve": (PAIR, ("weights", "kind", "label", "bins")),
    "plot_reliability": (("curve", "ax"), ()),
    "plot_weights": (("class_weights", "ax"), ()),
    "bin_edges": (("p_target",), ("kind", "bins")),
    "accumulate": (PAIR, ("edges",)),
    "target_calibration_error_from": (("statistics",), ("weights", "norm", "estimator")),
    "compare": (("a", "b"), ()),
    "variance_algorithm1": (
        PAIR,
        ("weights", "kind", "norm", "bins", "stratified", "sampled", "rng"),
    ),
    "recalibrate": (
        PAIR,
        ("method", "weights", "kind", "norm", "folds", "rng", "check", "progress"),
    ),
    "canonical_error_bound": (
        ("p", "y", "p_target"),
        ("loss", "method", "weights", "folds", "rng", "check"),
    ),
    "monitor": ((*PAIR, "time"), ("window", "rows", "weights", "check", "drift", *ASKED, *SURE)),
    "resample_label_shift": (("y",), ("prior", "imbalance_factor", "size", "rng")),
    "write_report": (("result", "path"), ("level", "max_error", "gate", "metrics")),
    "softmax": (("logits", "axis"), ()),
    "Predictions": (("p", "y"), ("classes", "sample_weight")),
}
BESIDES = {"kernel", "bandwidth", "binning", "stratified", "waive"}  # smoothing, sampling, trust
DEFAULTS = {
    "kind": "classwise",
    "norm": 2,
    "estimator": "debiased",
    "bins": "auto",
    "binning": "mass",
    "label": None,
    "axis": -1,
    "ax": None,
    "y": None,
    "classes": None,
    "sample_weight": None,
    "n_classes": None,
    "prior": None,
    "imbalance_factor": None,
    "size": None,
    "rng": None,
    "check": True,
    "drift": 0.0,
    "level": 0.05,
    "n_boot": 500,
    "n_jobs": 1,
    "progress": None,
    "checkpoint": None,
}
WITHOUT_DEFAULT = {("resample_label_shift", "y")}
OTHER_DEFAULT = {
    ("variance_algorithm1", "bins"),
    ("write_report", "level"),
    ("check_label_shift", "n_boot"),
    ("check_label_shift", "rng"),  # a check gives the same answer every time it is asked
    ("canonical_error_bound", "rng"),
    ("recalibrate", "rng"),  # and so does a division in parts
}


def test_the_public_names_are_complete():
    assert len(set(calshift.__all__)) == len(calshift.__all__)
    missing = [name for name in NAMES if not hasattr(calshift, name)]
    assert missing == []
    namespace: dict[str, object] = {}
    exec("from calshift import *", namespace)
    assert set(NAMES) <= set(namespace)


def test_dir_shows_the_public_names_and_no_submodules():
    importlib.import_module("calshift.cli.main")  # an import adds submodules to the namespace
    assert "cli" in vars(calshift)

    def public(names):
        return {name for name in names if not name.startswith("__")}

    assert public(dir(calshift)) == public(calshift.__all__)
    assert set(calshift.__all__) <= set(dir(calshift))
    assert dir(calshift) == sorted(dir(calshift))


def test_the_version_is_that_of_the_package():
    assert calshift.__version__ == metadata.version("calshift")


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_documented(name):
    value = getattr(calshift, name)
    text = inspect.getdoc(value)
    assert text
    if inspect.isclass(value):
        assert "__doc__" in vars(value)  # not the base's
        assert not text.startswith(f"{name}(")  # nor the signature that dataclass writes


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_an_example_that_is_run(name):
    text = inspect.getdoc(getattr(calshift, name))
    assert "\nExamples\n--------\n" in text
    assert doctest.DocTestParser().get_examples(text.split("\nExamples\n--------\n")[1])


@pytest.mark.parametrize("module", MODULES)
def test_doctests(module):
    found = doctest.testmod(importlib.import_module(module))
    assert found.failed == 0


def test_there_are_doctests_and_they_can_fail():
    finder = doctest.DocTestFinder()
    examples = [
        example
        for module in MODULES
        for test in finder.find(importlib.import_module(module))
        for example in test.examples
    ]
    assert len(examples) > 20
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert doctest.DocTestRunner(verbose=False).run(wrong, out=lambda _: None).failed == 1


@pytest.mark.parametrize("module", MODULES)
def test_every_module_says_what_it_is(module):
    assert inspect.getdoc(importlib.import_module(module))


@pytest.mark.parametrize("name", [*FUNCTIONS, "Predictions"])
def test_parameters_are_those_promised(name):
    positional, keywords = PROMISED[name]
    parameters = list(inspect.signature(getattr(calshift, name)).parameters.values())
    assert all(p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in parameters), (
        "no *args or **kwargs that swallow a typo"
    )
    assert tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD) == positional
    rest = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert rest <= {*keywords, *BESIDES}


@pytest.mark.parametrize("name", [*FUNCTIONS, "Predictions"])
def test_defaults_are_those_promised(name):
    for parameter in inspect.signature(getattr(calshift, name)).parameters.values():
        place = (name, parameter.name)
        if parameter.name in DEFAULTS and place not in WITHOUT_DEFAULT | OTHER_DEFAULT:
            assert parameter.default == DEFAULTS[parameter.name], place


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_typo_is_not_swallowed(name):
    with pytest.raises(TypeError, match="unexpected keyword argument 'wieghts'"):
        getattr(calshift, name)(wieghts=1)


def test_warnings_and_errors_have_their_promised_bases():
    assert issubclass(calshift.InvalidInput, ValueError)
    assert issubclass(calshift.UnreliableWeights, UserWarning)
