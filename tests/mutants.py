"""How many small slips in kernels and policies the tests notice: mutants by hand, at least ten a problem.

    python -m tests.mutants                          # all problems: an hour or two
    python -m tests.mutants queue_delay geo --json found.json
    python -m tests.mutants --check                  # only: do the mutants of the table apply and import?

``mutants.toml`` beside this script says what is changed, and what that breaks. A tree of its own under
.cache/mutants holds the package as it is installed (baselines and agents inside), the tests, and the compiled
kernels. In it the tests of a problem run once without a mutant; then each mutant gets a fresh copy in which
one file differs. The tests of a problem come in stages: its own, the solvers', those that all problems share,
its paper's, and last the golden digests, which catch nearly all and would hide what the others see. A mutant
is caught by the first test that fails. If its tests run out of time, that counts if the unmutated ones took
less than half of the limit, and is counted by itself.

The tests run inside the tree, because ``python -m pytest`` and the tests' own subprocesses put their root
first on the path, before any PYTHONPATH. The table is a measurement: the exit status is 0 whatever it says.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CLEAN, TREE = (ROOT / ".cache" / "mutants" / name for name in ("clean", "tree"))
SHARED = ("all_records", "all_workloads", "all_problems", "vector_environments", "draws", "all_policies")
#: problem -> its solvers, its paper, and what the names of its cases contain in tests that all problems share
PROBLEMS = {
    "flowtime": (("transport", "knapsack"), "xu2021", "flowtime"),
    "geo": (("balance", "max_min", "one_machine"), "guan2022", "geo"),
    "parallel_jct": (("placement", "relaxation", "one_machine"), "shi2017", "paralleljct or parallel-jct"),
    "partial_value": (("dual_prices",), "zheng2016", "partialvalue or partial-value"),
    "queue_delay": (("one_machine",), "noroozoliaee2014", "queuedelay or queue-delay"),
    "single_job": (("placement", "relaxation"), "shi2017", "singlejob or single-job"),
}
NO_TESTS = 5  # pytest's exit status where all tests of a stage are marked long
WHERE = "import schedgym, schedgym.baselines, {0}; print(*(m.__file__ for m in ({0}, schedgym.baselines)))"


def stages(problem: str) -> dict[str, list[str]]:
    """What pytest runs for a problem, in turn."""
    solvers, paper, cases = PROBLEMS[problem]
    return {
        "own": [f"tests/{problem}"],
        "solvers": [f"tests/solvers/test_{name}.py" for name in solvers],
        "shared": [*(f"tests/test_{name}.py" for name in SHARED), "-k", cases],
        "paper": [f"tests/papers/{paper}"],
        "golden": ["tests/test_golden.py", "-k", problem],
    }


def make_clean() -> None:
    """The tree without a mutant."""
    shutil.rmtree(CLEAN.parent, ignore_errors=True)
    for name in ("schedgym", "tests", "baselines", "agents"):
        inside = "" if name in ("schedgym", "tests") else "schedgym"
        shutil.copytree(ROOT / name, CLEAN / inside / name)
    shutil.copy2(ROOT / "pyproject.toml", CLEAN)
    (CLEAN / "docs").symlink_to(ROOT / "docs")


def make_mutant(mutant: dict[str, str]) -> None:
    """A tree of links to the clean one, but for the file of a mutant; kernels are keyed by their contents."""
    shutil.rmtree(TREE, ignore_errors=True)
    shutil.copytree(CLEAN, TREE, symlinks=True, copy_function=os.link)
    path = TREE / inside(mutant)
    text = path.read_text(encoding="utf-8")
    path.unlink()  # a link
    path.write_text(text.replace(mutant["find"], mutant["put"]), encoding="utf-8")


def inside(mutant: dict[str, str]) -> Path:
    """The path of a mutant's file in a tree."""
    return Path("schedgym" if mutant["file"].startswith("baselines/") else "", mutant["file"])


