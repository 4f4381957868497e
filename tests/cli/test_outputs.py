"""What is written: numbers agree between all faces, JSON keeps its schema, files are whole."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import subprocess
import sys
from html.parser import HTMLParser
from importlib.resources import files

import jsonschema
import numpy as np
import pytest

import calshift
from calshift.cli.main import status
from tests.prediction_files import (
    FRAUD,
    NAMES,
    OTHER,
    P_SOURCE,
    P_TARGET,
    SCORES,
    SCORES_NOW,
    Y_SOURCE,
)

OUTPUTS = ("report", "json", "markdown", "prometheus")


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """One file with source and target."""
    path = tmp_path_factory.mktemp("files") / "both.npz"
    np.savez(path, p_source=P_SOURCE, y_source=Y_SOURCE, p_target=P_TARGET, classes=NAMES)
    return str(path)


@pytest.fixture(scope="module")
def faces(both, tmp_path_factory):
    """Everything that `calshift check` can write of one answer, and its exit status."""
    folder = tmp_path_factory.mktemp("faces")
    asked = [part for name in OUTPUTS for part in (f"--{name}", str(folder / name))]
    code = status(["check", both, both, *asked, "--max-error", "0.2"])
    assert code == 0
    return {name: (folder / name).read_text(encoding="utf-8") for name in OUTPUTS}


@pytest.fixture(scope="module")
def report(faces):
    return json.loads(faces["json"])


@pytest.fixture(scope="module")
def result():
    source = calshift.Predictions(P_SOURCE, Y_SOURCE, classes=NAMES)
    target = calshift.Predictions(P_TARGET, classes=NAMES)
    return calshift.target_calibration_error(source, None, target, rng=0)


def terminal(capsys, *arguments: str) -> str:
    status(list(arguments))
    return capsys.readouterr().out


# --- the same numbers everywhere


def test_json_holds_the_numbers_of_the_library(report, result):
    for found, one in ((report["target"], result), (report["source"], result.source)):
        assert found["estimate"] == one.estimate
        assert found["root"] == one.root
        assert found["standard_error"] == one.standard_error
        assert found["interval"] == list(one.confidence_interval())
        assert found["root_interval"] == list(one.confidence_interval(root=True))
        assert found["rows"] == 600
    weights = result.class_weights
    low, high = weights.confidence_interval(0.95)
    for c, record in enumerate(report["classes"]):
        assert record["class"] == NAMES[c]
        assert record["prior_source"] == weights.prior_source[c]
        assert record["prior_target"] == weights.prior_target[c]
        assert record["prior_target_interval"] == [low[c], high[c]]
        assert record["weight"] == weights.values[c]
        assert record["estimate"] == result.per_class[c]
        assert record["source_estimate"] == result.source.per_class[c]
    assert report["assumption"]["p_value"] == result.assumption.p_value
    assert report["weights"]["ess"] == weights.ess
    assert report["trusted"] == result.trusted


def test_json_tells_the_change_of_the_error(report, result):
    change = calshift.compare(result, result.source)
    assert report["change"]["root"] == pytest.approx(result.root - result.source.root)
    assert report["change"]["root_interval"] == list(change.confidence_interval(root=True))


def test_the_level_asked_is_the_level_given(both, result, tmp_path):
    out = tmp_path / "out.json"
    assert status(["check", both, both, "-q", "--level", "0.8", "--json", str(out)]) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["level"] == 0.8
    ends = list(result.confidence_interval(0.8, root=True))
    assert found["target"]["root_interval"] == ends


class Cells(HTMLParser):
    """(section, data-v, shown text) of the page's table cells, row by row."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.section, self.rows, self.open = "", [], False
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag == "section":
            self.section = found["id"]
        if tag == "tr":
            self.rows.append((self.section, []))
        self.open = self.open or tag == "td"
        if tag == "td":
            self.rows[-1][1].append([found.get("data-v"), ""])

    def handle_endtag(self, tag):
        self.open = self.open and tag != "td"

    def handle_data(self, data):
        if self.open:
            self.rows[-1][1][-1][1] += data

    def of(self, section: str) -> dict[str, list]:
        """First cell's text -> the other cells."""
        return {cells[0][1]: cells[1:] for name, cells in self.rows if name == section and cells}


