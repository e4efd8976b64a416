"""``schedgym train`` and ``schedgym agents``: train agents, list and show them."""

import dataclasses
import json
import shlex
from pathlib import Path
from typing import Any

import typer

from schedgym.cli.common import application, command, pairs, say, write_json
from schedgym.core.files import check_output
from schedgym.errors import InvalidParameter, UnknownName
from schedgym.evaluation.wording import four_digits, interval_text, make_console, make_table, percent_text

agents = typer.Typer(help="List and show trained agents.", rich_markup_mode=None)
application.add_typer(agents, name="agents")


@dataclasses.dataclass(frozen=True)
class Training:
    """The arguments of ``schedgym train``: the agent to train, and its files.

    Attributes:
        algo (NAME): The algorithm: cma, ppo or sb3-ppo. Default: that of the configuration.
        config (FILE): A configuration (YAML), or the name of a shipped one. Default: the one shipped for
            the id.
        set (NAME=VALUE): Change the configuration: NAME is a field, section.field, or parameters.name.
        seed: The seed of the training. Default: that of the configuration.
        seeds (N): Train with N seeds, from that of --seed on; a command that was cut off goes on.
        engine (local|ray): With --seeds: train in processes of this machine (local) or on a Ray cluster
            (ray).
        n_jobs: With --seeds: trainings at once. Default: one per core.
        unit_timeout (SECONDS): With --seeds: the longest that one training may take; longer ones have
            failed for now.
        output: Write the agent to this file (.npz); with --seeds, all agents and results to this folder.
        resume: Continue a training from its checkpoint, if there is one.
        restart: Begin anew, even if there is a checkpoint.
        logs (FOLDER): Write logs for TensorBoard to this folder.
        device (NAME): Where algorithm ppo runs its environments and computes: cpu, cuda, or auto: a GPU where
            there is one (experimental, speed not yet measured; needs the extra cuda). Default: cpu.
    """

    id: str
    _: dataclasses.KW_ONLY
    algo: str | None = None
    config: str | None = None
    set: list[str] | None = None
    seed: int | None = None
    seeds: int | None = None
    engine: str | None = None
    n_jobs: int | None = None
    unit_timeout: float | None = None
    output: Path | None = None
    resume: bool = False
    restart: bool = False
    logs: Path | None = None
    device: str | None = None

    def configuration(self, id: str) -> tuple[str, Any]:
        """The configuration file's name and its content, changed by the settings."""
        from schedgym.agents import config as configs

        if self.algo is not None and self.algo not in configs.ALGORITHMS:
            raise UnknownName("algorithm", self.algo, configs.ALGORITHMS)
        changes = pairs(self.set, "--set")
        if self.seed is not None:
            if "seed" in changes:
                raise InvalidParameter("--seed: is set by --set, too")
            changes["seed"] = str(self.seed)
        source = configs.config_for(id, self.algo) if self.config is None else self.config
        config = configs.load_config(source, changes)
        for what, wanted, given in (("id", id, config.id), ("algorithm", self.algo, config.algorithm)):
            if wanted is not None and wanted != given:
                raise InvalidParameter(f"--config: {source} is for {what} {given!r}, not {wanted!r}")
        return source, config

    def path(self, source: str) -> Path:
        """The agent file, once it is checked that it can be written and how to treat its checkpoint."""
        from schedgym.agents.files import checkpoint_path

        path = self.output or Path(f"{Path(source).stem}.npz")
        check_output(path, (".npz",))
        checkpoint = checkpoint_path(path)
        if self.resume and self.restart:
            raise InvalidParameter("--resume and --restart exclude each other")
        if checkpoint.exists() and not (self.resume or self.restart):
            raise InvalidParameter(
                f"{checkpoint}: a training was cut off: --resume goes on, --restart begins again"
            )
        return path

    def folder(self, source: str) -> Path:
        """The folder of several trainings, once it is checked that it can be written."""
        if self.seeds is None or self.seeds < 1:
            raise InvalidParameter(f"--seeds: must be a whole number from 1, got {self.seeds}")
        if self.resume or self.restart:
            raise InvalidParameter(
                "--resume and --restart: have no effect with --seeds, which always goes on"
            )
        path = self.output or Path(f"{Path(source).stem}-seeds")
        if path.exists() and not path.is_dir():
            raise InvalidParameter(f"{path}: is a file: --seeds needs a folder")
        check_output(path / "agents" if path.exists() else path)
        return path

    def command(self, id: str, source: str) -> str:
        """The command that repeats the training, up to its seed and its file."""
        words = ["schedgym", "train", id, "--config", source]
        words += [word for text in self.set or () for word in ("--set", text)]
        words += [] if self.device is None else ["--device", self.device]
        return shlex.join(words)


@command("train", Training)
def train(asked: Training) -> int:
    """Train an agent from a configuration, and write its file.

    The printed curve is the mean objective of the validation episodes and, of a search, its change as the
    fitness measures it, by which the best is chosen (less is better). A checkpoint stands beside the agent
    file. With --seeds it trains several agents, and says which is the median; the exit code is 1 if trainings
    have failed.
    """
    from schedgym.evaluation.plan import resolve_id

    _, id = resolve_id(asked.id)
    source, config = asked.configuration(id)
    if asked.seeds is not None:
        return _train_seeds(asked, id, source, config)
    for name in ("engine", "n_jobs", "unit_timeout"):
        if getattr(asked, name) is not None:
            raise InvalidParameter(f"--{name.replace('_', '-')}: has no effect without --seeds: leave it out")
    _train_one(asked, id, source, config)
    return 0


