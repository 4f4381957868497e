"""The command line, as a person or a CI job runs it."""

from __future__ import annotations

import errno
import importlib
import json
import os
import pty
import re
import subprocess
import sys

import numpy as np
import pytest

import calshift
from calshift.cli.main import status
from tests.prediction_files import NAMES, OTHER, P_SOURCE, P_TARGET, Y_SOURCE

ESCAPE = "\x1b"
TITLE = f"{ESCAPE}]0;owned\x07"  # what renames the window of a terminal
STYLE = re.compile(rf"{ESCAPE}\[[0-9;]*m")


def run(*arguments: str, code: str | None = None, **more) -> subprocess.CompletedProcess[str]:
    start = ["-m", "calshift"] if code is None else ["-c", code]
    return subprocess.run(
        [sys.executable, *start, *arguments], capture_output=True, text=True, **more
    )


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """Standard output of the command where it is a terminal."""
    master, slave = pty.openpty()
    names = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    done = subprocess.Popen(
        [sys.executable, "-m", "calshift", *arguments],
        stdout=slave, stderr=subprocess.PIPE, env={**names, "TERM": "xterm", **environment},
    )  # fmt: skip
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65_536)
        except OSError:  # Linux says so that the other end is closed
            break
        if not part:
            break
        shown += part
    done.communicate()
    os.close(master)
    return shown.decode("utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files whose answer is an error of 0.078, from 0.050 to 0.107; and ones not to be trusted."""
    place = tmp_path_factory.mktemp("cli")
    source = {"p_source": P_SOURCE, "y_source": Y_SOURCE, "classes": NAMES}
    np.savez(place / "good.npz", p_target=P_TARGET, **source)
    np.savez(place / "other.npz", p_target=OTHER, **source)
    odd = (f"{ESCAPE}[31mred{TITLE}", "caf\xe9 \u65e5\u672c", "a\nb\r\tc")
    np.savez(place / "odd.npz", p_target=P_TARGET, **(source | {"classes": odd}))
    seen = Y_SOURCE != 0
    lacking = {"p_source": P_SOURCE[seen], "y_source": Y_SOURCE[seen], "classes": odd}
    np.savez(place / "lacking.npz", p_target=P_TARGET, **lacking)
    return place


@pytest.fixture(scope="module")
def good(folder):
    return [str(folder / "good.npz")] * 2


@pytest.fixture(scope="module")
def other(folder):
    return [str(folder / "other.npz")] * 2


@pytest.fixture(scope="module")
def odd(folder):
    return [str(folder / "odd.npz")] * 2


@pytest.fixture(scope="module")
def lacking(folder):
    return [str(folder / "lacking.npz")] * 2


# --- exit status


def test_0_without_a_threshold(good):
    assert status(["check", *good]) == 0


@pytest.mark.parametrize(
    ("limit", "gate", "code"),
    [
        ("0.2", "lower", 0),
        ("0.2", "upper", 0),
        ("0.08", "lower", 0),  # within the interval
        ("0.08", "upper", 1),
        ("0.04", "lower", 1),
        ("0.04", "upper", 1),
    ],
)
def test_1_where_an_end_of_the_interval_lies_above_the_limit(limit, gate, code, good, capsys):
    low, high = calshift.target_calibration_error(P_SOURCE, Y_SOURCE, P_TARGET).confidence_interval(
        root=True
    )
    assert 0.04 < low < 0.08 < high < 0.2
    assert status(["check", *good, "--max-error", limit, "--gate", gate]) == code
    assert f"limit of {limit}" in " ".join(capsys.readouterr().out.lower().split())


def test_the_limit_is_in_root_units_like_the_verdict(good):
    # the squared error is 0.006, which would pass
    assert status(["check", *good, "--max-error", "0.03"]) == 1


def test_the_limit_itself_is_no_breach(good):
    result = calshift.target_calibration_error(P_SOURCE, Y_SOURCE, P_TARGET, rng=0)
    low, high = result.confidence_interval(root=True)
    assert status(["check", *good, "--max-error", repr(float(low))]) == 0
    assert status(["check", *good, "--max-error", repr(float(high)), "--gate", "upper"]) == 0


def test_the_level_moves_the_gate(good):
    assert status(["check", *good, "--max-error", "0.06"]) == 0
    assert status(["check", *good, "--max-error", "0.06", "--level", "0.5"]) == 1


def test_a_stated_drift_widens_the_interval(good, tmp_path, capsys):
    assert status(["check", *good, "--max-error", "0.03"]) == 1
    assert "came from another distribution, the interval could include the limit" in (
        capsys.readouterr().out.replace("\n", " ")
    )
    out = tmp_path / "out.json"
    wide = ["--max-error", "0.03", "--drift", "0.05"]
    assert status(["check", *good, *wide, "--json", str(out)]) == 0
    assert "The interval allows for 5% of the target rows" in capsys.readouterr().out
    report = json.loads(out.read_text())
    assert report["settings"]["drift"] == report["drift"]["stated"] == 0.05
    assert report["target"]["root_interval"][0] < 0.03
    assert status(["check", *good, "--drift", "2"]) == 2
    assert "drift must be a number from 0 to 1" in capsys.readouterr().err
    assert status(["check", *good, "--drift", "0.1", "--estimator", "paper"]) == 2
    assert status(["monitor", *good, "--rows", "500", "--drift", "0.05", "--json", str(out)]) == 0
    assert json.loads(out.read_text())["settings"]["drift"] == 0.05


def test_3_where_more_than_the_mix_changed(other, capsys):
    assert status(["check", *other]) == 3
    assert capsys.readouterr().out.startswith("Not reliable: more than the class")


def test_3_outranks_1(other, tmp_path):
    out = tmp_path / "out.json"
    limit = ["--max-error", "0.001", "--gate", "upper"]
    assert status(["check", *other, *limit, "--json", str(out)]) == 3
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["threshold"]["breached"]
    assert found["status"] == "untrusted"


def test_3_where_weights_cannot_be_relied_on(lacking):
    assert status(["weights", *lacking]) == 3
    assert status(["check", *lacking, "--no-check"]) == 3


def test_3_on_one_window_of_a_series(other):
    assert status(["monitor", *other, "--rows", "300"]) == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["check"],
        ["check", "a", "b", "--frob"],
        ["check", "a", "b", "--norm", "two"],
        ["check", "a", "b", "--kind", "round"],
        ["check", "a", "b", "--gate", "middle"],
        [],
    ],
)
def test_2_for_wrong_usage_without_a_traceback(arguments, capsys):
    assert status(arguments) == 2
    err = capsys.readouterr().err
    assert err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "options",
    [
        ["--norm", "0.5"], ["--norm", "nan"], ["--bins", "0"], ["--bins", "x"], ["--level", "95"],
        ["--level", "nan"], ["--max-error", "5"], ["--max-error", "nan"], ["--max-error", "-1"],
        ["--seed", "-1"], ["--kind", "binary"], ["--weights", "frob"], ["--weights", "1,2"],
        ["--weights", "nan,1,1"], ["--weights", "0,0,0"], ["--weights", "gone.json"],
        ["--draws", "0", "--interval", "bootstrap"], ["--jobs", "0", "--interval", "bootstrap"],
        ["--columns", "z_*"], ["--label", "zz"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_2_and_one_line_for_a_value_that_cannot_be(options, good, capsys):
    assert status(["check", *good, *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"calshift: .+\n", err)


@pytest.mark.parametrize(
    "options",
    [
        ["--seed", "-1"],
        ["--draws", "0", "--interval", "bootstrap"],
        ["--jobs", "0", "--interval", "bootstrap"],
        ["--estimator", "paper", "--interval", "influence", "--max-error", "0.1"],
    ],
    ids=" ".join,
)
def test_a_complaint_speaks_of_the_options_that_were_typed(options, good, capsys):
    assert status(["check", *good, *options]) == 2
    err = capsys.readouterr().err
    assert "rng" not in err
    assert "n_boot" not in err
    assert "n_jobs" not in err
    assert 'interval="bootstrap"' not in err


def broken(monkeypatch, problem: BaseException) -> None:
    def fail(*arguments, **options):
        raise problem

    module = importlib.import_module("calshift.cli.estimates")
    monkeypatch.setattr(module, "target_calibration_error", fail)


@pytest.mark.parametrize(
    "problem", [RuntimeError("all is\nlost"), ValueError("all is\nlost"), KeyError("all is lost")]
)
def test_4_for_a_fault_of_ours_in_one_line(problem, good, monkeypatch, capsys):
    broken(monkeypatch, problem)
    assert status(["check", *good]) == 4
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "internal error" in err
    assert "all is lost" in err
    assert "--debug" in err


def test_130_when_stopped(good, monkeypatch, capsys):
    broken(monkeypatch, KeyboardInterrupt())
    assert status(["check", *good]) == 130
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "problem",
    [
        MemoryError(),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
        ImportError("x.so: failed to map segment from shared object", name="pyarrow.lib"),
    ],
)
def test_4_where_memory_is_too_small(problem, good, monkeypatch, capsys):
    broken(monkeypatch, problem)
    assert status(["check", *good]) == 4
    assert "not enough memory" in capsys.readouterr().err


@pytest.mark.parametrize("place", [0, 3])
def test_debug_shows_where_a_mistake_came_from(place, capsys):
    arguments = ["check", "gone.csv", "gone.csv"]
    assert status(arguments) == 2
    assert "Traceback" not in capsys.readouterr().err
    arguments.insert(place, "--debug")
    assert status(arguments) == 2
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("calshift: gone.csv: no such file")


def test_debug_shows_where_a_fault_came_from(good, monkeypatch, capsys):
    broken(monkeypatch, RuntimeError("all is lost"))
    assert status(["check", *good, "--debug"]) == 4
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(("limit", "code"), [("0.2", 0), ("0.01", 1)])
def test_the_process_ends_with_that_status(limit, code, good):
    done = run("check", *good, "--max-error", limit)
    assert done.returncode == code
    assert done.stderr == ""


def test_the_process_ends_with_2_and_one_line(tmp_path):
    done = run("check", "gone.csv", "gone.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(r"calshift: gone.csv: no such file.*\n", done.stderr)


@pytest.mark.slow
def test_a_reader_that_left_is_no_breach(good):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "calshift", "check", *good], stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    assert done.returncode not in (1, 3, 4)
    assert b"Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_under_standard_output_is_no_fault_of_ours(good):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "calshift", "check", *good],
            stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_help_and_documentation_name_every_exit_status(capsys):
    assert status(["--help"]) == 0
    told = capsys.readouterr().out
    for code in ("0 ", "1 ", "2 ", "3 ", "4 "):
        assert code in told[told.index("Exit status") :]


@pytest.mark.parametrize("command", ["demo", "check", "weights", "monitor"])
def test_every_command_has_help_that_fits(command, capsys):
    assert status([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Usage: calshift")
    assert max(map(len, out.splitlines())) <= 100


def test_version_and_help():
    assert run("--version").stdout == f"calshift, version {calshift.__version__}\n"
    assert "demo" in run("--help").stdout


def test_unknown_command_is_a_usage_error():
    done = run("frobnicate")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


# --- what is not installed


def test_without_click_it_says_what_to_install():
    hidden = "import sys; sys.modules['click'] = None; from calshift.cli.main import main; main()"
    done = run(code=hidden)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "pip install 'calshift[cli]'" in done.stderr


def test_without_matplotlib_drawing_says_what_to_install():
    hidden = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.figure'] = None\n"
        "import calshift\n"
        "calshift.reliability_curve([0.1, 0.9], [0, 1], bins=1).plot()"
    )
    done = run(code=hidden)
    assert "pip install 'calshift[plot]'" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        ("pyarrow", ["check", "a.csv", "a.csv"]),
        ("jinja2", ["check", "good.npz", "good.npz", "--report", "page.html"]),
        ("matplotlib", ["monitor", "good.npz", "good.npz", "--rows", "300", "--plot", "a.png"]),
    ],
)
def test_a_missing_package_is_named(package, arguments, folder, tmp_path):
    (tmp_path / "a.csv").write_text("p_a,p_b,label\n0.5,0.5,a\n")
    (tmp_path / "good.npz").write_bytes((folder / "good.npz").read_bytes())
    hidden = (
        f"import sys; sys.modules[{package!r}] = None; from calshift.cli.main import main; main()"
    )
    done = run(*arguments, code=hidden, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert package in done.stderr or "calshift[plot]" in done.stderr
    assert "pip install" in done.stderr


# --- the terminal


COMMANDS = [["check"], ["weights"], ["monitor", "--rows", "300"]]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one[0])
def test_no_colour_where_nobody_sees_it(command, other):
    done = run(*command, *other)
    assert ESCAPE not in done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", [["check"], ["monitor", "--rows", "300"]], ids=lambda c: c[0])
def test_colour_on_a_terminal_unless_refused(command, good):
    asked = [*command, *good, "--max-error", "0.2"]
    assert f"{ESCAPE}[32m" in on_a_terminal(*asked)
    for refused in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert ESCAPE not in on_a_terminal(*asked, **refused)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "colour"), [("0.2", 32), ("0.01", 31)], ids=["fine is green", "breached is red"]
)
def test_the_colour_tells_the_status(limit, colour, good):
    shown = on_a_terminal("check", *good, "--max-error", limit)
    assert shown.startswith(f"{ESCAPE}[{colour}m")


