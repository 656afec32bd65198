"""rune_jit.profile(): what it counts, what it says was the cause, and the forms of its report."""

from __future__ import annotations

import builtins
import doctest
import json
import re
import runpy
import threading
from pathlib import Path
from typing import Any

import numpy as np
import profiled_programs as programs
import pytest
from page_checks import check_page
from threads import in_threads

import rune_jit
from rune_jit import _core
from rune_jit.profiling import profile as profile_module
from rune_jit.profiling import report


def line_of(function: Any, text: str) -> str:
    """ "file.py:12" of the line of a function that contains a text."""
    lines = Path(programs.__file__).read_text().splitlines()
    first = function.__code__.co_firstlineno
    number = next(n for n in range(first, len(lines) + 1) if text in lines[n - 1])
    return f"profiled_programs.py:{number}"


def test_kernels_are_counted_with_the_work_of_the_cost_model() -> None:
    f = rune_jit.jit(programs.two_kernels, device="cpu")
    x = np.linspace(0, 1, 6400, dtype=np.float32).reshape(80, 80)
    with rune_jit.profile() as p:
        results = [f(x) for _ in range(3)]
    for result in results:
        for got, expected in zip(result, programs.two_kernels(x), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-5)
    costs = f.lower(x).cost_analysis()
    kernels = [kernel for kernel in p.kernels if kernel.kind == "kernel"]
    assert len(kernels) == costs["kernels"] == 2
    assert all(kernel.calls == 3 and kernel.function == "two_kernels" for kernel in kernels)
    assert sum(kernel.flops for kernel in kernels) == costs["flops"]
    assert sum(k.bytes for k in kernels) == costs["bytes_read"] + costs["bytes_written"]
    lines = {line_of(programs.two_kernels, "x.T @ x")}
    assert {kernel.location for kernel in kernels} == lines
    for kernel in kernels:
        assert 0 < kernel.least_ns <= kernel.mean_ns <= kernel.most_ns <= kernel.total_ns
        assert kernel.by_device
        assert kernel.gflops == pytest.approx(kernel.flops / kernel.mean_ns)
        assert kernel.gbytes == pytest.approx(kernel.bytes / kernel.mean_ns)
        assert kernel.share_of_flops > 0 and kernel.share_of_bytes > 0
    assert p.calls["two_kernels"][0] == 3
    assert sum(k.total_ns for k in kernels) <= p.calls["two_kernels"][1] <= p.seconds * 1e9


def test_steps_lie_within_runs_and_these_within_calls() -> None:
    f = rune_jit.jit(programs.two_kernels, device="cpu")
    x = np.ones((50, 50))
    f(x)
    with rune_jit.profile() as p:
        f(x)
    (call,) = [i for i in p.intervals if i.kind == "call"]
    (run,) = [i for i in p.intervals if i.kind == "program"]
    steps = [i for i in p.intervals if i.kind == "step"]
    assert call.name == run.name == "two_kernels" and len(steps) == 2
    assert call.begin_ns <= run.begin_ns and run.begin_ns + run.ns <= call.begin_ns + call.ns
    at = run.begin_ns
    for step in steps:
        assert at <= step.begin_ns
        at = step.begin_ns + step.ns
    assert at <= run.begin_ns + run.ns
    assert {i.thread for i in p.intervals} == {threading.get_ident()}