def run(tree: Path, arguments: list[str], limit: float) -> tuple[int | None, str]:
    """Run Python inside a tree: exit status, None when out of time, and output."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        return None, ""
    finally:  # whatever ends it, its own subprocesses end, too
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return process.returncode, output


def check_paths(tree: Path, file: Path) -> None:
    """A module imports, and it and the policies come from the tree, not from the installed package."""
    status, output = run(tree, ["-c", WHERE.format(".".join(file.with_suffix("").parts))], 300.0)
    assert status == 0 and all(path.startswith(f"{tree}/") for path in output.split()), output


def test(tree: Path, problem: str, every: bool, limit: float) -> dict[str, Any]:
    """Run the stages until a test fails."""
    begin = time.monotonic()
    options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    found = {"result": "passed", "stage": "", "test": ""}
    for stage, targets in stages(problem).items():
        marked = [] if every else ["-m", "not long"]
        left = limit - (time.monotonic() - begin)
        status, output = run(tree, ["-m", "pytest", *options, *marked, *targets], max(left, 1.0))
        if status not in (0, NO_TESTS):
            failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
            what = failed[1] if failed else f"status {status}: {output.strip()[-200:]}"
            result = "out of time" if status is None else "failed"
            found = {"result": result, "stage": stage, "test": what if status is not None else ""}
            break
    return found | {"seconds": round(time.monotonic() - begin, 1)}


def main() -> None:
    """Run the mutants that the command line names, and print what caught them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("problems", nargs="*", help="all by default")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of mutants of each problem, from 1")
    parser.add_argument("--all", action="store_true", help="also the tests that are marked long")
    parser.add_argument("--check", action="store_true", help="only whether the mutants apply and import")
    parser.add_argument("--no-clean", action="store_true", help="leave the run without a mutant out")
    parser.add_argument("--minutes", type=float, default=15.0, help="limit of a mutant's tests")
    parser.add_argument("--json", type=Path, help="file for the results")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    table = tomllib.loads((Path(__file__).with_suffix(".toml")).read_text(encoding="utf-8"))
    assert set(given.problems) <= set(table) == set(PROBLEMS), f"problems: {', '.join(PROBLEMS)}"
    make_clean()
    check_paths(CLEAN, Path("schedgym/core/jit.py"))
    rows: list[dict[str, Any]] = []
    limit = 60.0 * given.minutes
    for problem in given.problems or PROBLEMS:
        assert len(table[problem]) >= 10, problem
        unmutated = 0.0
        if not given.check and not given.no_clean:
            clean = test(CLEAN, problem, given.all, 10 * limit)
            assert clean["result"] == "passed", f"{problem}, without a mutant: {clean}"
            unmutated = clean["seconds"]
            print(f"{problem}: {unmutated:.0f} s without a mutant", flush=True)
        for number, mutant in enumerate(table[problem], start=1):
            count = (CLEAN / inside(mutant)).read_text(encoding="utf-8").count(mutant["find"])
            assert count == 1 and mutant["find"] != mutant["put"], f"{problem} {number}: {count} times"
            if given.only and number not in given.only:
                continue
            make_mutant(mutant)
            if given.check:
                check_paths(TREE, inside(mutant))
                continue
            row = {"problem": problem, "number": number, "file": mutant["file"], "breaks": mutant["breaks"]}
            row |= test(TREE, problem, given.all, limit)
            if row["result"] == "out of time" and not 0.0 < unmutated < limit / 2:
                row["result"] = "no verdict"
            rows.append(row)
            if given.json:
                given.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
            who = f"{row['stage']:8} {row['test']}" if row["stage"] else ""
            print(f"{problem:14} {number:2} {row['result']:11} {row['seconds']:6.0f} s  {who}", flush=True)
            print(f"{'':18}{mutant['file']}: {mutant['breaks']}", flush=True)
    counts = Counter(row["result"] for row in rows)
    golden = sum(row["result"] == "failed" and row["stage"] == "golden" for row in rows)
    print(
        f"{len(rows)} mutants: {counts['failed']} caught by a test ({golden} of them by the golden digests "
        f"only), {counts['out of time']} by time out, {counts['passed']} not caught, "
        f"{counts['no verdict']} without a verdict"
    )


if __name__ == "__main__":
    main()