def check_harmless(shown: str) -> None:
    assert f"{ESCAPE}[31mred" not in shown
    assert all(line.isprintable() for line in STYLE.sub("", shown).split("\r\n"))


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one[0])
@pytest.mark.parametrize("files", ["odd", "lacking"])
def test_names_of_classes_do_not_steer_the_terminal(command, files, folder):
    path = str(folder / f"{files}.npz")
    shown = on_a_terminal(*command, path, path)
    assert shown
    check_harmless(shown)


@pytest.mark.slow
@pytest.mark.parametrize("face", ["json", "markdown", "prometheus"])
def test_nor_where_a_face_of_the_report_goes_to_the_terminal(face, odd):
    check_harmless(on_a_terminal("check", *odd, f"--{face}", "-"))


def test_names_of_classes_do_not_steer_the_terminal_from_a_complaint(folder, good, odd):
    done = run("check", good[0], odd[0])
    assert done.returncode == 2
    assert done.stderr[:-1].isprintable()


def test_a_file_s_content_does_not_steer_the_terminal_from_a_complaint(good, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text(f"p_ant,p_bee,p_cow\n0.1,0.2,0.7\n{ESCAPE}[31m\n")
    done = run("check", good[0], str(path))
    assert done.returncode == 2
    assert done.stderr[:-1].isprintable()


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one[0])
def test_names_beyond_ascii_do_not_break_a_narrow_terminal(command, odd):
    done = run(*command, *odd, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_json_stays_json_on_a_narrow_terminal(odd):
    narrow = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = run("check", *odd, "--json", "-", env=narrow)
    assert json.loads(done.stdout)["classes"][1]["class"] == "caf\xe9 \u65e5\u672c"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one[0])
