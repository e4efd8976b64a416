"""Check the files of a release, and try them as a new user would, with the Python that runs this.

    python .ci/release.py dist

Each file, a source archive or a wheel, must hold every tracked file of the package, no other but compiled
kernels, and the licence. Each that is for this Python is installed alone, in an empty environment: the first
example of the README runs with what the package itself needs, then a comparison with the extra ``eval``. Ends
with exit code 1 and says what failed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("schedgym", "baselines", "agents")
#: how the names of files for this Python end; setup.py has the tags of a wheel with kernels
PLATFORM = sysconfig.get_platform().replace("linux", "manylinux_2_17").replace("-", "_").replace(".", "_")
KERNELS = f"-cp{sys.version_info.major}{sys.version_info.minor}-none-{PLATFORM}.whl"
FITTING = (".tar.gz", "-none-any.whl", KERNELS)

#: runs the first example of the README that the installed package carries
EXAMPLE = """
import importlib.metadata, re, sys
readme = importlib.metadata.metadata("schedgym").json["description"]
exec(re.search(r"```python\\n(.*?)```", readme, re.DOTALL)[1])
assert schedgym.__file__.startswith(sys.prefix), schedgym.__file__
"""
COMPARE = ["schedgym", "compare", "schedgym/QueueDelay-v0", "--preset", "small"]


def run(command: list[str], folder: Path) -> str:
    """What a command prints; SystemExit with all that it has written if it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def check_contents(file: Path) -> None:
    """Compare what a file holds with what is tracked."""
    tracked = set(run(["git", "ls-files", *FOLDERS], ROOT).split())
    if file.suffix == ".whl":  # where the three top-level folders are one package
        held = set(zipfile.ZipFile(file).namelist())
        tracked = {re.sub(r"^(baselines|agents)/", r"schedgym/\1/", name) for name in tracked}
        others = {name for name in held if re.match(r"schedgym/kernels/|[^/]*\.dist-info/", name)}
        licence = any(name.endswith(".dist-info/licenses/LICENSE") for name in held)
    else:
        members = tarfile.open(file).getmembers()
        held = {member.name.partition("/")[2] for member in members if member.isfile()}
        others = {name for name in held if name.partition("/")[0] not in FOLDERS}
        licence = "LICENSE" in held
    odd = sorted((held - others) ^ tracked)
    if odd or not licence:
        sys.exit(f"{file.name}: missing, or not tracked: {', '.join(odd) or 'LICENSE'}")


def try_out(file: Path, folder: Path) -> str:
    """Install a file, run the example and a comparison, and say how long they took."""
    run([sys.executable, "-m", "venv", str(folder / "venv")], folder)
    python = str(folder / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    seconds = []
    for wanted, arguments in ((str(file), ["-c", EXAMPLE]), (f"{file}[eval]", ["-m", *COMPARE])):
        run([python, "-m", "pip", "install", "--quiet", wanted], folder)
        began = time.perf_counter()
        run([python, "-I", *arguments], folder)
        seconds.append(time.perf_counter() - began)
    compiled = [path for path in folder.rglob("*.nbc") if path.parent.name == "kernels"]
    if bool(compiled) is file.name.endswith(KERNELS):  # without kernels all that runs is compiled
        sys.exit(f"{file.name}: {len(compiled)} kernels were compiled")
    return f"the example took {seconds[0]:.1f} s, the comparison {seconds[1]:.1f} s"


def main(dist: str) -> None:
    """Check all files of a folder, and try those that are for this Python."""
    files = sorted(path.resolve() for path in Path(dist).iterdir())
    fitting = [file for file in files if file.name.endswith(FITTING)]
    if not fitting:
        sys.exit(f"{dist}: has no file for this Python")
    for file in files:
        check_contents(file)
    for file in fitting:
        with tempfile.TemporaryDirectory() as folder:
            print(f"{file.name}, Python {sys.version_info.major}.{sys.version_info.minor}:", end=" ")
            print(try_out(file, Path(folder).resolve()), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
