"""Runs the code blocks of one Markdown document, in order, in a process of their own.

    python -m tests.docs.blocks README.md [--traces]

The working folder must be empty: files that blocks write, or that a block's title names, land there. Without
``--traces`` the commands that need a public trace are left out; with it, only they run.

What a block does by its language:

- ``python``: executed in one namespace per document; with ``title="FILE"`` written to FILE;
- ``yaml`` without a title: must load as a sweep, and is written to the file that its first comment names
  ("# a.yaml: ...");
- ``toml``, ``json``, other ``yaml``: written to the file that its title names;
- ``bash``, ``console``, or none: each line is a command; ``schedgym ...`` goes through the command line's
  entry, ``python FILE`` runs the file, everything else must stand in blocks.yaml.

Files of a problem, a trace reader or a baseline (``OVERLAYS``) are then found as if they lay in the checkout.
Any other language, and a command that nothing here can run, is an error.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import textwrap
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from schedgym.documents import read_yaml

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("", "bash", "console")
FILES = ("toml", "json")
#: folder of the checkout -> package that finds new modules there
OVERLAYS = {
    "schedgym/problems": "schedgym.problems",
    "schedgym/traces": "schedgym.traces",
    "baselines": "schedgym.baselines",
}
TRACE = re.compile(r"\$\(schedgym trace fetch ([\w-]+)\)")

#: how commands and blocks are made shorter, and where the commands run that cannot run here
RULES = read_yaml(Path(__file__).with_name("blocks.yaml"))


@dataclasses.dataclass(frozen=True)
class Block:
    """A fenced block: where it begins, what it says of itself, what it holds."""

    line: int
    language: str
    title: str
    text: str


def read_blocks(document: Path) -> list[Block]:
    """The fenced blocks of a document; ValueError if one does not end."""
    found: list[Block] = []
    fence, begin, info = "", 0, ""
    held: list[str] = []
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), start=1):
        mark = re.match(r"^\s*(`{3,}|~{3,})(.*)$", line)
        if not fence and mark:
            fence, begin, info, held = mark[1], number, mark[2].strip(), []
        elif fence and mark and mark[1].startswith(fence) and not mark[2].strip():
            title = re.search(r'title="([^"]*)"', info)
            language = info.partition(" ")[0]
            text = textwrap.dedent("\n".join(held)) + "\n"
            found.append(Block(begin, language, title[1] if title else "", text))
            fence = ""
        elif fence:
            held.append(line)
    if fence:
        raise ValueError(f"{document}:{begin}: the block does not end")
    return found


def commands(block: Block) -> Iterator[tuple[int, str]]:
    """Line number and text of every command of a block: continued lines joined, comments and prompts cut."""
    held, begin = "", 0
    for number, line in enumerate(block.text.splitlines(), start=block.line + 1):
        begin = begin if held else number
        held += line.rstrip().removesuffix("\\") + " "
        if line.rstrip().endswith("\\"):
            continue
        words = " ".join(_without_comment(held).split()).removeprefix("$ ")
        held = ""
        for part in words.split(" && "):
            if part:
                yield begin, part


def _without_comment(line: str) -> str:
    """``line`` up to a # that begins a word outside quotation marks."""
    quote = ""
    for i, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter == "#" and (i == 0 or line[i - 1].isspace()):
            return line[:i]
    return line


def needs_trace(command: str) -> bool:
    """Return True if a command reads a public trace."""
    return "trace fetch" in command


def elsewhere(command: str) -> str | None:
    """The file of the checkout that runs a command which cannot run here; None for all other commands."""
    return next((where for pattern, where in RULES["elsewhere"].items() if re.search(pattern, command)), None)


def shorten(words: list[str]) -> list[str]:
    """The words of a ``schedgym`` command in its short form."""
    text = " ".join(words)
    for rule in RULES["commands"]:
        if re.search(rule["pattern"], text):
            for name, value in rule.get("set", {}).items():
                if not name.startswith("--"):
                    words[words.index(name)] = value
                elif name in words:
                    words[words.index(name) + 1] = value
                else:
                    words += [name, value]
            words += shlex.split(rule.get("append", ""))
    return words