def test_causes_of_compilations(monkeypatch: pytest.MonkeyPatch) -> None:
    f = rune_jit.jit(programs.elementwise, device="cpu")
    g = rune_jit.jit(programs.with_global, device="cpu")
    u = rune_jit.jit(programs.unrolled, device="cpu")
    x = np.ones(4)
    with rune_jit.profile() as p:
        f(x), f(x), f(np.ones(5)), f(x.astype(np.float32)), f(np.ones((4, 4)))
        g(x)
        monkeypatch.setattr(programs, "scale", 3.0)
        np.testing.assert_array_equal(g(x), 3 * x)
        u(x, 2), u(x, 3)
    programs_of_f = {(k.program, k.calls) for k in p.kernels if k.function == "elementwise"}
    assert programs_of_f == {(1, 2), (2, 1), (3, 1), (4, 1)}
    assert "elementwise (4)" in str(p)
    causes = [(c.function, c.cause, c.outcome) for c in p.compilations]
    assert causes == [
        ("elementwise", "first call", "program"),
        ("elementwise", "x: float64[5] (was float64[4])", "program"),
        ("elementwise", "x: float32[4] (was float64[4])", "program"),
        ("elementwise", "x: float64[4,4] (was float64[5])", "program"),
        ("with_global", "first call", "program"),
        ("with_global", "global scale: 3.0 (was 2.0)", "program"),
        ("unrolled", "first call", "program"),
        ("unrolled", "n: value 3 (was value 2)", "program"),
    ]
    for c in p.compilations:
        assert c.site.partition(":")[0] == __file__ and set(c.parts) == {"trace", "passes", "code"}
        assert c.event.ns >= 0.9e9 * sum(c.parts.values()) > 0 and c.operations > 0


def test_signatures_from_before_the_profile_are_known() -> None:
    f = rune_jit.jit(lambda x, y: x + y, device="cpu")
    f(np.ones(4), 1.0)
    with rune_jit.profile() as p:
        f(np.ones(4), y=np.ones(4))
    assert [c.cause for c in p.compilations] == ["y: float64[4] (was float)"]


def test_reads_and_segments() -> None:
    f = rune_jit.jit(programs.reads, device="cpu")
    x = np.ones(10)
    with rune_jit.profile() as p:
        for _ in range(2):
            np.testing.assert_array_equal(f(x), x + 1)
    ((name, what, times, total),) = p.reads
    assert name == "reads" and times == 2 and total > 0
    assert what.endswith(line_of(programs.reads, "# a read")) and what.startswith("float64[] at ")
    outcomes = [(c.function, c.cause, c.outcome) for c in p.compilations]
    assert outcomes[0][:2] == ("reads", "first call") and "segments: tolist" in outcomes[0][2]
    assert outcomes[1:] == [
        ("reads, segment 1", "the first segment", "segment, interpreted"),
        ("reads, segment 2", "a new segment", "segment, interpreted"),
    ]
    kernels = {kernel.function: kernel.calls for kernel in p.kernels}
    assert kernels == {"reads, segment 1": 2, "reads, segment 2": 2}


def test_host_callbacks_are_steps() -> None:
    f = rune_jit.jit(programs.sorts, device="cpu")
    x = np.random.default_rng(0).random(100)
    with rune_jit.profile() as p:
        np.testing.assert_allclose(f(x), programs.sorts(x))
    (callback,) = [k for k in p.kernels if k.kind == "callback"]
    assert callback.name == "numpy.sort" and callback.calls == 1 and callback.device == "host"
    assert callback.location == line_of(programs.sorts, "np.sort")


def test_calls_on_numpy_have_a_reason() -> None:
    f = rune_jit.jit(programs.elementwise, device="cpu")
    x = np.ones(4)
    with rune_jit.profile() as p:
        f(x)
        with np.errstate(all="raise"):
            f(x)
        with pytest.raises(TypeError):
            f()  # type: ignore[call-arg]
    found = {(name, reason): count for name, reason, count, _ in p.numpy_calls}
    assert found == {
        ("elementwise", "numpy.errstate asks for floating-point errors"): 1,
        ("elementwise", "the arguments do not fit its signature"): 1,
    }


def test_memory_in_use() -> None:
    f = rune_jit.jit(programs.elementwise, device="cpu")
    x = np.ones(1 << 20)
    f(x)
    with rune_jit.profile() as p:
        y = f(x)
        del y
        kept = f(x[: 1 << 18])
    use = p.memory["cpu"]
    size = x.nbytes
    assert size <= use.peak - use.begin < size + (1 << 20)
    assert kept.nbytes <= use.end - use.begin < size
    assert use.peak == max(use.begin, *use.points[:, 1]) and use.points[-1, 1] == use.end
    assert (np.diff(use.points[:, 0]) >= 0).all()


def test_nothing_is_recorded_outside() -> None:
    f = rune_jit.jit(programs.elementwise, device="cpu")
    x = np.ones(4)
    with rune_jit.profile() as p:
        f(x)
    f(x), f(np.ones(7))
    assert not _core.is_profiling()
    assert p.calls["elementwise"][0] == 1 and len(p.compilations) == 1
    with rune_jit.profile() as second:
        pass
    assert second.kernels == second.compilations == [] and second.calls == {}