def _describe(config: Any) -> str:
    """Describe the metric of a configuration's validations."""
    unit = f" [{config.metric.unit}]" if config.metric.unit else ""
    return (
        f"{config.id}, view {config.view}, {config.algorithm}: mean {config.metric.name}{unit} of validations"
    )


def _train_one(asked: Training, id: str, source: str, config: Any) -> None:
    from schedgym.agents import training

    path = asked.path(source)
    seed = "" if asked.seed is None else f" --seed {asked.seed}"
    command = f"{asked.command(id, source)}{seed} -o {shlex.quote(path.name)}"
    metric = config.metric
    gradient = config.algorithm != "cma"
    say(_describe(config))

    def report(point: Any) -> None:
        done = f"{point.steps:>10,} steps" if gradient else f"generation {point.generation:>5}"
        change = "" if gradient else f"  change {percent_text(100 * point.change)}%"
        say(f"{done}  {point.seconds:7.0f} s  {four_digits(point.objective)}{change}")

    result = training.train(
        config, path, command, resume=asked.resume, report=report, log_dir=asked.logs, device=asked.device
    )
    first, best = result.curve[0].objective, result.best.objective
    size = path.stat().st_size / 1024
    say(
        f"{metric.name} {four_digits(first)} -> {four_digits(best)} in {result.seconds:.0f} s; "
        f"wrote {path} ({size:.0f} KiB); schedgym compare {id} --agents {shlex.quote(str(path))}"
    )


def _train_seeds(asked: Training, id: str, source: str, config: Any) -> int:
    from schedgym.evaluation.manifest import make_manifest
    from schedgym.evaluation.trainings import TrainingSpec, run_trainings

    folder = asked.folder(source)
    assert asked.seeds is not None
    spec = TrainingSpec(
        Path(source).stem,
        config,
        range(config.seed, config.seed + asked.seeds),
        folder,
        asked.command(id, source),
        asked.logs,
        asked.device,
    )
    result = run_trainings(
        spec,
        engine=asked.engine or "local",
        n_jobs=-1 if asked.n_jobs is None else asked.n_jobs,
        unit_timeout=asked.unit_timeout,
    )
    manifest = make_manifest(seeds=spec.seeds, config=config.to_dict())
    write_json({**dataclasses.asdict(result), "manifest": manifest}, folder / "trainings.json")
    rows = [
        (
            str(agent.seed),
            four_digits(agent.validation.value),
            interval_text(agent.validation.low, agent.validation.high),
            "-" if agent.change is None else percent_text(100 * agent.change),
            four_digits(agent.seconds),
            f"{agent.steps:,}",
            agent.path.name + ("  <- median" if agent == result.median else ""),
        )
        for agent in result.agents
    ]
    headings = ("seed", config.metric.name, "95% interval", "change [%]", "time [s]", "steps", "agent")
    if rows:
        right = {heading: {"justify": "right"} for heading in headings[:-1]}
        make_console().print(make_table(_describe(config), headings, rows, **right))
    for what, error in result.failed.items():
        say(f"failed: {what}: {error.strip().splitlines()[-1]}")
    say(f"{result.done} trainings in {result.seconds:.0f} s; {spec.store}; {folder / 'trainings.json'}")
    if result.median is not None:
        hint = f"schedgym compare {id} --agents {shlex.quote(str(folder))}"
        say(f"ship the median: {result.median.path}; {hint}")
    return 1 if result.failed else 0


@command("list", of=agents)
def list_agents() -> None:
    """List the agents and the configurations that are shipped."""
    from schedgym.agents import config as configs
    from schedgym.agents import files

    rows: list[tuple[str, ...]] = []
    for path in files.list_pretrained().values():
        agent = files.load_agent(path)
        training = agent.metadata["training"]
        rows.append(
            (
                agent.id,
                agent.view,
                agent.metadata["config"]["algorithm"],
                four_digits(float(training["curve"][0]["objective"])),
                four_digits(float(training["best"]["objective"])),
                f"{training['seconds'] / 60:.1f}",
                agent.sha256[:12],
            )
        )
    console = make_console()
    headings = ("id", "view", "algorithm", "objective at first", "trained", "minutes", "sha256")
    console.print(make_table("shipped agents", headings, rows))
    shipped = {name: configs.load_config(name) for name in configs.list_configs()}
    rows = [(name, config.id, config.view, config.algorithm) for name, config in shipped.items()]
    console.print(make_table("shipped configurations", ("name", "id", "view", "algorithm"), rows))
    console.print("objectives are means of the validation episodes; `schedgym agents show ID` tells all")


@command("show", of=agents)
def show_agent(agent: str) -> None:
    """Print the metadata of an agent file as JSON.

    Options:
        agent: An agent file, or the environment id of a shipped agent.
    """
    from schedgym.agents import files

    shipped = list(files.list_pretrained())
    if agent == "pretrained":  # the word of `compare`, which has an id beside it
        raise InvalidParameter(f"pretrained: there is one for each id: show one of {', '.join(shipped)}")
    id = next((id for id in shipped if agent in (id, id.partition("/")[2])), None)
    found = files.load_agent(agent) if id is None else files.load_pretrained(id)
    print(json.dumps({**found.metadata, "sha256": found.sha256}, indent=2))
