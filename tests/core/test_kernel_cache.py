"""Compiled code on disk is its source's, or is compiled again: failing writes, damage, unsafe folders."""

from __future__ import annotations

import hashlib
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numba.core import codegen

from schedgym.core import kernel_cache
from schedgym.core.jit import kernel
from schedgym.core.kernel_cache import MAGIC
from tests.evaluation.test_failing_disk import shim
from tests.interpreted import results_of
from tests.long import WEEKLY, long, some, weekly

ROOT = Path(__file__).resolve().parents[2]

#: prints what two kernels give for integers and floats, how often they came from disk, and the warnings
USE = """
import json, sys, warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    import cached_kernels as made
    values = [made.step(1), made.step(0.5), made.measure(1)]
hits = sum(sum(kernel.stats.cache_hits.values()) for kernel in (made.step, made.measure))
print(json.dumps([values, hits, [str(warning.message) for warning in seen]]))
"""


def write_source(folder: Path, factor: int = 1) -> None:
    code = "from schedgym.core.jit import kernel\n"
    for name, value in (("step", f"x * {factor}"), ("measure", "x + 5")):
        code += f"\n\n@kernel\ndef {name}(x):\n    return {value}\n"
    (folder / "cached_kernels.py").write_text(code, encoding="utf-8")


def variables_of(folder: Path) -> dict[str, str]:
    """Those of a process whose cache is ``folder``/cache, and which imports what is in ``folder``."""
    path = os.pathsep.join([str(folder), str(ROOT)])
    return {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def use(folder: Path, before: str = "") -> list:
    """Run ``USE`` in a new process whose cache is ``folder``/cache; ``before`` is run first."""
    return results_of(before + USE, **variables_of(folder))


def files(folder: Path, name: str = "") -> list[Path]:
    return sorted((folder / "cache").rglob(f"cached_kernels.{name}*.nbc"))


def limited(room: int) -> str:
    """Code after which no file can become larger than ``room`` bytes, as on a full disk."""
    return (
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, resource.RLIM_INFINITY))\n"
    )


@long
def test_an_edit_whose_code_cannot_be_written_is_not_forgotten(tmp_path: Path) -> None:
    """numba would name the old machine code in its new index, for ever."""
    write_source(tmp_path)
    assert use(tmp_path) == [[1, 0.5, 6], 0, []]
    before = files(tmp_path)
    assert len(before) == 3
    write_source(tmp_path, factor=2)
    # room for what names the code, but not for the code
    values, hits, (warning,) = use(tmp_path, limited(2048))
    assert values == [2, 1.0, 6] and hits == 0 and "cannot be kept (File too large)" in warning
    assert files(tmp_path) == before and not list(tmp_path.rglob("*.tmp"))
    assert use(tmp_path) == [[2, 1.0, 6], 0, []]
    assert use(tmp_path) == [[2, 1.0, 6], 3, []]
    assert len(files(tmp_path)) == 3 and not set(files(tmp_path)) & set(before), "old code is removed"


def test_an_interrupt_in_a_callback_of_llvm_is_not_lost(interruptible, monkeypatch) -> None:
    """Python drops what is raised there: the process went on, with code that was not kept."""

    def interrupt(library: object, done: bool) -> None:
        if done:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(
        codegen.CPUCodeLibrary, "_compiled", property(lambda _: False, interrupt), raising=False
    )
    with pytest.raises(KeyboardInterrupt):
        kernel(lambda x: x + 1)(1)
    monkeypatch.undo()
    assert kernel(lambda x: x + 1)(1) == 2