def test_the_page_holds_the_numbers_of_the_json(faces, report):
    errors = Cells(faces["report"]).of("errors")
    for name, words in (("source", "source, with labels"), ("target", "target, without labels")):
        root, power, rows = errors[words]
        low, high = report[name]["root_interval"]
        assert float(root[0]) == report[name]["root"]
        assert root[1] == f"{report[name]['root']:.4f} {low:.4f} to {high:.4f}"
        assert float(power[0]) == report[name]["estimate"]
        assert rows[1] == "600"
    classes = Cells(faces["report"]).of("classes")
    assert set(classes) == set(NAMES)
    for record in report["classes"]:
        values = [float(cell[0]) for cell in classes[record["class"]]]
        keys = ("prior_source", "prior_target", "weight", "source_root", "root")
        assert values == [record[key] for key in keys]
        shown = classes[record["class"]][-1][1]
        low, high = record["root_interval"]
        assert shown == f"{record['root']:.4f} {low:.4f} to {high:.4f}"


def test_the_page_holds_verdict_advice_and_what_is_needed_to_do_it_again(faces, report, both):
    from html import escape

    page = faces["report"]
    for told in (report["verdict"], *report["advice"], report["created"], both):
        assert escape(told) in page.replace("&#39;", "&#x27;")
    for name in ("source", "target"):
        assert report["inputs"][name]["sha256"] in page
    for name, version in report["versions"].items():
        assert f"<dt>{name}</dt><dd>{version}</dd>" in page


def test_the_page_shows_residuals_of_the_test(faces, report):
    shown = Cells(faces["report"]).of("assumption")
    for record in report["assumption"]["by_class"]:
        values = [float(cell[0]) for cell in shown[record["predicted"]]]
        assert values == [record["expected"], record["observed"], record["residual"]]


def test_the_terminal_shows_the_numbers_of_the_json(both, report, capsys):
    lines = terminal(capsys, "check", both, both, "--max-error", "0.2").splitlines()
    for name in ("source", "target"):
        low, high = report[name]["root_interval"]
        line = next(line for line in lines if line.startswith(name))
        expected = [name, f"{report[name]['root']:.4f}", f"{low:.4f}", "to", f"{high:.4f}", "600"]
        assert line.split()[:6] == expected
    for record in report["classes"]:
        line = next(line for line in lines if line.startswith(record["class"]))
        shares = [f"{record['prior_source']:.1%}", f"{record['prior_target']:.1%}"]
        assert line.split()[1:3] == shares
        low, high = record["root_interval"]
        assert line.endswith(f"{record['root']:.4f}   {low:.4f} to {high:.4f}")


def test_the_verdict_comes_first_and_tells_the_numbers(both, report, capsys):
    out = terminal(capsys, "check", both, both, "--max-error", "0.2")
    verdict = " ".join(out.split("\n\n")[0].split())
    assert verdict == report["verdict"]
    low, high = report["target"]["root_interval"]
    assert f"{report['target']['root']:.4f}" in verdict
    assert f"{low:.4f} to {high:.4f}" in verdict


def test_quiet_prints_the_verdict_only(both, report, capsys):
    out = terminal(capsys, "check", both, both, "--max-error", "0.2", "--quiet")
    assert " ".join(out.split()) == report["verdict"]


def test_markdown_holds_the_numbers_of_the_json(faces, report):
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in faces["markdown"].splitlines()
        if line.startswith("|")
    ]
    found = {row[0]: row[1:] for row in rows}
    for name, words in (("source", "source (labelled)"), ("target", "target (no labels)")):
        low, high = report[name]["root_interval"]
        assert found[words] == [f"{report[name]['root']:.4f}", f"{low:.4f} to {high:.4f}", "600"]
    for record in report["classes"]:
        low, high = record["prior_target_interval"]
        assert found[record["class"]] == [
            f"{record['prior_source']:.1%}",
            f"{record['prior_target']:.1%}",
            f"{low:.1%} to {high:.1%}",
            f"{record['root']:.4f}",
        ]


