"""The results store: a SQLite file with one row per finished unit of a sweep, or of a comparison.

It holds units of lines in settings (see :mod:`~schedgym.evaluation.plan`); no episode of a line is stored
twice. Each unit is written in one transaction, with its bound and after the check that it does not beat it,
so that a store is complete whenever its writer dies. It has one writer at a time; others may read meanwhile.

Each unit has a checksum of all that the store says of it. It is checked wherever the unit is read: it finds
damage and careless changes, but not those of somebody who computes it anew.

The SQL view ``units`` shows all of it in one table.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import errno
import functools
import hashlib
import importlib
import itertools
import json
import os
import sqlite3
import time
import urllib.parse
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from schedgym.core.arrays import Floats
from schedgym.core.problem import get_problem, sign_of
from schedgym.documents import canonical
from schedgym.errors import InvalidStore, RunAborted, SchedgymError, UnknownName
from schedgym.evaluation.episodes import Result, checked_gap
from schedgym.evaluation.plan import Line, Setting, Unit
from schedgym.extras import require

if TYPE_CHECKING:
    import pandas as pd

APPLICATION = 0x5C4ED6  # SQLite's application_id of our files
SCHEMA = 3
PATIENCE = 30.0  # s to wait for a reader that holds the file
LARGEST = 2**28  # bytes of one text or array of a store
MOST_STEPS = 5_000  # millions of SQLite's instructions that one statement may take: some minutes
ARRAY, TUPLE = "array", "named tuple"  # the names under which they are written


TABLES = """
CREATE TABLE settings(
    setting INTEGER PRIMARY KEY, problem TEXT NOT NULL, id TEXT NOT NULL, parameters TEXT NOT NULL,
    objective TEXT NOT NULL, better TEXT NOT NULL, code TEXT NOT NULL, UNIQUE(id, parameters, code)
) STRICT;
CREATE TABLE lines(
    line INTEGER PRIMARY KEY, setting INTEGER NOT NULL REFERENCES settings, policy TEXT,
    options TEXT NOT NULL, training_seed INTEGER, digest TEXT NOT NULL UNIQUE
) STRICT;
CREATE UNIQUE INDEX contenders ON lines(setting, ifnull(policy, ''), ifnull(training_seed, -1));
CREATE TABLE results(
    unit INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, line INTEGER NOT NULL REFERENCES lines,
    seed INTEGER NOT NULL, first INTEGER NOT NULL, episodes INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('done', 'failed')), mean REAL, bound REAL,
    seconds REAL NOT NULL, policy_seconds REAL NOT NULL, error TEXT, finished REAL NOT NULL,
    checksum TEXT NOT NULL
) STRICT;
CREATE INDEX board ON results(line, status, seed, first, episodes, mean, bound, policy_seconds);
CREATE TABLE outcomes(
    unit INTEGER PRIMARY KEY REFERENCES results, metrics TEXT NOT NULL, observed TEXT, data BLOB NOT NULL
) STRICT;
CREATE TABLE manifests(created REAL NOT NULL, manifest TEXT NOT NULL) STRICT;
CREATE VIEW units AS SELECT
    key, problem, id, parameters AS setting, policy, options, seed, first, episodes, status, objective,
    better, mean, bound, seconds, policy_seconds, code, training_seed, error, finished
    FROM results JOIN lines USING (line) JOIN settings USING (setting);
