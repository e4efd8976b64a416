"""A store on a disk that fails at its n-th write, sync or change of length loses nothing told as stored.

Also at its n-th removal or change of a name; the failed write may have been done in part.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interpreted import python
from tests.long import long, weekly

#: stands before the C library: the calls on files in one folder are counted, and the n-th fails
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static char folder[4096];
static long left, calls;
static int lasting, reason;

void arm(const char *name, long number, int stays, int error) {
    strncpy(folder, name, sizeof folder - 1);
    left = number; calls = 0; lasting = stays; reason = error;
}
long counted(void) { return calls; }

static int fails(const char *path) {
    if (!left || strncmp(path, folder, strlen(folder))) return 0;
    ++calls;
    if (calls == left || (lasting && calls > left)) { errno = reason; return 1; }
    return 0;
}
static int fails_at(int file) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    return fails(path);
}
#define NEXT(name) static __typeof__(&name) next; if (!next) next = dlsym(RTLD_NEXT, #name);
/* what fails has been written in part, as on a disk that is full or broken */
#define WRITE(name, type) ssize_t name(int f, const void *data, size_t n, type at) { \
    NEXT(name) if (fails_at(f)) { int e = errno; next(f, data, n / 2, at); errno = e; return -1; } \
    return next(f, data, n, at); }
WRITE(pwrite, off_t)
WRITE(pwrite64, off64_t)
ssize_t write(int f, const void *data, size_t n) {
    NEXT(write) if (fails_at(f)) { int e = errno; next(f, data, n / 2); errno = e; return -1; }
    return next(f, data, n);
}
int fsync(int f) { NEXT(fsync) return fails_at(f) ? -1 : next(f); }
int fdatasync(int f) { NEXT(fdatasync) return fails_at(f) ? -1 : next(f); }
int ftruncate(int f, off_t n) { NEXT(ftruncate) return fails_at(f) ? -1 : next(f, n); }
int ftruncate64(int f, off64_t n) { NEXT(ftruncate64) return fails_at(f) ? -1 : next(f, n); }
int rename(const char *from, const char *to) { NEXT(rename) return fails(to) ? -1 : next(from, to); }
int unlink(const char *path) { NEXT(unlink) return fails(path) ? -1 : next(path); }
"""

#: numbers of the call that fails -> counts of failures met, units told and calls made
SCRIPT = """
import ctypes, errno, os, sys
from pathlib import Path
import numpy as np
from schedgym.errors import InvalidStore
from schedgym.evaluation.store import ResultsStore
from tests.evaluation.test_faults import LINE, Unit

shim, COUNT = ctypes.CDLL(None), 16

def write(path, told):
    '''Add all units, again after a failure; a store that cannot go on is opened anew.'''
    failures, store = 0, None
    for seed in range(COUNT):
        for attempt in range(3):
            try:
                store = store or ResultsStore(path, "w")
                unit = Unit(LINE, seed, 0, 50)
                if seed not in store.spans(LINE):
                    store.add(unit, ["mean_delay"], np.full((50, 1), float(seed)))
                told.append(seed)
                break
            except InvalidStore as error:
                assert chr(10) not in str(error) and str(path) in str(error), error
                failures += 1
                if store is not None and attempt == 1:
                    store.close()
                    store = None
    if store is not None:
        store.close()
    return failures

def check(path, told):
    '''A new process, on a disk that is well again.'''
    with ResultsStore(path, "w") as store:  # as a sweep that goes on
        assert set(told) <= set(store.spans(LINE)), told
    if path.exists() and told:
        with ResultsStore(path) as store:
            frame = store.frame()
            found = sorted(set(frame["seed"]))
            assert set(told) <= set(found) and len(frame) == 50 * len(found), (told, found)
            assert (frame["value"] == frame["seed"]).all()
            assert store.verify() == (len(found), [])
    assert not [name for name in os.listdir(path.parent) if name != path.name], os.listdir(path.parent)

totals = [0, 0, 0]
for lasting in (0, 1):
    for reason in (errno.EIO, errno.ENOSPC):
        for number in range(int(sys.argv[2]), 201, int(sys.argv[3])):
            folder = Path(sys.argv[1]) / f"{lasting}-{reason}-{number}"
            folder.mkdir()
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                told, status = [], 1
                try:
                    shim.arm(str(folder).encode(), number, lasting, reason)
                    failures = write(folder / "r.db", told)
                    os.write(writer, repr((failures, told, shim.counted())).encode())
                    status = 0
                finally:
                    os._exit(status)
            os.close(writer)
            with os.fdopen(reader) as stream:
                heard = stream.read()
            assert os.waitpid(child, 0)[1] == 0, (lasting, reason, number)
            failures, told, calls = eval(heard)
            check(folder / "r.db", told)
            for place, more in enumerate((failures, len(told), calls >= number)):
                totals[place] += more
print(*totals)
"""


def shim(tmp_path: Path) -> Path:
    """The shim as a library, for LD_PRELOAD."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs Linux and a C compiler, cc")
    (tmp_path / "shim.c").write_text(SHIM)
    library = tmp_path / "shim.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, tmp_path / "shim.c", "-ldl"], check=True)
    return library


def play(tmp_path: Path, first: int, every: int) -> list[int]:
    arguments = (str(tmp_path), str(first), str(every))
    done = python("-c", SCRIPT, *arguments, LD_PRELOAD=str(shim(tmp_path)))
    return [int(word) for word in done.stdout.split()]


def test_a_disk_that_fails_at_some_calls(tmp_path: Path) -> None:
    failures, told, met = play(tmp_path, 7, 40)
    assert failures > 10 and told > 100 and met == 20


@long
@weekly
def test_a_disk_that_fails_at_each_of_its_calls(tmp_path: Path) -> None:
    failures, told, met = play(tmp_path, 1, 1)
    assert failures > 400 and told > 4000 and met == 800
