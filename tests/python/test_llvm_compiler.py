"""Rendered kernels as machine code: the cache of objects, images, threads, forks, errors."""

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from kernel_text import KERNEL, Text, call, elementwise

from rune_jit import _core
from rune_jit.backends import image as _image
from rune_jit.backends import llvm as _llvm


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


def test_cache_is_used_and_survives_damage(tmp_path, monkeypatch):
    def compile_one(value):
        (address,), keep = _llvm.compile_module(add_constant(value), ["k"], cache_dir=str(tmp_path))
        assert result_of(address) == value
        del keep

    compile_one(1)
    compile_one(2)
    assert len(entries(tmp_path)) == 2
    compiled_modules = []
    original = _llvm._Generator.image

    def counted(self, module):
        compiled_modules.append(module)
        return original(self, module)

    monkeypatch.setattr(_llvm._Generator, "image", counted)
    compile_one(1)
    assert not compiled_modules
    for path in entries(tmp_path):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0xFF
        path.write_bytes(data)
    compile_one(1)
    assert len(compiled_modules) == 1
    entries(tmp_path)[0].write_bytes(b"")
    entries(tmp_path)[1].write_bytes(b"")
    compile_one(1)
    compile_one(1)
    assert len(compiled_modules) == 2
    _llvm.clear_cache(str(tmp_path))
    assert not entries(tmp_path)


def test_cache_is_bounded(tmp_path):
    for i in range(10):
        path = tmp_path / f"{i}.o"
        path.write_bytes(b"x" * 100)
        os.utime(path, (i, i))
    _llvm._trim(tmp_path, 1000)
    assert len(list(tmp_path.iterdir())) == 10
    _llvm._trim(tmp_path, 500)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["6.o", "7.o", "8.o", "9.o"]


@pytest.mark.skipif(not _image.SUPPORTED, reason="objects are linked by LLVM here")
def test_second_process_runs_images_without_llvm(tmp_path):
    program = """
        import sys
        import numpy as np
        import rune_jit
        x = np.linspace(-2, 2, 1000, dtype=np.float32)
        f = rune_jit.jit(lambda x: (np.exp(x) * x + np.float32(0.3)).sum(), fallback="error")
        print(f(x).tobytes().hex(), "rune_jit.backends.llvm_library" in sys.modules)
    """
    outputs = []
    for cache in "110":
        run = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),
                "RUNE_JIT_CACHE": cache,
                "RUNE_JIT_CACHE_DIR": str(tmp_path),
            },
            check=True,
        )
        outputs.append(run.stdout.split())
    assert len({result for result, _ in outputs}) == 1
    assert [loaded for _, loaded in outputs] == ["True", "False", "True"]
    assert len(entries(tmp_path)) == 1


def test_images_hold_their_constants_and_functions(tmp_path):
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
        addresses, keep = _llvm.compile_module(ir, ["b", "d", "a"], cache_dir=str(tmp_path))
        assert isinstance(keep, _image.Image) == _image.SUPPORTED
        assert [result_of(a) for a in addresses] == [3, 4, 2]


def test_modules_that_call_others_or_write_globals_are_no_images(tmp_path, monkeypatch):
    k = elementwise(["f64"], "f64", "alu erf", 8, 8)
    (_,), keep = _llvm.compile_module(_core.render_llvm(str(k)), ["k"], cache_dir=str(tmp_path))
    assert isinstance(keep, _llvm.CompiledCode)
    written = """@g = internal global i32 7
    define void @k(ptr %b) nounwind {
      %x = load i32, ptr @g
      %y = add i32 %x, 1
      store i32 %y, ptr @g
      ret void
    }
    """
    (_,), keep = _llvm.compile_module(written, ["k"], cache_dir=str(tmp_path))
    assert isinstance(keep, _llvm.CompiledCode)

    def refuse(code, functions):
        raise PermissionError("no executable memory")

    monkeypatch.setattr(_image, "Image", refuse)
    (address,), keep = _llvm.compile_module(add_constant(4), ["k"], cache_dir=str(tmp_path))
    assert result_of(address) == 4 and isinstance(keep, _llvm.CompiledCode)