@pytest.mark.parametrize("kept", [24, 12])
def test_no_line_is_wider_than_100_columns(command, kept, tmp_path, capsys):
    simulation = calshift.simulate.GaussianSimulation(n_classes=24)
    p_source, y_source = simulation.source(700, rng=1)
    seen = y_source < kept
    np.savez(
        tmp_path / "many.npz", p_source=p_source[seen], y_source=y_source[seen],
        p_target=simulation.target(600, rng=2)[0],
        classes=[f"class {k} of a very long and telling name" for k in range(24)],
    )  # fmt: skip
    path = str(tmp_path / "many.npz")
    assert status([*command, path, path]) in (0, 3)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100, max(lines, key=len)


# --- the demo


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    place = tmp_path_factory.mktemp("demo")
    return place, run("demo", cwd=place)


@pytest.mark.slow
def test_demo_prints_the_estimate_beside_the_truth(demo):
    _, done = demo
    assert done.returncode == 0
    assert done.stderr == ""
    number = r"(0\.\d+)"
    both = rf"as predicted +{number} \(.+?\) +{number} \({number} to {number}\)"
    found = re.search(both, done.stdout)
    estimate, truth, low, high = map(float, found.groups())
    line = next(line for line in done.stdout.splitlines() if line.startswith("target"))
    shown, least, most = map(float, re.findall(r"0\.\d+", line)[:3])
    assert shown == estimate
    assert low < truth < high
    # 95% intervals of two estimates of one number overlap in all but 1 case of 180
    assert least < high
    assert low < most
    assert max(map(len, done.stdout.splitlines())) <= 100