def metrics(text: str) -> dict[str, float]:
    """Samples of Prometheus' text format, whose grammar each line must keep."""
    label = r'[a-z_]+="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
    sample = re.compile(rf"([a-z_]+(?:\{{{label}(?:,{label})*\}})?) (-?[0-9.e+-]+)")
    found = {}
    for line in text.splitlines():
        if not line.startswith("# HELP ") and not line.startswith("# TYPE "):
            name, value = sample.fullmatch(line).groups()
            assert name not in found
            found[name] = float(value)
    return found


def test_prometheus_holds_the_numbers_of_the_json(faces, report):
    found = metrics(faces["prometheus"])
    for name in ("source", "target"):
        low, high = report[name]["root_interval"]
        assert found[f'calshift_error{{sample="{name}"}}'] == report[name]["root"]
        assert found[f'calshift_error_lower{{sample="{name}",level="0.95"}}'] == low
        assert found[f'calshift_error_upper{{sample="{name}",level="0.95"}}'] == high
        for record in report["classes"]:
            key = f'calshift_class_share{{sample="{name}",class="{record["class"]}"}}'
            assert found[key] == record[f"prior_{name}"]
    for record in report["classes"]:
        assert found[f'calshift_class_error{{class="{record["class"]}"}}'] == record["root"]
    assert found["calshift_max_error"] == 0.2
    assert found["calshift_exit_code"] == report["exit_code"]
    assert found["calshift_trusted"] == 1
    for one in report["diagnostics"]:
        for state in ("passed", "waived"):
            key = f'calshift_condition_{state}{{condition="{one["name"]}"}}'
            assert found[key] == one[state]
    assert found["calshift_label_shift_p_value"] == report["assumption"]["joint_p_value"]
    assert found["calshift_effective_sample_size"] == report["weights"]["ess"]


def pair(path, **changed) -> str:
    """A file like ``both`` with other arrays."""
    arrays = {"p_source": P_SOURCE, "y_source": Y_SOURCE, "p_target": P_TARGET, "classes": NAMES}
    np.savez(path, **(arrays | changed))
    return str(path)


def test_conditions_are_in_every_output(both, tmp_path, capsys):
    """Without a test and with an overlap that is waived: all formats say so."""
    out = {name: tmp_path / f"out.{name}" for name in ("report", "json", "markdown", "prometheus")}
    asked = [part for name, path in out.items() for part in (f"--{name}", str(path))]
    waived = ["--no-check", "--waive", "overlap", "--waive", "conditioning"]
    assert status(["check", both, both, *asked, *waived]) == 0
    said = " ".join(capsys.readouterr().out.split())
    shift = ["label-shift-test", "label-shift-direction", "label-shift-distance"]
    waived = [*shift, "conditioning", "lack-of-fit", "overlap"]
    assert f"waived: {', '.join(waived)}" in said.replace("- ", "-")
    text = {name: path.read_text(encoding="utf-8") for name, path in out.items()}
    found = {one["name"]: one for one in json.loads(text["json"])["diagnostics"]}
    asked_for = {name for name, one in found.items() if one["waived"]}
    assert asked_for == {*waived}
    assert "| label-shift-test | waived |" in text["markdown"]
    assert metrics(text["prometheus"])['calshift_condition_waived{condition="overlap"}'] == 1
    rows = re.findall(r"<tr><td>([a-z-]+)</td><td>([a-z<>/ ]+)</td>", text["report"])
    assert [name for name, state in rows[:6]] == waived
    assert {state for _, state in rows[6:]} == {"met"}


def test_a_condition_that_fails_is_first_and_has_its_number(tmp_path, capsys):
    wrong = pair(tmp_path / "wrong.npz", y_source=(Y_SOURCE + 1) % 3)
    out, page = tmp_path / "out.json", tmp_path / "out.html"
    assert status(["check", wrong, wrong, "--json", str(out), "--report", str(page)]) == 3
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("Not reliable: labels look shifted by one against the columns")
    assert "not met: label-order" in said
    rows = re.findall(r"<tr><td>([a-z-]+)</td><td>(.*?)</td>", page.read_text(encoding="utf-8"))
    assert rows[0] == ("label-order", "<strong>not met</strong>")
    assert json.loads(out.read_text(encoding="utf-8"))["diagnostics"][0]["failed"]