"""


class _Stored(NamedTuple):
    """All that a store says of a unit, under its checksum; ``data`` is the last that the checksum covers."""

    id: str
    policy: str | None
    seed: int
    first: int
    episodes: int
    line: int
    problem: str
    parameters: str
    objective: str
    better: str
    code: str
    options: str
    training_seed: int | None
    digest: str
    key: str
    status: str
    mean: float | None
    bound: float | None
    seconds: float
    policy_seconds: float
    error: str | None
    finished: float
    metrics: str | None
    observed: str | None
    data: bytes | None
    checksum: str
    unit: int

    def sum(self) -> str:
        """SHA-256 of the unit, except the row that it happens to have."""
        *content, data, _, _ = self
        return hashlib.sha256(repr(content).encode() + (data or b"")).hexdigest()

    def check(self) -> None:
        """Raise ValueError if the checksum does not fit."""
        if self.sum() != self.checksum:
            who = f"{self.id}, {self.policy or 'the bounds'}, seed {self.seed}, episode {self.first}"
            raise ValueError(f"unit {self.unit} ({who}): its checksum does not fit")

    def outcome(self) -> tuple[list[str], Floats]:
        """Names and values [episodes, metrics] of a unit that is done."""
        names = [str(name) for name in json.loads(self.metrics or "")]
        return names, np.frombuffer(self.data or b"", dtype="<f8").reshape(self.episodes, len(names))


class _Connection(sqlite3.Connection):
    """A connection that ends a statement which runs for too long, as one on a damaged file may do."""

    _steps = 0

    def protect(self) -> None:
        """Limit sizes and time, and let the file define nothing that runs."""
        self.set_progress_handler(self._step, 1_000_000)
        self.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
        self.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"):
            self.execute(f"PRAGMA {pragma}")

    def _step(self) -> bool:
        self._steps += 1
        return self._steps > MOST_STEPS

    def execute(self, *given: Any) -> sqlite3.Cursor:
        """Begin a statement, and the count of its instructions."""
        self._steps = 0
        return super().execute(*given)


def _schema(connection: sqlite3.Connection) -> set[tuple[Any, ...]]:
    """Every table, index, view and trigger of a database, with the statement that defines it."""
    return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema"))


@functools.cache
def _own_schema() -> set[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(TABLES)
        return _schema(connection)


def _mapping(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"no JSON object: {text[:40]!r}")
    return found


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


class ResultsStore:
    """The results of sweeps in a SQLite file.

    The file may come from a stranger: one whose schema is not exactly that of a store is refused, so that no
    view or trigger of its own ever runs, and what one statement takes is limited.

    Args:
        path: path of the file.
        mode: "r", or "w", which makes the file if there is none.

    Raises:
        FileNotFoundError: if there is none to read.
        InvalidStore: in one line, if it is no store, of a newer version, read-only, being written by another
            process, ...
    """

    def __init__(self, path: str | Path, mode: str = "r") -> None:
        if mode not in ("r", "w"):
            raise ValueError(f"mode: must be 'r' or 'w', got {mode!r}")
        self.path, self.mode = Path(path), mode
        real = os.path.realpath(self.path)
        self._lock_path = Path(f"{real}.lock")  # one for all names of the file
        self._lock: int | None = None
        self._files = (os.path.abspath(self.path), f"{real}-wal")
        self._written: list[tuple[int, int, int]] = []  # what _state was after the last transaction
        self._lines: dict[str, tuple[int, int]] = {}  # digest -> line, setting
        if mode == "r" and not self.path.exists():
            raise FileNotFoundError(errno.ENOENT, "there is no results store", str(path))
        if self.path.exists() and not self.path.is_file():
            what = "folder" if self.path.is_dir() else "special file"
            raise InvalidStore(f"{self.path}: is a {what}, not a results store")
        if mode == "w":
            self._take_lock()
        try:
            with self._errors():
                self._open()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> ResultsStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        mode = "rwc" if self.mode == "w" else "ro"
        name = urllib.parse.quote(str(self.path.absolute()))
        self._connection = sqlite3.connect(
            f"file:{name}?mode={mode}", PATIENCE, isolation_level=None, uri=True, factory=_Connection
        )
        self._connection.protect()
        run = self._connection.execute
        empty = run("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
        application = run("PRAGMA application_id").fetchone()[0]
        if not (application == APPLICATION or (empty and application == 0 and self.mode == "w")):
            raise InvalidStore(f"{self.path}: not a results store")
        schema = run("PRAGMA user_version").fetchone()[0]
        if schema > SCHEMA:
            raise InvalidStore(
                f"{self.path}: written by a newer schedgym (schema {schema}; this version knows {SCHEMA})"
            )
        if schema < SCHEMA and not empty:  # no release has written these
            raise InvalidStore(f"{self.path}: of schema {schema}, which is not read: run its sweep again")
        if not empty and (strange := _schema(self._connection) ^ _own_schema()):
            kind, name, *_ = min(strange, key=repr)
            raise InvalidStore(f"{self.path}: not the schema of a results store: {kind} {str(name)[:40]!r}")
        if self.mode == "r":
            return
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        with self._transaction():
            if empty:
                for statement in TABLES.split(";"):
                    run(statement)
                run(f"PRAGMA application_id = {APPLICATION}")
            run(f"PRAGMA user_version = {SCHEMA}")  # at least this is written: a read-only file shows now
        self._written = self._state()

    def _state(self) -> list[tuple[int, int, int]]:
        """Device, inode and size of the file and of its write-ahead log; zeros for one that is not there."""
        found = []
        for name in self._files:
            try:
                stat = os.stat(name)
            except OSError:
                found.append((0, 0, 0))
            else:
                found.append((stat.st_dev, stat.st_ino, stat.st_size))
        return found

    def check_files(self) -> None:
        """Check that what was written is still where it was written.

        Raises:
            RunAborted: if the file or its write-ahead log was removed, replaced or changed meanwhile.
        """
        names = (self.path, f"{self.path}-wal")
        for name, now, then in zip(names, self._state(), self._written, strict=False):
            if now != then:
                raise RunAborted(
                    f"{name}: was removed, replaced or changed by something else while results were written: "
                    "some may be lost; run this again"
                )

    def close(self) -> None:
        """Leave one plain file behind, without a journal, which can be read where nothing can be written."""
        connection = getattr(self, "_connection", None)
        if connection is not None:
            if self.mode == "w":
                # SQLite removes the log by its name, which another store may have now
                others = self._written and self._state()[0][:2] not in ((0, 0), self._written[0][:2])
                leave = "wal_checkpoint(TRUNCATE)" if others else "journal_mode = DELETE"
                with contextlib.suppress(sqlite3.Error):  # readers are there, or the disk is full
                    connection.execute("PRAGMA busy_timeout = 100")
                    connection.execute(f"PRAGMA {leave}")
            with contextlib.suppress(sqlite3.Error):
                connection.close()
        if self._lock is not None:
            with contextlib.suppress(OSError):
                if self._holds_lock(self._lock):
                    self._lock_path.unlink()
            os.close(self._lock)
            self._lock = None

    def _take_lock(self) -> None:
        """Lock a file of its own until the process ends: closing the store's would release SQLite's locks."""
        import fcntl

        while self._lock is None:
            try:
                handle = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    same = self._holds_lock(handle)
                except BaseException:
                    os.close(handle)
                    raise
            except BlockingIOError:
                raise InvalidStore(f"{self.path}: another process is writing to it") from None
            except OSError as error:
                raise InvalidStore(f"{self.path}: cannot be written: {error.strerror}") from None
            if same:
                self._lock = handle
            else:  # its last owner removed it meanwhile
                os.close(handle)

    def _holds_lock(self, handle: int) -> bool:
        """Return True if the lock's name is still that of an open file: others may have removed it."""
        try:
            return os.path.samestat(os.fstat(handle), os.stat(self._lock_path))
        except FileNotFoundError:
            return False

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn errors of SQLite, and those that damaged content causes, into an InvalidStore of one line."""
        try:
            yield
        except SchedgymError:
            raise
        except sqlite3.OperationalError as error:
            done = "written" if self.mode == "w" else "read"
            raise InvalidStore(f"{self.path}: cannot be {done}: {_one_line(error)}") from None
        except sqlite3.DatabaseError as error:
            if "not a database" in str(error):
                raise InvalidStore(f"{self.path}: not a results store") from None
            raise InvalidStore(f"{self.path}: damaged: {_one_line(error)}") from None
        except (ValueError, TypeError, LookupError, OverflowError, MemoryError, RecursionError) as error:
            raise InvalidStore(f"{self.path}: damaged: {_one_line(error)}") from None

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        run = self._connection.execute
        self.check_files()
        run("BEGIN IMMEDIATE")
        try:
            yield
            run("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                run("ROLLBACK")
            self._lines.clear()
            raise
        finally:
            states = zip(self._written, self._state(), strict=False)
            self._written = [(*then[:2], now[2]) for then, now in states]

    # writing -----------------------------------------------------------------------------------

    def add(
        self,
        unit: Unit,
        names: Sequence[str],
        values: Floats,
        *,
        seconds: float = 0.0,
        policy_seconds: float = 0.0,
        observed: Any = None,
    ) -> list[str]:
        """Store a finished unit, in one transaction, and check it against the bounds if both are there.

        A unit that beats its bound is stored as failed instead.

        Args:
            unit: a unit of which no episode is stored yet, unless as failed.
            names: names of the metrics, of which the setting's objective is one; BOUNDS for the bounds' line.
            values: [episodes, metrics].
            seconds: CPU time that the unit took [s].
            policy_seconds: the part of it for the policy's decisions [s].
            observed: what an observer returned at its end, of dicts, lists, named tuples of this package,
                numbers, texts and arrays; None: nothing.

        Returns:
            messages on what failed, one line each.

        Raises:
            InvalidStore: if it cannot be written, or episodes of it are there already.
        """
        table = np.ascontiguousarray(values, dtype="<f8")
        if table.shape != (unit.episodes, len(names)):
            raise ValueError(f"values: must be [{unit.episodes}, {len(names)}], got {list(table.shape)}")
        main = "bound" if unit.line.policy is None else unit.line.setting.objective
        mean = float(table[:, list(names).index(main)].mean())
        seen = None if observed is None else json.dumps(_encode(observed))
        with self._errors(), self._transaction():
            row = self._insert(unit, "done", mean, seconds, policy_seconds, None)
            self._connection.execute(
                "INSERT INTO outcomes VALUES (?, ?, ?, ?)",
                (row, canonical(list(names)), seen, table.tobytes()),
            )
            self._seal(row)
            return self._certify(unit, row)

    def fail(self, unit: Unit, error: str) -> None:
        """Store a unit that failed, with its traceback."""
        with self._errors(), self._transaction():
            self._seal(self._insert(unit, "failed", None, 0.0, 0.0, error))

    def drop(self, policy: str, training_seed: int) -> None:
        """Remove all results of one training of an agent, as one that is trained again has others."""
        lines = "line IN (SELECT line FROM lines WHERE policy = ? AND training_seed = ?)"
        run, own = self._connection.execute, (policy, training_seed)
        with self._errors(), self._transaction():
            run(f"DELETE FROM outcomes WHERE unit IN (SELECT unit FROM results WHERE {lines})", own)
            run(f"DELETE FROM results WHERE {lines}", own)
            run(f"DELETE FROM lines WHERE {lines}", own)
            self._lines.clear()

    def add_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Store the manifest of a sweep."""
        with self._errors(), self._transaction():
            self._connection.execute(
                "INSERT INTO manifests VALUES (?, ?)", (time.time(), json.dumps(manifest, default=repr))
            )

    def _find(self, line: Line) -> int | None:
        """The row of a line, if it is there.

        Raises:
            InvalidStore: if its label means something else in this store.
        """
        run, setting = self._connection.execute, line.setting
        # by its digest first: a comparison and a sweep have different labels for it
        if same := run("SELECT line FROM lines WHERE digest = ?", (line.digest,)).fetchone():
            return int(same[0])
        others = run(
            "SELECT training_seed FROM settings JOIN lines USING (setting) "
            "WHERE id = ? AND parameters = ? AND code = ? AND ifnull(policy, '') = ?",
            (setting.id, canonical(dict(setting.parameters)), setting.code, line.policy or ""),
        ).fetchall()
        if any(line.clashes(other) for (other,) in others):
            raise InvalidStore(
                f"{self.path}: holds results of {line.policy or 'the bounds'} that were run with other "
                f"options or files in {setting.id}: give it another label, or take another store"
            )
        return None

    def _line(self, line: Line) -> tuple[int, int]:
        """The rows of a line and of its setting, made if they are not there."""
        if line.digest not in self._lines:
            run, setting = self._connection.execute, line.setting
            parameters = canonical(dict(setting.parameters))
            row = self._find(line)
            if row is None:
                run(
                    "INSERT OR IGNORE INTO settings VALUES (NULL, ?, ?, ?, ?, ?, ?)",
                    (setting.problem, setting.id, parameters)
                    + (setting.objective, setting.better, setting.code),
                )
                row = run(
                    "INSERT INTO lines SELECT NULL, setting, ?, ?, ?, ? FROM settings "
                    "WHERE id = ? AND parameters = ? AND code = ?",
                    (line.policy, canonical(dict(line.options)), line.training_seed, line.digest)
                    + (setting.id, parameters, setting.code),
                ).lastrowid
            place = run("SELECT setting FROM lines WHERE line = ?", (row,)).fetchone()[0]
            self._lines[line.digest] = cast(int, row), place
        return self._lines[line.digest]

    def _insert(
        self,
        unit: Unit,
        status: str,
        mean: float | None,
        seconds: float,
        policy_seconds: float,
        error: str | None,
    ) -> int:
        line, _ = self._line(unit.line)
        run = self._connection.execute
        span = (line, unit.seed, unit.first + unit.episodes, unit.first)
        overlap = "line = ? AND status = '{}' AND seed = ? AND first < ? AND first + episodes > ?"
        if run(f"SELECT 1 FROM results WHERE {overlap.format('done')} LIMIT 1", span).fetchone():
            raise InvalidStore(f"{self.path}: holds {unit} already")
        run(f"DELETE FROM results WHERE {overlap.format('failed')}", span)
        cursor = run(
            "INSERT INTO results VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, NULL, ?, ?, ?, ?, '')",
            (unit.key, *(line, unit.seed, unit.first, unit.episodes), status)
            + (mean, seconds, policy_seconds, error, time.time()),
        )
        return int(cursor.lastrowid or 0)

    def _seal(self, row: int) -> None:
        """Write the checksum of a unit that has been written or changed."""
        (stored,) = self._stored("unit = ?", row, check=False)
        self._connection.execute("UPDATE results SET checksum = ? WHERE unit = ?", (stored.sum(), row))

    def _certify(self, unit: Unit, row: int) -> list[str]:
        """Check a new unit against its bounds, or the units that waited for them against new bounds."""
        _, setting = self._line(unit.line)
        metric = get_problem(unit.line.setting.id).metric(unit.line.setting.objective)
        pairs = [(row, unit.line.policy, unit.first, unit.episodes)]
        if unit.line.policy is None:
            pairs = self._connection.execute(
                "SELECT unit, policy, first, episodes FROM lines JOIN results USING (line) "
                "WHERE setting = ? AND policy IS NOT NULL AND status = 'done' AND seed = ? "
                "AND first < ? AND first + episodes > ?",
                (setting, unit.seed, unit.first + unit.episodes, unit.first),
            ).fetchall()
        failed = []
        for row, policy, first, episodes in pairs:
            bounds = self._bounds(setting, unit.seed, first, episodes)
            if bounds is None:
                continue
            ((names, values),) = (stored.outcome() for stored in self._stored("unit = ?", row))
            objective = values[:, names.index(metric.name)]
            try:
                for episode, (value, (bound, slack)) in enumerate(zip(objective, bounds, strict=True), first):
                    if np.isfinite(bound):
                        where = f"{policy}, seed {unit.seed}, episode {episode}"
                        checked_gap(metric, float(bound), float(value), float(slack), where)
            except RuntimeError as error:
                failed.append(str(error))
                run = self._connection.execute
                run("DELETE FROM outcomes WHERE unit = ?", (row,))
                run(
                    "UPDATE results SET status = 'failed', mean = NULL, error = ? WHERE unit = ?",
                    (f"{type(error).__name__}: {error}", row),
                )
            else:
                mean = float(bounds[:, 0].mean())
                self._connection.execute("UPDATE results SET bound = ? WHERE unit = ?", (mean, row))
            self._seal(row)
        return failed

    def _bounds(self, setting: int, seed: int, first: int, episodes: int) -> Floats | None:
        """Bound and slack of a span, [episodes, 2]; None if they are not all there yet."""
        found = np.full((episodes, 2), np.nan)
        left = episodes
        span = (setting, seed, first + episodes, first)
        which = "setting = ? AND policy IS NULL AND status = 'done' AND seed = ? "
        for stored in self._stored(which + "AND first < ? AND first + episodes > ?", *span):
            (_, values), start = stored.outcome(), stored.first
            low, high = max(start, first), min(start + stored.episodes, first + episodes)
            found[low - first : high - first] = values[low - start : high - start]
            left -= high - low
        return found if left == 0 else None

    # reading -----------------------------------------------------------------------------------

    def _stored(self, where: str, *given: Any, check: bool = True) -> Iterator[_Stored]:
        """The units for which an SQL condition holds, each checked when it is read."""
        rows = self._connection.execute(
            f"SELECT {', '.join(_Stored._fields)} FROM settings JOIN lines USING (setting) "
            "JOIN results USING (line) LEFT JOIN outcomes USING (unit) "
            f"WHERE {where} ORDER BY line, seed, first",
            given,
        )
        for row in rows:
            stored = _Stored(*row)
            if check:
                stored.check()
            yield stored

    def verify(self) -> tuple[int, list[str]]:
        """Check the whole file.

        Returns:
            the number of units, and what is wrong, one line each: with the file, or with units whose checksum
            does not fit.

        Raises:
            InvalidStore: if it is too damaged to be read.
        """
        with self._errors():
            run = self._connection.execute
            faults = [text for (text,) in run("PRAGMA integrity_check") if text != "ok"]
            faults += [f"{row[0]}: row {row[1]} has no {row[2]}" for row in run("PRAGMA foreign_key_check")]
            for stored in self._stored("TRUE", check=False):
                try:
                    stored.check()
                except ValueError as error:
                    faults.append(str(error))
            return run("SELECT count(*) FROM results").fetchone()[0], faults

    def spans(self, line: Line, status: str = "done") -> dict[int, list[tuple[int, int]]]:
        """For a line, seed -> (first, episodes) of each unit that is "done" or "failed".

        Raises:
            InvalidStore: if the line's label means something else in this store.
        """
        found: dict[int, list[tuple[int, int]]] = {}
        with self._errors():
            row = self._find(line)
            query = "SELECT seed, first, episodes FROM results WHERE line = ? AND status = ?"
            for seed, first, episodes in self._connection.execute(query, (row, status)):
                found.setdefault(seed, []).append((first, episodes))
        return found

    def results(self, line: Line, seed: int) -> Iterator[Result]:
        """The results of a line's units that are done, episode by episode.

        Of the times that :meth:`add` was told, each episode of a unit has an equal part.

        Raises:
            InvalidStore: if the line's label means something else in this store.
        """
        with self._errors():
            for stored in self._stored("line = ? AND status = 'done' AND seed = ?", self._find(line), seed):
                names, values = stored.outcome()
                seen = None if stored.observed is None else _decode(json.loads(stored.observed))
                own, cpu = stored.policy_seconds / len(values), stored.seconds / len(values)
                for episode, row in enumerate(values, stored.first):
                    found = {name: value for name, value in zip(names, row, strict=True) if value == value}
                    yield Result(episode, found, own, seen, cpu)

    def failed(self, code: str | None = None, lines: Iterable[Line] | None = None) -> list[dict[str, Any]]:
        """The units that failed.

        Args:
            code: version of the code; None: the newest.
            lines: those whose units are wanted; None: all.

        Returns:
            dicts with id, setting (its parameters), policy (None: the bounds), training_seed, seed, first,
            episodes, error; in the order in which they failed.
        """
        names = "id policy training_seed seed first episodes error".split()
        with self._errors():
            rows = list(self._stored("status = 'failed' AND code = ?", self._code(code)))
            wanted = {row.digest for row in rows} if lines is None else {line.digest for line in lines}
            return [
                {**{name: getattr(row, name) for name in names}, "setting": _mapping(row.parameters)}
                for row in sorted(rows, key=lambda row: (row.finished, row.unit))
                if row.digest in wanted
            ]

    def codes(self) -> list[str]:
        """The versions of the code that results are of, the newest first."""
        with self._errors():
            query = "SELECT code FROM settings GROUP BY code ORDER BY max(setting) DESC"
            return [str(code) for (code,) in self._connection.execute(query)]

    def _code(self, code: str | None) -> str:
        known = self.codes()
        if code is None:
            return known[0] if known else ""
        if code not in known:
            raise UnknownName("version of the code", code, known)
        return code

    def settings(self, code: str | None = None, id: str | None = None) -> list[Setting]:
        """The settings of one version of the code (None: the newest), in the order in which they came.

        Args:
            code: version of the code.
            id: environment id, which may leave out its namespace, or the name of a problem; None: all.

        Raises:
            UnknownName: for a version or an id that is not there.
        """
        columns = "problem, id, parameters, objective, better, code"
        with self._errors():
            query = f"SELECT {columns} FROM settings WHERE code = ? ORDER BY setting"
            rows = self._connection.execute(query, (self._code(code),)).fetchall()
            found = [Setting(p, i, _mapping(text), o, b, c) for p, i, text, o, b, c in rows]
        wanted = [s for s in found if id in (None, s.id, s.id.partition("/")[2], s.problem)]
        if id is not None and not wanted:
            raise UnknownName("environment id in the store", id, {setting.id for setting in found})
        return wanted

    def manifests(self) -> list[dict[str, Any]]:
        """The manifests of all sweeps, in the order in which they began."""
        with self._errors():
            rows = self._connection.execute("SELECT manifest FROM manifests ORDER BY rowid").fetchall()
            return [dict(json.loads(text)) for (text,) in rows]

    def frame(
        self, id: str | None = None, *, metrics: Sequence[str] | None = None, code: str | None = None
    ) -> pd.DataFrame:
        """Every episode's metrics, as :func:`~schedgym.evaluation.runner.compare` gives them.

        Args:
            id: as of :meth:`settings`.
            metrics: None: all; "bound", "gap" and "truncated" are some, too.
            code: version of the code; None: the newest.

        Returns:
            a tidy frame with the columns id, a column per parameter that has several values in an id, policy,
            training_seed (only if agents are there; missing for others), episode, seed, metric, value.

        Raises:
            UnknownName: for an id, metric or version that is not there.
        """
        pandas = require("pandas")
        settings = self.settings(code, id)
        groups = [[own for own in settings if own.id == id] for id in {own.id: 0 for own in settings}]
        swept = list(dict.fromkeys(name for group in groups for name in swept_names(group)))
        heads = ["id", *swept, "policy", "training_seed"]
        columns = [*heads, "episode", "seed", "metric", "value"]
        parts = [pandas.DataFrame(columns=columns)]
        known: dict[str, None] = {}
        for setting in settings:
            own = {name: setting.parameters.get(name) for name in swept}
            for line in self.contenders(setting):
                known |= dict.fromkeys(line.values.columns)
                parts.append(line.tidy({"id": setting.id, **own}, metrics))
        for name in metrics or ():
            if name not in known:
                raise UnknownName("metric", name, known)
        frame = pandas.concat(parts[1:] or parts, ignore_index=True)[columns]
        frame["training_seed"] = frame["training_seed"].astype("Int64")
        if frame["training_seed"].isna().all():
            del frame["training_seed"]
        return cast("pd.DataFrame", frame)

    def contenders(self, setting: Setting) -> Iterator[Contender]:
        """Yield the policies and trainings of a setting of :meth:`settings`, with their values."""
        with self._errors():
            where = "id = ? AND parameters = ? AND code = ? AND status = 'done'"
            rows = self._stored(where, setting.id, canonical(dict(setting.parameters)), setting.code)
            lines = [list(units) for _, units in itertools.groupby(rows, lambda row: row.line)]
            values = [_episodes(units) for units in lines]
            bounds = [
                own["bound"] for units, own in zip(lines, values, strict=True) if units[0].policy is None
            ]
            sign = sign_of(setting.better)
            for units, own in zip(lines, values, strict=True):
                policy, training_seed = units[0].policy, units[0].training_seed
                if policy is not None:
                    own["bound"] = bounds[0].reindex(own.index) if bounds else np.nan
                    own["gap"] = sign * (own[setting.objective] - own["bound"])
                    seconds = sum(unit.policy_seconds for unit in units)
                    yield Contender(policy, training_seed, _mapping(units[0].options), seconds, own)