class Document:
    """One document being run."""

    def __init__(self, path: Path, traces: bool) -> None:
        self.path, self.traces = path, traces
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.overlaid: set[str] = set()

    def run(self) -> None:
        """Run all blocks; raises AssertionError naming the line of the first that fails."""
        sys.path.insert(0, os.getcwd())
        for block in read_blocks(self.path):
            if block.language in COMMANDS:
                for line, command in commands(block):
                    if needs_trace(command) is self.traces:
                        self.timed(line, command, lambda command=command: self.command(command))
            elif not self.traces:
                kinds = {"python": self.python, "yaml": self.yaml, **dict.fromkeys(FILES, self.file)}
                kind = kinds.get(block.language)
                assert kind is not None, self.at(block.line, f"nothing runs {block.language!r}")
                self.timed(block.line, block.language, lambda kind=kind, block=block: kind(block))

    def at(self, line: int, text: str) -> str:
        """``text`` with the place in the document before it."""
        return f"{self.path.name}:{line}: {text}"

    def timed(self, line: int, what: str, act: Any) -> None:
        """Do one thing, and say how long it took."""
        began = time.perf_counter()
        output = io.StringIO()
        try:
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                act()
        except BaseException as error:
            print(output.getvalue())
            traceback.print_exc()
            raise AssertionError(self.at(line, f"{what}: {error}")) from error
        print(f"{time.perf_counter() - began:6.1f} s  {self.at(line, what)}", flush=True)

    def python(self, block: Block) -> None:
        """Write the block to its file, or execute it."""
        if block.title:
            write(block.title, block.text)
            return
        self.overlay()
        text = block.text
        for pattern, replacement in RULES["python"].items():
            text = re.sub(pattern, replacement, text)
        # tracebacks show the document's own lines
        exec(compile("\n" * block.line + text, str(self.path), "exec"), self.namespace)

    def yaml(self, block: Block) -> None:
        """Load a sweep as printed, and write its short form to the file that it names; others as they are."""
        if block.title:
            return self.file(block)
        sweeps = importlib.import_module("schedgym.evaluation.sweeps")
        name = re.match(r"# ([\w-]+\.yaml)\b", block.text)
        assert name, "a sweep begins with a comment that names its file"
        write(name[1], block.text)
        sweeps.load_spec(Path(name[1]))
        text = block.text
        for pattern, replacement in RULES["sweeps"].items():
            text = re.sub(pattern, replacement, text)
        write(name[1], text)

    def file(self, block: Block) -> None:
        """Write the block to its file."""
        assert block.title, f"a {block.language} block has a title that names its file"
        write(block.title, block.text)

    def overlay(self) -> None:
        """Let the package find the files that were written into its folders, as in a process begun now."""
        for folder, name in OVERLAYS.items():
            path = str(Path(folder).resolve())
            if Path(folder).is_dir() and path not in self.overlaid:
                self.overlaid.add(path)
                importlib.import_module(name).__path__.append(path)
                importlib.import_module("schedgym.core.problem").list_problems.cache_clear()
                importlib.import_module("schedgym")._register()

    def command(self, command: str) -> None:
        """Run one command line."""
        where = elsewhere(command)
        if where is not None:
            assert (ROOT / where).exists(), f"{where} is to run it, and does not exist"
            return
        self.overlay()
        words = shlex.split(command)
        for word in words:  # what lies in the checkout is read from a copy, lest it is written to
            if "/" in word and (ROOT / word).is_file() and not Path(word).exists():
                Path(word).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / word, word)
        if words[0] == "schedgym":
            main = importlib.import_module("schedgym.cli").main
            short = [TRACE.sub(lambda match: str(fetched(match[1])), word) for word in shorten(words[1:])]
            code = main(short)
            assert code == 0, f"schedgym {shlex.join(short)} ended with exit code {code}"
        elif words[0] == "python" and len(words) == 2 and Path(words[1]).exists():
            runpy.run_path(words[1], run_name="__main__")
        elif words[:2] == ["pip", "install"] and Path(words[-1]).is_dir():
            install(words[-1])
        else:
            raise AssertionError("nothing runs this command, and no table says where it is run")


def write(name: str, text: str) -> None:
    """Write a file below the working folder."""
    path = Path(name)
    assert not path.is_absolute() and ".." not in path.parts, f"{name}: is not below the working folder"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def install(project: str) -> None:
    """Install a project that the document has written, without a network, and only for this process."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    local = ["--no-deps", "--no-build-isolation", "--no-index", "--target", "site", project]
    done = subprocess.run([*pip, *local], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    sys.path.insert(0, str(Path("site").resolve()))
    importlib.invalidate_caches()
    # policies are discovered once in a process; what follows an installation is another process
    importlib.import_module("schedgym.core.policy")._discover.cache_clear()


def fetched(name: str) -> Path:
    """A public trace from the folder that SCHEDGYM_DATA names."""
    fetch = importlib.import_module("schedgym.traces.fetch").fetch
    return Path(fetch(name))


def main() -> None:
    """Run the document that the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("document", type=Path)
    parser.add_argument("--traces", action="store_true")
    arguments = parser.parse_args()
    assert not list(Path().iterdir()), "the working folder must be empty"
    Document(arguments.document.resolve(), arguments.traces).run()


if __name__ == "__main__":
    main()