@long
def test_two_processes_that_write_at_once_keep_their_own_code(tmp_path: Path) -> None:
    """Each finds an empty cache and compiles for another type; in every order of their two writes."""
    code = """
import os, sys
from schedgym.core import kernel_cache
replace = os.replace
def wait(source, target):
    print("ready", flush=True)
    sys.stdin.readline()
    replace(source, target)
    print("done", flush=True)
kernel_cache.os.replace = wait
import cached_kernels
cached_kernels.step({})
"""
    write_source(tmp_path)
    for order in ((0, 1), (1, 0)):
        for path in files(tmp_path):
            path.unlink()
        both = [
            subprocess.Popen(
                [sys.executable, "-c", code.format(argument)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | variables_of(tmp_path),
            )
            for argument in ("1", "0.5")
        ]
        for process in both:
            assert process.stdout.readline() == "ready\n"
        for number in order:
            both[number].stdin.write("\n")
            both[number].stdin.flush()
            assert both[number].stdout.readline() == "done\n"
        for process in both:
            process.communicate()
            assert process.returncode == 0
        assert use(tmp_path)[:2] == [[1, 0.5, 6], 2]


def flip(content: bytes, place: int) -> bytes:
    """The content with one bit changed."""
    changed = bytearray(content)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


#: content of a file, content of another kernel's -> damaged content
DAMAGES: dict[str, Callable[[bytes, bytes], bytes]] = {
    "empty": lambda own, other: b"",
    "truncated": lambda own, other: own[: len(own) // 2],
    "garbage": lambda own, other: np.random.default_rng(0).bytes(len(own)),
    "of another kernel": lambda own, other: other,
    "a bit flipped": lambda own, other: flip(own, 4 * len(own)),
}


@pytest.mark.parametrize("damage", some([*DAMAGES, "a pipe", "a folder"], keep=0, late=3))
def test_a_damaged_file_is_compiled_again(tmp_path: Path, damage: str) -> None:
    write_source(tmp_path)
    use(tmp_path)
    (measure,) = files(tmp_path, "measure")
    step = files(tmp_path, "step")[0]
    before = {path: path.read_bytes() for path in (measure, step)}
    for path, other in ((measure, step), (step, measure)):
        path.unlink()
        if damage == "a pipe":
            os.mkfifo(path)
        elif damage == "a folder":
            path.mkdir()
        else:
            path.write_bytes(DAMAGES[damage](before[path], before[other]))
    values, hits, (warning,) = use(tmp_path)
    assert values == [1, 0.5, 6] and hits == 1, "two of three are compiled"
    assert ".nbc: damaged: the kernel is compiled again" in warning
    if damage == "a folder":  # nothing is removed that is no file
        assert use(tmp_path)[:2] == [[1, 0.5, 6], 1]
    else:
        assert use(tmp_path) == [[1, 0.5, 6], 3, []]


@long
def test_no_bit_of_a_file_may_change(tmp_path: Path) -> None:
    write_source(tmp_path)
    use(tmp_path)
    (path,) = files(tmp_path, "measure")
    before = """
import json, numba, cached_kernels, warnings
from pathlib import Path
from numba import types
from tests.core.test_kernel_cache import flip
warnings.simplefilter("ignore")
kernel, path = cached_kernels.measure, Path({!r})
content, found = path.read_bytes(), 0
for place in range(0, 8 * len(content), {}):
    path.write_bytes(flip(content, place))
    found += kernel._cache.load_overload((types.int64,), kernel.targetctx) is None
path.write_bytes(content)
assert kernel._cache.load_overload((types.int64,), kernel.targetctx) is not None
print(found, flush=True)
raise SystemExit
"""
    every = 8 * 37 + 1 if WEEKLY else 8 * 401 + 1
    found = results_of(before.format(str(path), every), **variables_of(tmp_path))
    assert found == -(-8 * path.stat().st_size // every) > 5


class Canary:
    """When it is unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@long
@pytest.mark.parametrize("case", ["a group may write", "others may write", "another user's"])
def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path, case: str) -> None:
    """Pickles run code: files are not opened, and the kernel is compiled in memory, with one warning."""
    write_source(tmp_path)
    use(tmp_path)
    (folder,) = {path.parent for path in files(tmp_path)}
    assert folder.stat().st_mode & 0o777 == 0o700
    evil = pickle.dumps(Canary(tmp_path / "opened"))
    for path in files(tmp_path):
        path.write_bytes(MAGIC + hashlib.sha256(evil).digest() + evil)
    if case == "another user's":
        if os.geteuid() != 0:
            pytest.skip("only root can give a folder away")
        os.chown(folder, 65534, 65534)
    else:
        folder.chmod(0o707 if case == "others may write" else 0o770)
    before = {path: path.read_bytes() for path in files(tmp_path)}
    values, hits, (warning,) = use(tmp_path)
    assert values == [1, 0.5, 6] and hits == 0
    assert warning.startswith(str(folder)) and "others may write to it" in warning
    assert not (tmp_path / "opened").exists(), "a pickle of the folder was opened"
    assert before == {path: path.read_bytes() for path in folder.iterdir()}


def test_the_kernels_of_a_wheel_are_as_safe_as_its_sources(tmp_path: Path) -> None:
    package, folder = tmp_path / "package", tmp_path / "package/kernels"
    folder.mkdir(parents=True)
    made = kernel_cache._CodeFiles(folder, use, "stamp", package)
    for mode, inside, safe in ((0o755, 0o755, True), (0o775, 0o775, True), (0o755, 0o775, False)):
        package.chmod(mode)
        folder.chmod(inside)
        assert made.is_safe() is safe
    if os.geteuid() == 0:
        package.chmod(0o775)
        os.chown(folder, 65534, 65534)
        assert not made.is_safe()


#: compiles and uses kernels while the n-th call on files of the cache fails; then another edit may have come
FAILING = """
import ctypes, errno, json, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.core.test_kernel_cache import use, write_source
import schedgym.core.jit, warnings
warnings.simplefilter("ignore")
import numba

shim, source = ctypes.CDLL(None), Path(sys.argv[1])
met = found = 0
for lasting in (0, 1):
    for reason in (errno.EIO, errno.ENOSPC):
        for number in range(int(sys.argv[2]), int(sys.argv[3])):
            write_source(source, factor=number + 100 * lasting + 1000 * reason)
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    import cached_kernels as made
                    shim.arm(str(source / "cache").encode(), number, lasting, reason)
                    assert made.step(1) == number + 100 * lasting + 1000 * reason and made.measure(1) == 6
                    status = 100 + (shim.counted() >= number)
                finally:
                    os._exit(status)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert status >= 100, status
            met += status - 100
            # a new process, on a disk that is well again
            child = os.fork()
            if child == 0:
                import cached_kernels as made
                right = made.step(1) == number + 100 * lasting + 1000 * reason and made.measure(1) == 6
                os._exit(100 if right else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 100
            found += 1
print([met, found])
"""


@long
@weekly
def test_a_disk_that_fails_at_each_write_of_the_cache(tmp_path: Path) -> None:
    """After an edit: whatever part of the new code is written, this process and the next use the new code."""
    write_source(tmp_path)
    last = 12 if WEEKLY else 4
    variables = {**variables_of(tmp_path), "LD_PRELOAD": str(shim(tmp_path))}
    met, tried = results_of(FAILING, str(tmp_path), "1", str(last), **variables)
    assert tried == 4 * (last - 1) and met >= tried // 2