@dataclasses.dataclass(frozen=True)
class Contender:
    """A policy, or one training of an agent, in one setting.

    Attributes:
        policy: its label.
        training_seed: training seed, for an agent.
        options: options of the policy; of an agent, its checksum.
        seconds: time that it took for the decisions of all its episodes [s].
        values: a row for each (seed, episode) of the index, a column for each metric, "bound" and "gap".
    """

    policy: str
    training_seed: int | None
    options: dict[str, Any]
    seconds: float
    values: pd.DataFrame

    def tidy(self, heads: Mapping[str, Any], metrics: Sequence[str] | None = None) -> pd.DataFrame:
        """A row for each value (of some metrics; None: all), with these values as further columns."""
        names = [name for name in self.values.columns if metrics is None or name in metrics]
        long = cast("pd.Series[float]", self.values[names].stack(future_stack=True)).dropna()
        tidy = long.rename_axis(["seed", "episode", "metric"]).rename("value").reset_index()
        whose = {**heads, "policy": self.policy, "training_seed": self.training_seed}
        return tidy.assign(**{name: [value] * len(tidy) for name, value in whose.items()})


def _episodes(units: Iterable[_Stored]) -> pd.DataFrame:
    """The values of units that are done, by (seed, episode)."""
    pandas = require("pandas")
    parts = []
    for _, group in itertools.groupby(units, lambda unit: unit.metrics):
        outcomes = [(unit, *unit.outcome()) for unit in group]
        seeds = [np.repeat(unit.seed, unit.episodes) for unit, _, _ in outcomes]
        episodes = [np.arange(unit.first, unit.first + unit.episodes) for unit, _, _ in outcomes]
        index = pandas.MultiIndex.from_arrays([np.concatenate(seeds), np.concatenate(episodes)])
        parts.append(pandas.DataFrame(np.concatenate([own for *_, own in outcomes]), index, outcomes[0][1]))
    return cast("pd.DataFrame", pandas.concat(parts))


