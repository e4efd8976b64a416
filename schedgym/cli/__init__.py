"""The command line: ``schedgym``, one file a command or family of commands.

typer, rich and the rest of the package are imported when a command needs them. An error of the user prints
one line on stderr and exits with code 2, and no file is written; any other exception keeps its traceback.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from gymnasium.error import Error as GymnasiumError

from schedgym.core.problem import list_problems
from schedgym.errors import RunAborted, SchedgymError, UnknownName, printable, shorten, suggest

__all__ = ["main"]

ABORTED = 1
USAGE = 2
INTERRUPTED = 130
TERMINATED = 143
#: modules of this package, in the order in which the help lists their commands
COMMANDS = (
    *("catalogue", "compare", "advise", "tune", "run", "trace", "agents", "dataset", "stores", "papers"),
    *("bench", "board", "new"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: the arguments; None takes those of the process.

    Returns:
        the exit code: 0, 1 when work was aborted, 2 for an error of the user, 130 when interrupted.

    Raises:
        SystemExit: with code 143, when terminated.
    """
    with _terminable():
        return _run(list(sys.argv[1:] if argv is None else argv))


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM raise SystemExit, so that a sweep ends its workers and closes its store."""

    def terminate(number: int, frame: Any) -> None:
        raise SystemExit(TERMINATED)

    main_thread = threading.current_thread() is threading.main_thread()
    if not main_thread or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _run(arguments: list[str]) -> int:
    """Run the command line; return the exit code."""
    try:
        command = _application()
        first = arguments[0] if arguments else "--help"
        if not first.startswith("-") and first not in command.commands:
            raise UnknownName("command", first, command.commands)
        if first in ("compare", "dataset", "tune"):
            arguments = _spell_out_switches(arguments)
        code = command.main(args=arguments or ["--help"], prog_name="schedgym", standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # whoever read us has seen enough; the interpreter must not complain when it flushes
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if type(error).__name__ == "Abort":  # what click makes of an interrupt
            return INTERRUPTED
        message = _explain(error)
        if message is None:
            raise
        line = shorten(printable(" ".join(message.splitlines())))
        print(f"error: {line}", file=sys.stderr)
        return ABORTED if isinstance(error, RunAborted) else USAGE


def _spell_out_switches(arguments: list[str]) -> list[str]:
    """Add the value to each option that may stand without one: "true" to booleans, "false" behind --no-."""
    switches = {"--tuned": "shipped"} | {
        f"--{name.replace('_', '-')}": "true"
        for problem in list_problems().values()
        for name, kind in problem.parameters.kinds().items()
        if kind in (bool, bool | None)
    }
    spelled = []
    for i, argument in enumerate(arguments):
        if switches.get(name := argument.replace("--no-", "--", 1)) == "true" and name != argument:
            spelled += [name, "false"]
            continue
        spelled.append(argument)
        if argument in switches and (i + 1 == len(arguments) or arguments[i + 1].startswith("-")):
            spelled.append(switches[argument])
    return spelled


def _explain(error: Exception) -> str | None:
    """Return the message of an error of the user, None for any other error."""
    if hasattr(error, "format_message"):  # click's, or typer's own copy of it
        name, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
        if type(error).__name__ == "NoSuchOption" and context is not None:
            known = [option for p in context.command.params for option in p.opts if option[:2] == "--"]
            return f"unknown option {name!r}{suggest(str(name), known)}"
        return str(error.format_message()).rstrip(".")
    if isinstance(error, (SchedgymError, GymnasiumError)):
        return str(error)
    if isinstance(error, OSError) and error.errno != errno.EPIPE:
        what = error.strerror or str(error)
        return f"{error.filename}: {what}" if error.filename is not None else what
    if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)):
        return str(error)
    return None


@functools.cache
def _application() -> Any:
    """Import the modules of the commands, which register these; return click's group of all commands."""
    for module in COMMANDS:
        importlib.import_module(f"schedgym.cli.{module}")
    typer, common = (importlib.import_module(name) for name in ("typer", "schedgym.cli.common"))
    return typer.main.get_command(common.application)