def test_one_at_a_time() -> None:
    with rune_jit.profile() as p:
        with pytest.raises(RuntimeError, match="profile: cannot begin"), rune_jit.profile():
            pass
        with pytest.raises(RuntimeError, match="cannot read what is being recorded"):
            p.summary()
    with pytest.raises(RuntimeError, match="cannot begin again"), p:
        pass
    assert not _core.is_profiling()


def test_exceptions_pass_and_end_it() -> None:
    with pytest.raises(ValueError, match="mine"), rune_jit.profile() as p:
        rune_jit.jit(programs.elementwise, device="cpu")(np.ones(3))
        raise ValueError("mine")
    assert not _core.is_profiling() and len(p.kernels) == 1


def test_all_threads_are_recorded() -> None:
    f = rune_jit.jit(programs.elementwise, device="cpu")
    x = np.ones(1000)
    f(x)
    all_run = threading.Barrier(4)  # the number of one that has ended may be given again

    def work(_: int) -> None:
        all_run.wait()
        for _ in range(200):
            np.testing.assert_array_equal(f(x), 3)

    with rune_jit.profile() as p:
        in_threads(work, range(4))
    (kernel,) = p.kernels
    assert kernel.calls == p.calls["elementwise"][0] == 800
    assert len({i.thread for i in p.intervals}) == 4


def test_programs_of_many_sizes_are_marked() -> None:
    f = rune_jit.jit(programs.elementwise, device="cpu", dynamic={"x": {0: "n"}})
    x = np.ones(100)
    with rune_jit.profile() as p:
        np.testing.assert_array_equal(f(x), programs.elementwise(x))
        f(x[:50])
    (kernel,) = p.kernels
    assert kernel.is_dynamic and kernel.calls == 2 and kernel.bytes >= 2 * x.nbytes
    assert "elementwise *" in str(p) and "* takes many sizes" in str(p)


@pytest.mark.parametrize("device", ["interpreter", "interpreter-delayed", "metal-interpreted"])
def test_devices_whose_times_are_the_hosts_say_so(device: str) -> None:
    f = rune_jit.jit(programs.two_kernels, device=device)
    x = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    with rune_jit.profile() as p:
        for got, expected in zip(f(x), programs.two_kernels(x), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-5)
    kernels = [kernel for kernel in p.kernels if kernel.kind == "kernel"]
    assert kernels and all(kernel.device.startswith(device) for kernel in kernels)
    by_device = device != "interpreter-delayed"
    assert all(kernel.by_device == by_device for kernel in kernels)
    assert ("the host's, which waits" in str(p)) != by_device


@pytest.fixture
def example() -> rune_jit.Profile:
    f = rune_jit.jit(programs.sorts, device="cpu")
    g = rune_jit.jit(programs.reads, device="cpu")
    h = rune_jit.jit(programs.prints, device="cpu")
    with rune_jit.profile() as p:
        for size in (100, 200):
            f(np.ones(size)), g(np.ones(size)), h(np.ones(size), [])
        with np.errstate(all="raise"):
            f(np.ones(100))
    return p


TITLES = ["Kernels", "Calls", "Compilations", "Reads of traced values", "Calls that ran on NumPy"]