def swept_names(settings: Sequence[Setting]) -> list[str]:
    """The parameters that have several values in settings of one id, a missing one being another value."""
    missing = object()
    found = []
    for name in dict.fromkeys(name for setting in settings for name in setting.parameters):
        values = [setting.parameters.get(name, missing) for setting in settings]
        if any(value != values[0] for value in values):
            found.append(name)
    return found


# what observers return -----------------------------------------------------------------------------


def _encode(value: Any) -> Any:
    """JSON data of what an observer returned."""
    if isinstance(value, np.ndarray):
        content = base64.b64encode(zlib.compress(value.tobytes())).decode()
        return {ARRAY: [value.dtype.str, value.shape, content]}
    if isinstance(value, Mapping):
        return {name: _encode(item) for name, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {TUPLE: [type(value).__module__, type(value).__name__], **_encode(value._asdict())}
    if isinstance(value, list):
        return [_encode(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        if ARRAY in value:
            kind, shape, content = value[ARRAY]
            return np.frombuffer(zlib.decompress(base64.b64decode(content)), kind).reshape(shape).copy()
        fields = {name: _decode(item) for name, item in value.items() if name != TUPLE}
        return _named_tuple(*value[TUPLE])(**fields) if TUPLE in value else fields
    return [_decode(item) for item in value] if isinstance(value, list) else value


def _named_tuple(module: str, name: str) -> Any:
    """Return a class of named tuples of this package; no other class, whatever a file says."""
    found = getattr(importlib.import_module(module), name) if module.startswith("schedgym.") else None
    if not (isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields")):
        raise ValueError(f"{module}.{name} is not a named tuple of schedgym")
    return found
