"""``schedgym tune``: find the option values with which a baseline does best, on validation workloads."""

# annotations are evaluated: typer reads them
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from schedgym.cli.common import command, pairs, policy_options, say, write_json
from schedgym.cli.parameters import command_of, parameter_options, parse_parameters
from schedgym.core.files import check_output
from schedgym.core.problem import Problem
from schedgym.errors import InvalidParameter
from schedgym.evaluation.statistics import FEW, Estimate
from schedgym.evaluation.wording import (
    four_digits,
    interval_text,
    make_console,
    make_table,
    metric_text,
    options_text,
    percent_text,
)


@dataclasses.dataclass(frozen=True)
class Asked:
    """The arguments of ``schedgym tune``, except for the problem's parameters.

    Attributes:
        policy: The name of the policy.
        option (NAME=VALUE): Try this value of an option instead of the declared candidates; may be given
            repeatedly.
        episodes: Episodes that choose, and as many others that judge the best. Default: 20, or at most a
            quarter of a trace's windows.
        output: The results store.
    """

    id: str
    policy: str
    _: dataclasses.KW_ONLY
    option: list[str] | None = None
    episodes: int | None = None
    preset: str | None = None
    set: list[str] | None = None
    output: Path = Path("tune.db")
    n_jobs: int = -1
    json: Path | None = None


@command("tune", Asked, cls=command_of(Asked), more=parameter_options(Asked))
def tune(asked: Asked, **given: str | None) -> None:
    """Find the options with which a policy does best, on episodes that no comparison plays.

    All combinations of the candidates that the policy declares are run, or, if they are many, one option is
    changed after another; the best is judged on further episodes. Results that the store holds are not run
    again. Every parameter of the problem is an option, as for `schedgym compare`, which takes the file of
    --json: `schedgym compare ID --tuned FILE`.
    """
    from schedgym.evaluation.manifest import make_manifest
    from schedgym.evaluation.plan import resolve_id
    from schedgym.evaluation.tuning import tune as search

    problem, id = resolve_id(asked.id)
    check_output(asked.output)
    parameters, grid = parse_parameters(problem, id, asked.preset, given, pairs(asked.set, "--set"))
    for name, values in grid.items():
        raise InvalidParameter(f"{name}: a tuning runs in one setting, got {len(values)} values")
    found = search(
        id,
        asked.policy,
        asked.episodes,
        parameters=parameters,
        candidates=_candidates(asked.policy, problem, asked.option or ()),
        store=asked.output,
        n_jobs=asked.n_jobs,
    )
    if asked.json is not None:
        manifest = make_manifest(seeds=[found.seed], parameters=found.parameters)
        entry = found.entry() | {"candidates": found.candidates, "refused": found.refused}
        write_json({"tuned": [entry], "manifest": manifest}, asked.json)
    _print_candidates(found)
    _print_judgement(found)
    if asked.json is not None:
        say(f"wrote {asked.json}; schedgym compare {id} --tuned {asked.json}")


def _candidates(policy: str, problem: Problem, texts: Sequence[str]) -> dict[str, list[Any]]:
    """Option -> the values given for it."""
    found: dict[str, list[Any]] = {}
    for text in texts:
        for name, value in policy_options(policy, problem, pairs([text], "--option")).items():
            if value in found.setdefault(name, []):
                raise InvalidParameter(f"--option: {text} is given twice")
            found[name].append(value)
    return found


def _print_candidates(found: Any) -> None:
    rows = []
    for row in found.candidates:
        relative, low, high = (100 * row[name] for name in ("relative", "relative_low", "relative_high"))
        mark = " *" if Estimate(row["difference"], row["low"], row["high"]).differs else "  "
        cells = ["defaults", "", ""]
        if row["options"]:
            cells = [options_text(row["options"]), percent_text(relative) + mark]
            cells.append(interval_text(low, high, percent_text))
        rows.append((cells[0], four_digits(row["mean"]), *cells[1:]))
    headings = ("options", metric_text(found.objective), "vs defaults [%]", "95% interval")
    table = make_table(f"{found.policy} on {found.id}", headings, rows)
    for column in table.columns[1:]:
        column.justify, column.no_wrap = "right", True
    make_console().print(table)
    for label, reason in found.refused.items():
        say(f"not run: {label}: {reason}")


def _print_judgement(found: Any) -> None:
    """Say whether the best candidate is better, and on which episodes that was found out."""
    (first, count), (second, _) = found.choosing, found.judging
    judged = found.judged
    if judged is None:
        say("best: the defaults")
    else:
        relative, low, high = (100 * judged[name] for name in ("relative", "relative_low", "relative_high"))
        text = f"{percent_text(relative)}% ({interval_text(low, high, percent_text)})"
        verdict = "better" if found.improves else "not certainly better, so the default stays"
        say(f"best: {options_text(found.best)}; on {count} other episodes {text}: {verdict}")
    if 1 < count < FEW:
        say(f"only {count} episodes: intervals of so few tend to be too narrow")
    where = f"seed {found.seed}: episodes {first} to {first + count - 1} choose"
    rest = "no comparison plays this seed"
    if found.seed == 0:  # of a trace
        rest = f"the first {first} windows are left: schedgym compare --seed 0 --episodes {first}"
    say(f"{where}, {second} to {second + count - 1} judge; {rest}")
