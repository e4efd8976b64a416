"""``schedgym dataset``: write episodes of policies as a Minari data set, to learn from offline."""

# annotations are evaluated: typer reads them
import dataclasses

import numpy as np

from schedgym.cli.common import command, say
from schedgym.cli.compare import Contenders, plan_contenders
from schedgym.cli.parameters import command_of, parameter_options
from schedgym.errors import InvalidParameter
from schedgym.evaluation.wording import four_digits, make_console, make_table, metric_text


@dataclasses.dataclass(frozen=True, kw_only=True)
class Asked(Contenders):
    """The arguments of ``schedgym dataset``, except for the problem's parameters.

    Attributes:
        output (NAME): Name of the data set: NAME-v0 or NAMESPACE/NAME-v0.
    """

    output: str = ""


@command("dataset", Asked, cls=command_of(Asked), more=parameter_options(Asked))
def dataset(asked: Asked, **given: str | None) -> None:
    """Let policies play the same episodes, and write them as a Minari data set.

    All act in one view: that of --view, else that of the agent among them, else that of the id. The episodes
    are others than those of evaluations. Every parameter of the problem is an option, as with
    `schedgym compare`. Needs the extra minari; MINARI_DATASETS_PATH names the folder of all data sets.
    """
    from schedgym.evaluation.datasets import create_dataset
    from schedgym.evaluation.plan import find_objective

    plan = plan_contenders(asked, given)
    for name in plan.grid:
        raise InvalidParameter(f"{name}: a data set has one environment: give one value")
    written = create_dataset(
        plan.id, plan.acting, asked.output, asked.episodes, asked.seed, parameters=plan.fixed
    )
    told = list(written.storage.get_episode_metadata(written.episode_indices))
    objective = find_objective(plan.problem, plan.id, [plan.fixed])
    rows = []
    for label in plan.acting:
        own = [episode for episode in told if episode["policy"] == label]
        played = sum(int(episode["total_steps"]) for episode in own)
        mean = float(np.mean([episode[objective.name] for episode in own]))
        rows.append((label, str(len(own)), f"{played:,}", four_digits(mean)))
    headings = ("policy", "episodes", "steps", metric_text(objective, mean=True))
    right = {heading: {"justify": "right"} for heading in headings[1:]}
    make_console().print(make_table(asked.output, headings, rows, **right))
    size = written.storage.get_size()
    say(f"wrote {written.spec.data_path} ({size} MB): minari.load_dataset({asked.output!r})")
