"""Rendered kernels as machine code: the cache of objects, threads, forks, errors."""

import os
import threading
import warnings

import numpy as np
import pytest
from kernel_text import KERNEL, Text, call, elementwise
from llvmlite import binding
from processes import output_of, run_program
from threads import in_threads

import rune_jit
from rune_jit import _core
from rune_jit.backends import llvm, object_cache


def add_constant(value, name="k"):
    k = Text(1)
    memory = k.memory("f32", 0, 16, True)
    x = k(f"load {memory} {k.const(0)} : f32x16")
    k.store(memory, k.const(0), k(f"alu add {x} {k.const(float(value), 'f32', 16)} : f32x16"))
    return _core.render_llvm(str(k)).replace("@k(", f"@{name}(")


def result_of(address):
    x = np.zeros(16, np.float32)
    call(KERNEL(address), [x])
    return x[15]


def entries(folder):
    return sorted((folder / "objects").glob("*.o"))


@pytest.fixture
def compilations(monkeypatch):
    """The IR of the modules that are compiled during the test."""
    compiled = []
    original = llvm._Compiler.object_code

    def counted(self, ir):
        compiled.append(ir)
        return original(self, ir)

    monkeypatch.setattr(llvm._Compiler, "object_code", counted)
    return compiled


def compile_one(value, folder):
    (address,), _keep = llvm.compile_module(add_constant(value), ["k"], cache_dir=str(folder))
    assert result_of(address) == value


def test_cache_is_used_and_survives_damage(tmp_path, compilations):
    compile_one(1, tmp_path)
    compile_one(2, tmp_path)
    assert len(entries(tmp_path)) == len(compilations) == 2
    compile_one(1, tmp_path)
    assert len(compilations) == 2
    for path in entries(tmp_path):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0xFF
        path.write_bytes(data)
    compile_one(1, tmp_path)
    assert len(compilations) == 3
    entries(tmp_path)[0].write_bytes(b"")
    entries(tmp_path)[1].write_bytes(b"")
    compile_one(1, tmp_path)
    compile_one(1, tmp_path)
    assert len(compilations) == 4
    object_cache.clear(str(tmp_path))
    assert not entries(tmp_path)


def test_an_entry_under_the_name_of_another_is_damaged(tmp_path, compilations):
    compile_one(1, tmp_path)
    (one,) = entries(tmp_path)
    compile_one(2, tmp_path)
    (two,) = set(entries(tmp_path)) - {one}
    two.write_bytes(one.read_bytes())
    compile_one(2, tmp_path)
    assert len(compilations) == 3


def no_features():
    return binding.targets.FeatureMap()


