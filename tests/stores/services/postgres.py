"""A PostgreSQL server for tests: its own cluster, never the system's."""

from __future__ import annotations

import os
import pwd
import re
import secrets
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.stores.services.servers import Account, Missing, Server, start

SUPERUSER = "loadmaster"
DEBIAN = Path("/usr/lib/postgresql")
INSTALL = "apt-get install --no-install-recommends postgresql"


@dataclass(frozen=True, slots=True)
class Postgres:
    """A running PostgreSQL and the password of its superuser."""

    server: Server
    password: str

    def url(self, database: str, driver: str = "postgresql+psycopg") -> str:
        """Give the URL of a database, as SQLAlchemy reads it."""
        return f"{driver}://{SUPERUSER}:{self.password}@127.0.0.1:{self.server.port}/{database}"

    def create(self, database: str) -> str:
        """Create an empty database and give its URL."""
        self._run(f'CREATE DATABASE "{database}"')
        return self.url(database)

    def drop(self, database: str) -> None:
        """Drop a database, whoever is still connected to it."""
        self._run(f'DROP DATABASE "{database}" WITH (FORCE)')

    def _run(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.url("postgres", "postgresql"), autocommit=True) as connection:
            connection.execute(statement.encode())


def start_postgres() -> Postgres:
    """Start PostgreSQL on a new cluster.

    Nothing is forced to disk: what the operating system was given survives any death of a process, and no
    test takes away the power.

    Raises:
        Missing: PostgreSQL or its driver is not installed.
        NotStarted: It does not come up.
    """
    try:
        import psycopg
    except ImportError as error:
        raise Missing(
            f"{error.name} is not installed; install it with: pip install 'loadmaster[postgres]'"
        ) from None
    binaries = find_binaries(os.environ.get("PATH", "").split(os.pathsep), DEBIAN)
    account = unprivileged()
    password = secrets.token_hex(16)  # the superuser may run programs: not for everyone on this machine

    def prepare(folder: Path, port: int) -> Sequence[str]:
        data, secret = str(folder / "data"), folder / "password"
        secret.write_text(password, encoding="ascii")
        if account is not None:
            os.chown(secret, account.user, account.group)
        make = [
            *(str(binaries / "initdb"), "-D", data, "-U", SUPERUSER, "--pwfile", str(secret)),
            *("--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync"),
        ]
        run = [str(binaries / "postgres"), "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", str(folder)]
        for setting in ("fsync=off", "full_page_writes=off", "max_connections=200", "timezone=UTC"):
            run += ["-c", setting]
        # In one command, so that the guard ends whichever of the two is running.
        return ["sh", "-c", f"{shlex.join(make)} && exec {shlex.join(run)}"]

    def ready(port: int) -> bool:
        url = f"postgresql://{SUPERUSER}:{password}@127.0.0.1:{port}/postgres"
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    # SIGQUIT: PostgreSQL's immediate shutdown, which leaves a cluster that is not needed again.
    return Postgres(start("postgres", prepare, ready, stop="SIGQUIT", account=account), password)


def find_binaries(path: Iterable[str], debian: Path) -> Path:
    """Find the folder of PostgreSQL's server programs: on the path, or where Debian keeps the newest.

    Raises:
        Missing: They are in none of these.
    """
    versions = sorted(debian.glob("*/bin"), key=lambda found: _version(found.parent.name), reverse=True)
    for folder in (*(Path(entry) for entry in path if entry), *versions):
        if all(os.access(folder / name, os.X_OK) for name in ("initdb", "postgres")):
            return folder
    raise Missing(f"PostgreSQL's server is neither on PATH nor in {debian}; install it with: {INSTALL}")


def unprivileged() -> Account | None:
    """Give the account to run PostgreSQL as, which refuses to run as root; nobody special if we are not."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(found.pw_uid, found.pw_gid)
    raise Missing("PostgreSQL refuses to run as root, and there is no user postgres or nobody: add one")


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))