def test_summary_in_plain_text(
    example: rune_jit.Profile, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = builtins.__import__

    def without_rich(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == "rich":
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_rich)
    example.summary()
    text = capsys.readouterr().out
    assert text == str(example) + "\n"
    for title in [*TITLES, "numpy.sort (callback)", "x: float64[200] (was float64[100])"]:
        assert title in text
    table = text.partition("Kernels\n")[2].partition("\n\n")[0].splitlines()
    assert table[0].split()[:4] == ["kernel", "function", "line", "calls"]
    assert len(table) == 1 + min(20, len(example.kernels))


def test_summary_by_rich(
    example: rune_jit.Profile, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rich")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "300")
    example.summary()
    text = capsys.readouterr().out
    for title in [*TITLES, "numpy.sort (callback)", "x: float64[200] (was float64[100])"]:
        assert title in text
    assert "─" in text and "function" in text
    monkeypatch.setenv("COLUMNS", "80")
    example.summary()
    narrow = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    assert max(map(len, narrow.splitlines())) <= 80
    assert "numpy.sort (callback)" in narrow and "GB/s" in narrow


def test_chrome_trace(example: rune_jit.Profile, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    example.to_chrome_trace(path)
    trace = json.loads(path.read_text())
    events = trace["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    for e in spans:
        assert min(e["ts"], e["dur"]) >= 0
        assert e["ts"] + e["dur"] <= example.seconds * 1e6 + 1
        assert isinstance(e["pid"], int) and isinstance(e["tid"], int) and e["name"]
    categories = {e["cat"] for e in spans}
    assert categories == {"call", "program", "step", "compilation", "read", "numpy"}
    steps = [e for e in spans if e["cat"] == "step"]
    assert len(steps) == sum(kernel.calls for kernel in example.kernels)
    compiled = [e for e in spans if e["cat"] == "compilation"]
    assert len(compiled) == len(example.compilations)
    assert any(e["args"]["cause"] == "x: float64[200] (was float64[100])" for e in compiled)
    counters = [e for e in events if e["ph"] == "C"]
    assert counters and all("bytes" in e["args"] for e in counters)
    named = [e["args"]["name"] for e in events if e["ph"] == "M"]
    assert threading.current_thread().name in named
    # Spans of a thread are nested: each lies within those that are open where it begins.
    for thread in {e["tid"] for e in spans}:
        own = sorted((e for e in spans if e["tid"] == thread), key=lambda e: (e["ts"], -e["dur"]))
        ends: list[float] = []
        for e in own:
            while ends and ends[-1] <= e["ts"] + 1e-3:
                ends.pop()
            assert not ends or e["ts"] + e["dur"] <= ends[-1] + 1e-3
            ends.append(e["ts"] + e["dur"])


def test_page(example: rune_jit.Profile, tmp_path: Path) -> None:
    path = tmp_path / "profile.html"
    example.to_html(path)
    page = path.read_text(encoding="utf-8")
    text = check_page(page).text
    for kernel in example.kernels:
        assert kernel.name in text and kernel.function in text
    for expected in [*TITLES, "numpy.sort", "x: float64[200] (was float64[100])", "Memory in use"]:
        assert expected in text
    frame = example._repr_html_()
    assert frame is not None and "srcdoc=" in frame and "<script" not in frame


def test_text_of_the_user_is_escaped() -> None:
    def f(x: Any, name: str) -> Any:
        return x + 1

    f.__name__ = '<img src="http://evil">&'
    jitted = rune_jit.jit(f, device="cpu", static_argnames="name")
    with rune_jit.profile() as p:
        jitted(np.ones(3), name="</script><b onload='x'>")
        jitted(np.ones(3), name="<i>")
    page = report.page(p)
    assert "<img" not in page and "<b onload" not in page and "<i>" not in page
    assert "&lt;img src=&quot;http" in page


def test_a_profile_with_nothing_in_it() -> None:
    with rune_jit.profile() as p:
        pass
    check_page(report.page(p))
    assert "Kernels" in str(p)


def test_the_examples_of_the_documentation_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs/profiling.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    (tmp_path / "example.py").write_text("\n".join(blocks))
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path("example.py")
    profile = names["p"]
    assert profile.calls["standardize"][0] == 11 and len(profile.compilations) == 2
    cause = "x: float32[1000,300] (was float32[2000,300])"
    assert profile.compilations[1].cause == cause and cause in capsys.readouterr().out
    for page in ("profile.html", "program.html"):
        assert "standardize" in check_page((tmp_path / page).read_text(encoding="utf-8")).text
    assert json.loads((tmp_path / "profile.json").read_text())["traceEvents"]
    for attribute in re.findall(r"`p\.(\w+)`", text):
        assert hasattr(profile, attribute), attribute
    assert "return (x - x.mean(axis=0))" in (tmp_path / "program.html").read_text(encoding="utf-8")


def test_docstrings() -> None:
    assert doctest.testmod(profile_module).failed == 0