CHANGES = {
    "the IR": lambda patch: None,  # B is of other IR
    "the version of LLVM": lambda patch: patch.setattr(binding, "llvm_version_info", (99, 0, 0)),
    "the processor's name": lambda patch: patch.setattr(binding, "get_host_cpu_name", lambda: "B"),
    "its features": lambda patch: patch.setattr(binding, "get_host_cpu_features", no_features),
    "the options": lambda patch: patch.setitem(llvm._OPTIONS, "opt", 1),
    "the layout of files": lambda patch: patch.setattr(object_cache, "_FORMAT", "B"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_the_key_of_the_cache_has(what, tmp_path, monkeypatch, compilations):
    """A module is compiled as A, A, B, A, where B differs in one thing: each is compiled once."""
    for name in "AABA":
        with monkeypatch.context() as patch:
            patch.setattr(llvm, "_state", None)  # as in a process of its own
            if name == "B":
                CHANGES[what](patch)
            compile_one(2 if (name, what) == ("B", "the IR") else 1, tmp_path)
    assert len(compilations) == len(entries(tmp_path)) == 2


def test_cache_is_bounded(tmp_path, monkeypatch):
    for i in range(10):
        path = tmp_path / f"{i}.o"
        path.write_bytes(b"x" * 100)
        os.utime(path, (i, i))
    object_cache._trim(tmp_path, 1000)
    assert len(list(tmp_path.iterdir())) == 10
    object_cache._trim(tmp_path, 500)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["6.o", "7.o", "8.o", "9.o"]
    monkeypatch.setattr(object_cache, "_WRITES_PER_TRIM", 1)
    monkeypatch.setattr(object_cache, "_MAX_BYTES", 1)
    compile_one(1, tmp_path)
    assert not entries(tmp_path)


@pytest.mark.parametrize("at", ["objects", "entry"])
def test_what_others_may_write_is_refused(at, tmp_path, monkeypatch, compilations):
    compile_one(1, tmp_path)
    (entry,) = entries(tmp_path)
    path = entry if at == "entry" else entry.parent
    mode = path.stat().st_mode
    assert mode & 0o077 == 0
    for bit in (0o020, 0o002):
        path.chmod(mode | bit)
        monkeypatch.setattr(object_cache, "_refused", set())
        with pytest.warns(RuntimeWarning, match="others may write to it") as caught:
            compile_one(1, tmp_path)
        assert len(caught) == 1 and str(path) in str(caught[0].message)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            path.chmod(mode | bit)
            compile_one(1, tmp_path)  # it has been said
        path.chmod(mode)
    assert len(compilations) == 5
    compile_one(1, tmp_path)
    assert len(compilations) == 5


@pytest.mark.parametrize("at", ["objects", "entry"])
def test_what_belongs_to_another_user_is_refused(at, tmp_path, monkeypatch, compilations):
    compile_one(1, tmp_path)
    (entry,) = entries(tmp_path)
    path = entry if at == "entry" else entry.parent
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.warns(RuntimeWarning, match="it belongs to user"):
        compile_one(1, tmp_path)
    assert len(compilations) == 2


def test_second_process_compiles_nothing(tmp_path):
    program = """
        import numpy as np
        import rune_jit
        from rune_jit.backends import llvm
        compiled = []
        original = llvm._Compiler.object_code
        llvm._Compiler.object_code = lambda *args: compiled.append(1) or original(*args)
        x = np.linspace(-2, 2, 1000, dtype=np.float32)
        f = rune_jit.jit(lambda x: (np.exp(x) * x + np.float32(0.3)).sum(), fallback="error")
        print(f(x).tobytes().hex(), len(compiled))
    """
    outputs = []
    for cache in "110":
        environment = {"RUNE_JIT_CACHE": cache, "RUNE_JIT_CACHE_DIR": str(tmp_path)}
        outputs.append(output_of(program, **environment).split())
    assert len({result for result, _ in outputs}) == 1
    assert [compiled for _, compiled in outputs] == ["1", "0", "1"]
    assert len(entries(tmp_path)) == 1


def test_modules_hold_constants_and_globals_and_call_the_c_library(tmp_path):
    names = ["c", "a", "b"]
    parts = [add_constant(i + 1, name).split("attributes")[0] for i, name in enumerate(names)]
    table = "@t = private constant [4 x float] [float 4.0, float 5.0, float 6.0, float 7.0]\n"
    # The address depends on the data, so that the table is in memory.
    reads = """define void @d(ptr %b, ptr %v, i64 %i, i64 %n) #0 {
      %p = load ptr, ptr %b
      %x = load float, ptr %p
      %j = fptosi float %x to i64
      %q = getelementptr float, ptr @t, i64 %j
      %y = load float, ptr %q
      %z = getelementptr float, ptr %p, i64 15
      store float %y, ptr %z
      ret void
    }
    """
    ir = table + "".join(parts) + reads + "attributes" + add_constant(0).split("attributes")[1]
    for _ in range(2):
        addresses, _keep = llvm.compile_module(ir, ["b", "d", "a"], cache_dir=str(tmp_path))
        assert [result_of(a) for a in addresses] == [3, 4, 2]
    written = """@g = internal global i32 7
    define void @k(ptr %b, ptr %v, i64 %i, i64 %n) nounwind {
      %p = load ptr, ptr %b
      %x = load i32, ptr @g
      %y = add i32 %x, 1
      store i32 %y, ptr @g
      %f = sitofp i32 %y to float
      %z = getelementptr float, ptr %p, i64 15
      store float %f, ptr %z
      ret void
    }
    """
    (address,), _keep = llvm.compile_module(written, ["k"], cache_dir=str(tmp_path))
    assert [result_of(address) for _ in range(2)] == [8, 9]
    k = elementwise(["f64"], "f64", "alu erf", 8, 8)
    for _ in range(2):
        (address,), _keep = llvm.compile_module(
            _core.render_llvm(str(k)), ["k"], cache_dir=str(tmp_path)
        )
        x, y = np.full(8, 0.5), np.zeros(8)
        call(KERNEL(address), [y, x])
        np.testing.assert_allclose(y, 0.5204998778130465, rtol=1e-15)


def test_unwritable_cache_is_no_error(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    (address,), _keep = llvm.compile_module(add_constant(3), ["k"], cache_dir=str(blocked))
    assert result_of(address) == 3


def test_addresses_are_in_the_order_of_names():
    names = ["c", "a", "b"]
    parts = [add_constant(i + 1, name).split("attributes")[0] for i, name in enumerate(names)]
    ir = "".join(parts) + "attributes" + add_constant(0).split("attributes")[1]
    addresses, _keep = llvm.compile_module(ir, ["b", "c", "a"], cache=False)
    assert [result_of(a) for a in addresses] == [3, 1, 2]


def test_errors_show_the_line(tmp_path):
    ir = "define void @k() {\n  %a = fadd float 1.0, %nonesuch\n  ret void\n}\n"
    with pytest.raises(RuntimeError, match=r"nonesuch(.|\n)*line 2: %a = fadd float 1.0, %none"):
        llvm.compile_module(ir, ["k"], cache=False)
    with pytest.raises(RuntimeError, match="rune_jit; please report"):
        llvm.compile_module(add_constant(1), ["other"], cache=False)
    with pytest.raises(RuntimeError, match="other"):
        llvm.compile_module(add_constant(1), ["other"], cache_dir=str(tmp_path))


def test_ctrl_c_while_llvm_compiles(monkeypatch):
    def interrupt(self, ir):
        raise KeyboardInterrupt

    f = rune_jit.jit(lambda x: x * 2 + 17, fallback="error", device="cpu")
    with monkeypatch.context() as patch:
        patch.setattr(llvm._Compiler, "object_code", interrupt)
        patch.setattr(object_cache.Entry, "read", lambda self: None)
        with pytest.raises(KeyboardInterrupt):
            f(np.arange(3.0))
    np.testing.assert_array_equal(f(np.arange(3.0)), [17, 19, 21])


def test_code_that_dies_while_another_thread_compiles(monkeypatch):
    """The garbage collector runs in any thread, also in one that the lock's owner waits for."""
    dying = [llvm.compile_module(add_constant(1), ["k"], cache=False)]
    original = llvm._Compiler.object_code

    def drop(self, ir):
        thread = threading.Thread(target=dying.clear)
        thread.start()
        thread.join(60)
        assert not dying and llvm._unused
        return original(self, ir)

    monkeypatch.setattr(llvm._Compiler, "object_code", drop)
    (address,), _keep = llvm.compile_module(add_constant(2), ["k"], cache=False)
    assert result_of(address) == 2 and not dying and not llvm._unused


def test_many_kernels_live_and_die(tmp_path):
    ir = add_constant(5)
    loaded = [llvm.compile_module(ir, ["k"], cache_dir=str(tmp_path)) for _ in range(1500)]
    assert len({address for (address,), _ in loaded}) == len(loaded)
    assert all(result_of(address) == 5 for (address,), _ in loaded)
    del loaded[::2]
    assert all(result_of(address) == 5 for (address,), _ in loaded)


def test_threads_compile_at_once():
    def work(n):
        for i in range(5):
            (address,), keep = llvm.compile_module(add_constant(10 * n + i), ["k"], cache=False)
            assert result_of(address) == 10 * n + i
            del keep

    in_threads(work, range(4))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_fork_while_another_thread_compiles():
    stop = threading.Event()

    def work():
        while not stop.is_set():
            llvm.compile_module(add_constant(3), ["k"], cache=False)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for i in range(5):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    (address,), _keep = llvm.compile_module(add_constant(i), ["k"], cache=False)
                    code = int(result_of(address) != i)
                finally:
                    os._exit(code)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()


def test_shutdown_with_live_code():
    program = """
        from rune_jit.backends import llvm
        ir = "define void @k(ptr %b, ptr %v, i64 %i, i64 %n) nounwind {\\n ret void\\n}\\n"
        kept = [llvm.compile_module(ir, ["k"], cache=False) for _ in range(3)]
        class Cycle: pass
        cycle = Cycle(); cycle.self = cycle; cycle.code = kept[1]
        print("done")
    """
    run = run_program(program)
    assert (run.returncode, run.stdout, run.stderr) == (0, "done\n", "")


@pytest.mark.parametrize(
    ("platform_name", "machine", "expected"),
    [("darwin", "arm64", "apple-m1"), ("darwin", "x86_64", ""), ("linux", "aarch64", "")],
)
def test_apple_cpus_are_named(platform_name, machine, expected, monkeypatch):
    """LLVM knows the features of Apple's CPUs by their names only."""

    class Features(dict):
        def flatten(self):
            return ""

    class Host:
        get_host_cpu_features = staticmethod(Features)
        get_host_cpu_name = staticmethod(lambda: "apple-m1")

    monkeypatch.setattr(llvm.sys, "platform", platform_name)
    monkeypatch.setattr(llvm.platform, "machine", lambda: machine)
    assert llvm._host_cpu(Host) == (expected, "")