def test_unknown_names_to_waive_end_with_status_2(both, tmp_path, capsys):
    out = str(tmp_path / "out.npz")
    for command in (["check"], ["weights"], ["monitor"], ["recalibrate", "-o", out]):
        assert status([*command, both, both, "--waive", "nothing"]) == 2
        assert "waive must name conditions among label-order" in capsys.readouterr().err


def test_weights_are_tested_and_judged(both, tmp_path, capsys):
    out = tmp_path / "out.json"
    assert status(["weights", both, both, "--json", str(out)]) == 0
    report = json.loads(out.read_text(encoding="utf-8"))
    assert report["assumption"]["p_value"] > 0.05
    assert "conditions of trust" in capsys.readouterr().out
    flat = pair(tmp_path / "flat.npz", p_target=0.6 * P_TARGET + 0.4 * P_TARGET.mean(axis=0))
    assert status(["weights", flat, flat]) == 3
    said = " ".join(capsys.readouterr().out.split())
    # flattened predictions are no mixture of the source's: the shares end next to a corner
    assert re.match(r"Not reliable: class ant is estimated at (99|100)% of the target", said)
    assert status(["weights", flat, flat, "--no-check"]) in (0, 3)
    said = " ".join(capsys.readouterr().out.split())
    assert "waived: label-shift-test, label-shift-direction" in said.replace("- ", "-")


def test_every_metric_has_a_help_line_and_a_type(faces):
    lines = faces["prometheus"].splitlines()
    names = {re.match(r"[a-z_]+", line)[0] for line in lines if not line.startswith("#")}
    for name in names:
        assert sum(line.startswith(f"# HELP {name} ") for line in lines) == 1
        assert f"# TYPE {name} gauge" in lines
    assert faces["prometheus"].endswith("\n")


def test_odd_names_keep_the_grammar_of_metrics_and_tables(tmp_path):
    names = ('quo"te', "back\\slash", "new\nline|pipe")
    path, out, card = tmp_path / "odd.npz", tmp_path / "out.prom", tmp_path / "card.md"
    np.savez(path, p_source=P_SOURCE, y_source=Y_SOURCE, p_target=P_TARGET, classes=names)
    asked = ["--prometheus", str(out), "--markdown", str(card)]
    assert status(["check", str(path), str(path), "-q", *asked]) == 0
    assert len(metrics(out.read_text(encoding="utf-8"))) > 15
    tables = [line for line in card.read_text().splitlines() if line.startswith("| ")]
    assert len(tables) == 3 + 4
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 5 + (k > 2) for k, line in enumerate(tables))