@pytest.mark.slow
def test_demo_writes_the_page_and_nothing_else(demo):
    place, done = demo
    assert [one.name for one in place.iterdir()] == ["calshift-report.html"]
    page = (place / "calshift-report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "T-shirt/top" in page
    assert len(page.encode()) < 500_000
    assert "calshift-report.html" in done.stdout


def test_demo_gives_the_numbers_of_the_library(demo):
    source, target = calshift.data.fashion_mnist()
    result = calshift.target_calibration_error(source, None, target.unlabelled())
    truth = calshift.calibration_error(target)
    (line,) = [line for line in demo[1].stdout.splitlines() if line.startswith("as predicted")]
    assert re.findall(r"(\S+) \(", line) == [f"{result.root:.4f}", f"{truth.root:.4f}"]


@pytest.mark.slow
def test_demo_files_can_be_checked_as_printed(demo, tmp_path):
    done = run("demo", "--files", ".", "--report", "page.html", cwd=tmp_path)
    assert done.returncode == 0
    assert {one.name for one in tmp_path.iterdir()} == {"page.html", "source.csv", "target.csv"}
    command = re.search(r"calshift (check \S+ \S+)", done.stdout)[1].split()
    again = run(*command, cwd=tmp_path)
    assert again.returncode == 0
    line = next(line for line in demo[1].stdout.splitlines() if line.startswith("target"))
    assert line in again.stdout


def test_demo_says_before_the_work_that_a_place_cannot_be(tmp_path):
    done = run("demo", "--files", "none", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "none" in done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_an_end_of_file_inside_the_library_is_an_internal_error(monkeypatch, capsys):
    """click takes EOFError for a closed terminal and reports an interrupt."""

    def fail(*arguments, **options):
        msg = "Ran out of input"
        raise EOFError(msg)

    monkeypatch.setattr(sys.modules["calshift.cli.commands.weights"], "open_samples", fail)
    assert status(["weights", "a.csv", "b.csv"]) == 4
    assert "Ran out of input" in capsys.readouterr().err


def test_prevalence_is_another_name_of_weights(good, capsys):
    shown = []
    for name in ("weights", "prevalence"):
        assert status([name, *good]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert "class" in shown[0]
    assert status(["prevalence", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Usage: calshift prevalence" in text
    assert "`calshift weights` and `calshift prevalence` are the same command" in text
