"""The restrictions of a candidate's process, which it takes on before it loads a stranger's code.

They are Linux's: resource limits, Landlock (which files can be read; no signals to others, no network) and a
filter of system calls (no files written, no processes or threads, no network). Other systems have only the
resource limits.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from schedgym.documents import read_yaml

CALLS = Path(__file__).with_name("system_calls.yaml")
#: machine -> column of CALLS, number of the architecture in a filter
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
FIRST, SECOND, THIRD, UPPER_HALF = 16, 24, 32, 4  # where the arguments of a call stand [bytes]
WHOLE, DUPLICATE = 0xFFFFFFFF, 1030  # a mask; of linux/fcntl.h
#: system call -> where a half of an argument stands, a mask, and the value that the masked half must have:
#: no file is opened for writing, no limit is set, only the process itself gets signals, and fcntl does what
#: a memory map needs
CHECKED = {
    "openat": ((THIRD, os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0),),
    "prlimit64": ((THIRD, WHOLE, 0), (THIRD + UPPER_HALF, WHOLE, 0)),
    "fcntl": ((SECOND, WHOLE, DUPLICATE),),
    "tgkill": ((FIRST, WHOLE, os.getpid()),),
}

# of linux/prctl.h, linux/seccomp.h, linux/bpf_common.h and linux/landlock.h
NO_NEW_PRIVILEGES, SET_FILTER, FILTER = 38, 22, 2
LOAD, AND, IF_EQUAL, RETURN = 0x20, 0x54, 0x15, 0x06
ALLOWED, REFUSED, KILLED = 0x7FFF0000, 0x00050001, 0x80000000  # refused: the error EPERM
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
READ_FILE, READ_FOLDER = 1 << 2, 1 << 3
#: version of Landlock -> all rights to files that it knows
FILE_RIGHTS = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 5: 0xFFFF}
#: what a library may read beside Python's own folders
SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/dev/null", "/dev/urandom")


def limit(memory: int, files: int, seconds: int) -> list[str]:
    """Set the resource limits of this process; return what could not be limited.

    Args:
        memory: address space [bytes].
        files: number of open files. No file can be written, and no process started.
        seconds: CPU time of the whole process [s].
    """
    import resource  # which Windows does not have: there no candidate is played

    wanted = {"AS": memory, "NOFILE": files, "CPU": seconds, "FSIZE": 0, "NPROC": 0, "CORE": 0}
    missing = []
    for name, value in wanted.items():
        try:
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
        except (ValueError, OSError):
            missing.append(f"no limit RLIMIT_{name}")
    return missing


def confine(readable: Iterable[Path], hidden: Path) -> list[str]:
    """Restrict this process for good; return what the system could not restrict.

    Args:
        readable: files and folders that it may read, beside Python and the libraries.
        hidden: a folder that it may not read, wherever that is.
    """
    if sys.platform != "linux":
        return ["it has the network, and can read your files"]
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    library.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    roots = {Path(path) for path in (sys.prefix, sys.base_prefix, *SYSTEM)}
    roots |= {Path(path) for path in sys.path if Path(path).name in ("site-packages", "dist-packages")}
    missing, program = [], _filter()
    if not _restrict_files(library, roots | set(readable), hidden.resolve()):
        missing.append("Landlock is not available: it can read your files")
    if program is None or not _install(library, program):
        missing.append("system calls cannot be filtered: it has the network and can start processes")
    return missing


def _restrict_files(library: Any, roots: Iterable[Path], hidden: Path) -> bool:
    """Let this process read the files below ``roots`` but for those below ``hidden``, and no others."""
    version = library.syscall(CREATE_RULESET, None, 0, 1)
    if version < 1:
        return False
    rights = next(rights for first, rights in sorted(FILE_RIGHTS.items(), reverse=True) if first <= version)
    network, scopes = 3 if version >= 4 else 0, 3 if version >= 6 else 0  # all that there are
    attributes = struct.pack("QQQ", rights, network, scopes)
    rules = library.syscall(CREATE_RULESET, attributes, 24 if version >= 6 else 16 if version >= 4 else 8, 0)
    for path, allowed in _rules(roots, hidden):
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        library.syscall(ADD_RULE, rules, 1, struct.pack("=Qi", allowed, place), 0)
        os.close(place)
    done: bool = library.syscall(RESTRICT_SELF, rules, 0) == 0
    os.close(rules)
    return done


def _rules(roots: Iterable[Path], hidden: Path) -> Iterator[tuple[Path, int]]:
    """Paths with the rights below each: around what is hidden, folders can be listed, and no more."""
    for root in {root.resolve() for root in roots if root.exists()}:
        if root == hidden or hidden in root.parents:
            continue
        if root in hidden.parents:
            yield root, READ_FOLDER
            yield from _rules(root.iterdir(), hidden)
        else:
            yield root, READ_FILE | READ_FOLDER if root.is_dir() else READ_FILE


def _filter() -> list[tuple[int, int, int, int]] | None:
    """The program that lets the system calls of CALLS pass, with the arguments of CHECKED, and no others.

    None for a machine of another kind.
    """
    if platform.machine() not in MACHINES or sys.byteorder != "little":
        return None
    column, architecture = MACHINES[platform.machine()]
    steps = [(LOAD, 0, 0, 4), (IF_EQUAL, 1, 0, architecture), (RETURN, 0, 0, KILLED), (LOAD, 0, 0, 0)]
    for name, numbers in read_yaml(CALLS).items():
        checks = CHECKED.get(name, ())
        last = 3 * len(checks) + 1
        steps.append((IF_EQUAL, 0, last + 1 if checks else 1, numbers[column]))
        for k, (place, mask, value) in enumerate(checks):
            steps.append((LOAD, 0, 0, place))
            steps.append((AND, 0, 0, mask))
            steps.append((IF_EQUAL, 0, last - 3 * (k + 1), value))
        steps.append((RETURN, 0, 0, ALLOWED))
        if checks:
            steps.append((RETURN, 0, 0, REFUSED))
    steps.append((RETURN, 0, 0, REFUSED))
    return steps


def _install(library: Any, steps: list[tuple[int, int, int, int]]) -> bool:
    """Let the kernel run a program at each system call of this process."""
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    whole = struct.pack("HP", len(steps), ctypes.addressof(program))
    return bool(library.prctl(SET_FILTER, FILTER, whole, 0, 0) == 0)