def test_json_on_standard_output_is_alone_there(both, report, capsys):
    assert status(["check", both, both, "--max-error", "0.2", "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["target"] == report["target"]
    assert " ".join(err.split()).startswith(report["verdict"])


def test_only_one_output_is_the_terminal(both, capsys):
    assert status(["check", both, both, "--json", "-", "--markdown", "-"]) == 2
    assert "only one output" in capsys.readouterr().err


def test_the_same_command_gives_the_same_bits(both, report, tmp_path):
    out = tmp_path / "again.json"
    page = ["--report", str(tmp_path / "page.html")]  # which metrics are computed for
    status(["check", both, both, "-q", "--max-error", "0.2", "--json", str(out), *page])
    again = json.loads(out.read_text(encoding="utf-8"))
    changing = ("created", "command")
    assert {k: v for k, v in again.items() if k not in changing} == {
        k: v for k, v in report.items() if k not in changing
    }


@pytest.mark.slow
def test_the_seed_moves_the_bootstrap_and_nothing_else(both, tmp_path):
    found = []
    for seed in ("0", "0", "1"):
        out = tmp_path / "out.json"
        asked = ["--interval", "bootstrap", "--draws", "20", "--seed", seed]
        status(["check", both, both, "-q", *asked, "--json", str(out)])
        found.append(json.loads(out.read_text(encoding="utf-8"))["target"])
    assert found[0] == found[1]
    assert found[0]["estimate"] == found[2]["estimate"]
    assert found[0]["root_interval"] != found[2]["root_interval"]


def test_weights_give_the_numbers_of_the_library(both, result, tmp_path, capsys):
    out = tmp_path / "weights.json"
    assert status(["weights", both, both, "--json", str(out)]) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    weights = result.class_weights
    assert [one["weight"] for one in found["classes"]] == weights.values.tolist()
    assert [one["prior_target"] for one in found["classes"]] == weights.prior_target.tolist()
    shown = capsys.readouterr().out
    for c, name in enumerate(NAMES):
        assert re.search(rf"{name} .*{weights.values[c]:.4g}", shown)


def test_written_weights_are_read_again_by_name(both, result, tmp_path):
    weights, out = tmp_path / "weights.json", tmp_path / "out.json"
    status(["weights", both, both, "--json", str(weights)])
    order = [1, 2, 0]
    np.savez(
        tmp_path / "turned.npz", p_source=P_SOURCE[:, order], p_target=P_TARGET[:, order],
        y_source=np.array(NAMES)[Y_SOURCE], classes=np.array(NAMES)[order],
    )  # fmt: skip
    turned = str(tmp_path / "turned.npz")
    asked = ["--weights", str(weights), "--json", str(out)]
    assert status(["check", turned, turned, "-q", *asked]) == 0
    expected = calshift.target_calibration_error(
        P_SOURCE, Y_SOURCE, P_TARGET, weights=result.class_weights.values
    )
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["target"]["estimate"] == pytest.approx(expected.estimate, rel=1e-9)


def test_known_weights_give_the_numbers_of_the_library(both, tmp_path):
    out = tmp_path / "out.json"
    assert status(["check", both, both, "-q", "--weights", "1.5,1,0.5", "--json", str(out)]) == 0
    expected = calshift.target_calibration_error(
        P_SOURCE, Y_SOURCE, P_TARGET, weights=[1.5, 1, 0.5]
    )
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["target"]["estimate"] == expected.estimate


@pytest.mark.parametrize(
    "asked",
    [
        {"kind": "top-label"},
        {"norm": 1},
        {"estimator": "plugin", "bins": 10, "binning": "width"},
        {"weights": "bbse"},
    ],
    ids=str,
)
def test_options_mean_what_they_mean_in_python(asked, both, tmp_path):
    out = tmp_path / "out.json"
    options = [part for name, value in asked.items() for part in (f"--{name}", str(value))]
    assert status(["check", both, both, "-q", *options, "--json", str(out)]) == 0
    expected = calshift.target_calibration_error(P_SOURCE, Y_SOURCE, P_TARGET, **asked)
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["target"]["estimate"] == expected.estimate
    assert found["target"]["root_interval"] == list(expected.confidence_interval(root=True))


# --- the schema


def schema(name: str) -> dict:
    text = (files("calshift.report") / "schemas" / f"{name}.json").read_text(encoding="utf-8")
    return json.loads(text)


@pytest.mark.parametrize("name", ["report", "metrics", "monitoring", "weights"])
def test_the_schemas_are_schemas(name):
    jsonschema.Draft202012Validator.check_schema(schema(name))
    assert schema(name)["properties"]["schema_version"] == {"const": 2}


def test_json_keeps_its_schema(report):
    jsonschema.validate(report, schema("report"))
    assert report["schema"] == "calshift-report"
    assert report["schema_version"] == 2
    jsonschema.validate({**report, "more": 1}, schema("report"))  # open to additions


@pytest.mark.parametrize(
    "spoil",
    [
        lambda one: one.pop("verdict"),
        lambda one: one.update(schema_version=1),
        lambda one: one["diagnostics"][0].pop("limit"),
        lambda one: one["target"].update(root="0.05"),
        lambda one: one["target"].update(root_interval=[0.1]),
        lambda one: one["classes"][0].pop("weight"),
        lambda one: one.update(exit_code=2),
        lambda one: one["metrics"].pop("requirements"),
        lambda one: one["metrics"]["metrics"][0].update(unit="percent"),
    ],
)
def test_the_schema_can_be_broken(spoil, report):
    spoilt = json.loads(json.dumps(report))
    spoil(spoilt)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(spoilt, schema("report"))


@pytest.fixture(scope="module")
def strange(tmp_path_factory):
    """Files on which something is unknown, doubtful or rejected."""
    folder = tmp_path_factory.mktemp("strange")
    kept = Y_SOURCE != 1
    arrays = {
        "binary": (SCORES, FRAUD, SCORES_NOW),
        "lacking": (P_SOURCE[kept], Y_SOURCE[kept], P_TARGET),
        "rejected": (P_SOURCE, Y_SOURCE, OTHER),
        "tiny": (P_SOURCE[:9], Y_SOURCE[:9], P_TARGET[:5]),
    }
    for name, (p, y, q) in arrays.items():
        np.savez(folder / f"{name}.npz", p_source=p, y_source=y, p_target=q)
    return folder


@pytest.mark.parametrize(
    ("file", "asked"),
    [
        ("binary", []),
        ("lacking", []),
        ("rejected", ["--max-error", "0.01", "--gate", "upper"]),
        ("tiny", []),
        ("binary", ["--no-check", "--norm", "3", "--draws", "20"]),
        ("rejected", ["--kind", "top-label", "--estimator", "paper", "--draws", "20"]),
        ("tiny", ["--kind", "canonical", "--draws", "20"]),
        ("binary", ["--weights", "0.7,1.9"]),
        ("rejected", ["--estimator", "paper", "--interval", "influence"]),
    ],
)
def test_strange_answers_keep_the_schema_in_every_face(file, asked, strange, tmp_path):
    both = str(strange / f"{file}.npz")
    outputs = [part for name in OUTPUTS for part in (f"--{name}", str(tmp_path / name))]
    assert status(["check", both, both, *asked, *outputs]) in (0, 1, 3)
    found = json.loads((tmp_path / "json").read_text(encoding="utf-8"))
    jsonschema.validate(found, schema("report"))
    metrics((tmp_path / "prometheus").read_text(encoding="utf-8"))
    assert "nan" not in (tmp_path / "markdown").read_text(encoding="utf-8")


@pytest.mark.parametrize("file", ["binary", "lacking", "rejected", "tiny"])
def test_weights_keep_their_schema(file, strange, tmp_path):
    both, out = str(strange / f"{file}.npz"), tmp_path / "out.json"
    assert status(["weights", both, both, "--json", str(out)]) in (0, 3)
    jsonschema.validate(json.loads(out.read_text(encoding="utf-8")), schema("weights"))


@pytest.mark.parametrize("file", ["binary", "lacking", "rejected"])
def test_monitoring_keeps_its_schema(file, strange, tmp_path):
    both, out = str(strange / f"{file}.npz"), tmp_path / "out.json"
    asked = ["--rows", "190", "--json", str(out)]
    assert status(["monitor", both, both, *asked]) in (0, 3)
    found = json.loads(out.read_text(encoding="utf-8"))
    jsonschema.validate(found, schema("monitoring"))
    assert len(found["skipped"]) == (file == "binary")  # 400 rows leave 20, 600 rows 30


def test_no_error_is_above_one(tmp_path):
    out = tmp_path / "out.json"
    flat = P_TARGET**0.2 / (P_TARGET**0.2).sum(axis=1, keepdims=True)
    path = tmp_path / "flat.npz"
    np.savez(path, p_source=P_SOURCE, y_source=Y_SOURCE, p_target=flat)
    status(["monitor", str(path), str(path), "--rows", "190", "--json", str(out)])
    windows = json.loads(out.read_text(encoding="utf-8"))["windows"]
    assert all(window["root_interval"][1] <= 1 for window in windows)


def test_no_share_of_the_target_is_above_the_whole(tmp_path):
    path, out = tmp_path / "few.npz", tmp_path / "out.json"
    np.savez(path, p_source=P_SOURCE[:2], y_source=[0, 2], p_target=P_TARGET[:5])
    assert status(["check", str(path), str(path), "-q", "--json", str(out)]) == 3
    warnings = " ".join(json.loads(out.read_text(encoding="utf-8"))["warnings"])
    assert all(float(share) <= 100 for share in re.findall(r"([\d.]+)%", warnings))


# --- whole or absent


def failing(number: int):
    def fail(*arguments, **options):
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("option", OUTPUTS)
@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_a_write_that_fails_leaves_nothing(option, step, both, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(f"os.{step}", failing(errno.ENOSPC))
    place = tmp_path / "out"
    assert status(["check", both, both, f"--{option}", str(place)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert f"{place} cannot be written (No space left on device)" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", OUTPUTS)
def test_a_write_that_fails_leaves_the_file_before_as_it_was(option, both, tmp_path, monkeypatch):
    place = tmp_path / "out"
    place.write_text("before")
    monkeypatch.setattr("os.replace", failing(errno.EIO))
    assert status(["check", both, both, f"--{option}", str(place)]) == 2
    assert place.read_text() == "before"
    assert list(tmp_path.iterdir()) == [place]


def test_a_stop_while_writing_leaves_nothing(both, tmp_path, monkeypatch):
    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", stop)
    assert status(["check", both, both, "--json", str(tmp_path / "out")]) == 130
    assert list(tmp_path.iterdir()) == []


def test_a_plot_that_cannot_be_written_leaves_nothing(both, tmp_path, monkeypatch):
    monkeypatch.setattr("os.replace", failing(errno.ENOSPC))
    asked = ["--rows", "300", "--plot", str(tmp_path / "plot.png")]
    assert status(["monitor", both, both, *asked]) == 2
    assert list(tmp_path.iterdir()) == []


def test_write_report_fails_as_whole_too(result, tmp_path, monkeypatch):
    monkeypatch.setattr("os.replace", failing(errno.ENOSPC))
    with pytest.raises(calshift.InvalidInput, match="No space left"):
        calshift.write_report(result, tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_disk_that_fills_up_leaves_nothing(both, tmp_path):
    resource = pytest.importorskip("resource")
    limited = (
        f"import resource; resource.setrlimit({resource.RLIMIT_FSIZE}, (2000, 2000))\n"
        "from calshift.cli.main import main; main()"
    )
    place = tmp_path / "out.json"
    done = subprocess.run(
        [sys.executable, "-c", limited, "check", both, both, "--json", str(place)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "cannot be written (File too large)" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_answer_that_cannot_be_given_writes_nothing(both, tmp_path):
    asked = [part for name in OUTPUTS for part in (f"--{name}", str(tmp_path / name))]
    assert status(["check", both, both, "--bins", "0", *asked]) == 2
    assert list(tmp_path.iterdir()) == []


def test_an_earlier_file_is_replaced(both, tmp_path):
    place = tmp_path / "out.json"
    place.write_text("before" * 100_000)
    assert status(["check", both, both, "--json", str(place)]) == 0
    assert json.loads(place.read_text(encoding="utf-8"))["status"] == "fine"
    assert list(tmp_path.iterdir()) == [place]


def test_a_pipe_or_a_device_is_not_replaced_by_a_file(both, tmp_path):
    place = tmp_path / "pipe"
    os.mkfifo(place)
    reader = os.open(place, os.O_RDONLY | os.O_NONBLOCK)  # so that a writer need not wait
    try:
        status(["check", both, both, "--prometheus", str(place)])
        assert stat.S_ISFIFO(place.stat().st_mode)
    finally:
        os.close(reader)


def test_written_files_obey_the_umask(both, tmp_path):
    place = tmp_path / "out.json"
    before = os.umask(0o027)
    try:
        status(["check", both, both, "--json", str(place)])
    finally:
        os.umask(before)
    assert stat.S_IMODE(place.stat().st_mode) == 0o640