def test_unwritable_cache_is_no_error(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    (address,), _keep = _llvm.compile_module(add_constant(3), ["k"], cache_dir=str(blocked))
    assert result_of(address) == 3


def test_addresses_are_in_the_order_of_names():
    names = ["c", "a", "b"]
    parts = [add_constant(i + 1, name).split("attributes")[0] for i, name in enumerate(names)]
    ir = "".join(parts) + "attributes" + add_constant(0).split("attributes")[1]
    addresses, _keep = _llvm.compile_module(ir, ["b", "c", "a"], cache=False)
    assert [result_of(a) for a in addresses] == [3, 1, 2]


def test_errors_show_the_line(tmp_path):
    ir = "define void @k() {\n  %a = fadd float 1.0, %nonesuch\n  ret void\n}\n"
    with pytest.raises(RuntimeError, match=r"nonesuch(.|\n)*line 2: %a = fadd float 1.0, %none"):
        _llvm.compile_module(ir, ["k"], cache=False)
    with pytest.raises(RuntimeError, match="rune_jit; please report"):
        _llvm.compile_module(add_constant(1), ["other"], cache=False)
    with pytest.raises(RuntimeError, match="other"):
        _llvm.compile_module(add_constant(1), ["other"], cache_dir=str(tmp_path))


def test_modules_are_compiled_at_once(tmp_path, monkeypatch):
    modules = [(add_constant(i, f"k{i}"), [f"k{i}"]) for i in range(1, 5)]
    # Each waits for the others to have begun.
    barrier = threading.Barrier(4)
    original = _llvm._Generator.image

    def meet(self, module):
        barrier.wait(timeout=60)
        return original(self, module)

    monkeypatch.setattr(_llvm._Generator, "image", meet)
    for options in ({"cache": False}, {"cache_dir": str(tmp_path)}, {"cache_dir": str(tmp_path)}):
        compiled = _llvm.compile_modules(modules, **options)
        assert [result_of(address) for (address,), _ in compiled] == [1, 2, 3, 4]
    assert len(entries(tmp_path)) == 4
    # What is in the cache is not compiled again.
    monkeypatch.setattr(_llvm._Generator, "image", original)
    os.unlink(entries(tmp_path)[2])
    codes = {path: path.read_bytes() for path in entries(tmp_path)}
    compiled = _llvm.compile_modules(modules, cache_dir=str(tmp_path))
    assert [result_of(address) for (address,), _ in compiled] == [1, 2, 3, 4]
    assert len(entries(tmp_path)) == 4
    assert all(path.read_bytes() == code for path, code in codes.items())


def test_errors_of_modules_compiled_at_once(tmp_path):
    bad = "define void @k() {\n  %a = fadd float 1.0, %nonesuch\n  ret void\n}\n"
    modules = [(add_constant(i), ["k"]) for i in range(3)]
    for at in range(3):
        broken = [*modules[:at], (bad, ["k"]), *modules[at + 1 :]]
        for options in ({"cache": False}, {"cache_dir": str(tmp_path)}):
            with pytest.raises(RuntimeError, match=r"line 2: %a = fadd float 1.0, %nonesuch"):
                _llvm.compile_modules(broken, **options)
    # What has been compiled beside them is in the cache.
    assert len(entries(tmp_path)) == 3
    compiled = _llvm.compile_modules(modules, cache_dir=str(tmp_path))
    assert [result_of(address) for (address,), _ in compiled] == [0, 1, 2]


def test_code_that_dies_in_a_thread_that_compiles(monkeypatch):
    """The garbage collector may run there, while the thread that waits for it has the lock."""
    dying = [_llvm.compile_module(add_constant(1), ["k"], cache=False)]
    original, compiled = _llvm._Generator.object_code, []

    def drop(self, module):
        if module is modules[1]:
            dying.clear()
            assert len(_llvm._unused) == 1
        return original(self, module)

    monkeypatch.setattr(_llvm._Generator, "object_code", drop)
    modules = [(add_constant(i), ["k"]) for i in range(2)]
    thread = threading.Thread(
        target=lambda: compiled.extend(_llvm.compile_modules(modules, cache=False)), daemon=True
    )
    thread.start()
    thread.join(60)
    assert [result_of(address) for (address,), _ in compiled] == [0, 1]
    assert not dying and not _llvm._unused


def test_modules_are_compiled_where_no_thread_can_start(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    modules = [(add_constant(i), ["k"]) for i in range(3)]
    compiled = _llvm.compile_modules(modules, cache=False)
    assert [result_of(address) for (address,), _ in compiled] == [0, 1, 2]


def test_many_kernels_live_and_die(tmp_path):
    ir = add_constant(5)
    loaded = [_llvm.compile_module(ir, ["k"], cache_dir=str(tmp_path)) for _ in range(1500)]
    assert len({address for (address,), _ in loaded}) == len(loaded)
    assert all(result_of(address) == 5 for (address,), _ in loaded)
    del loaded[::2]
    assert all(result_of(address) == 5 for (address,), _ in loaded)


def test_threads_compile_at_once():
    results = {}

    def work(n):
        for i in range(5):
            (address,), keep = _llvm.compile_module(add_constant(10 * n + i), ["k"], cache=False)
            results[n, i] = result_of(address) == 10 * n + i
            del keep

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 20 and all(results.values())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_fork_while_another_thread_compiles():
    stop = threading.Event()

    def work():
        while not stop.is_set():
            _llvm.compile_modules([(add_constant(i), ["k"]) for i in range(3)], cache=False)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for i in range(5):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    modules = [(add_constant(i + n), ["k"]) for n in range(2)]
                    loaded = _llvm.compile_modules(modules, cache=False)
                    code = int([result_of(a) for (a,), _ in loaded] != [i, i + 1])
                finally:
                    os._exit(code)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()


def test_shutdown_with_live_code():
    program = """
        from rune_jit.backends import llvm as _llvm
        ir = "define void @k(ptr %b, ptr %v, i64 %i, i64 %n) nounwind {\\n ret void\\n}\\n"
        kept = [_llvm.compile_module(ir, ["k"], cache=False) for _ in range(3)]
        class Cycle: pass
        cycle = Cycle(); cycle.self = cycle; cycle.code = kept[1]
        print("done")
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "done\n", "")
