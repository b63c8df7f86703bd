"""One connection to a server: scripts by digest, short timeouts, errors in the words of the store.

The client library's own retries are off: it would send a commit twice and wait for many seconds.
A call that fails says whether to try again (`StoreAway`), to wait for room (`StoreFull`), or to
stop (`StoreError`); the caller decides. Every call is bounded by TIMEOUT_S.

`run` names the run of the server that the connection is to: it changes with a restart and with a
failover, and is asked for whenever a connection is made. Of a cluster it names the run of each
server, so that it changes with a restart of any of them, in whatever order they are connected. A
server that says that it is a replica is left at once, because after a failover another one may
answer under the same address.

The module is long because every outcome of an exchange is handled here.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from .address import AddressRefused, password_of, require_safe
from .ages import Ages
from .errors import StoreAway, StoreError, StoreFull
from .sentinel import Sentinels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from .address import Address
    from .scripts import Script


_PIECE = 1000  # fields of one exchange


def hash_pieces(server: ServerConnection, key: str) -> Iterator[list[tuple[bytes, bytes]]]:
    """Yield the fields of a hash, in pieces; one that is changed meanwhile may come twice."""
    cursor = b"0"
    while True:
        cursor, found = server.ask("HSCAN", key, cursor, "COUNT", _PIECE)
        yield list(pairs(found))
        if int(cursor) == 0:
            return


def pairs(answer: Any) -> Iterator[tuple[bytes, Any]]:
    """Yield the pairs of an answer, whatever the client library has made of it."""
    if isinstance(answer, dict):
        yield from answer.items()
    elif answer and isinstance(answer[0], tuple | list):
        yield from answer
    else:
        yield from zip(answer[::2], answer[1::2], strict=True)


TIMEOUT_S = 2.0  # a call without an answer has failed after so long
_PIECE_BYTES = 16_384  # of commands that are sent at once
_encode = msgspec.msgpack.Encoder().encode

Command: TypeAlias = tuple[str | bytes | int | float, ...]
Payload: TypeAlias = dict[str, Any]
Call: TypeAlias = tuple[str, "Sequence[str]", Payload]  # of a script: its name, keys, payload

# By the first word of the server's error.
_AWAY = ("LOADING", "BUSY", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS")
_FULL = ("OOM", "MISCONF")
_REFUSED = ("NOAUTH", "WRONGPASS", "NOPERM")


class ScriptRefused(StoreError):  # noqa: N818 - the answer of a script
    """A script answered with an error of its own; `word` is its first word."""

    def __init__(self, word: str, message: str) -> None:
        super().__init__(message)
        self.word = word


class _Talk:
    """One exchange: the names of its commands, what is not sent of them, the answers so far."""

    __slots__ = ("_packed", "_size", "answers", "is_broken", "names")

    def __init__(self) -> None:
        self.names: list[str] = []
        self.answers: list[Any] = []
        self.is_broken = False  # answers are lost
        self._packed: list[bytes] = []
        self._size = 0

    def add(self, name: str, packed: Iterable[bytes]) -> int:
        """Add a command; return how many bytes are not sent."""
        self.names.append(name)
        for part in packed:
            self._packed.append(part)
            self._size += len(part)
        return self._size

    def piece(self) -> bytes:
        """Return what is not sent: it is from now on."""
        piece = b"".join(self._packed)
        self._packed.clear()
        self._size = 0
        return piece


class ServerConnection(ABC):
    """A connection to a server, made when it is first needed and again when it was lost."""

    def __init__(
        self,
        address: Address,
        *,
        timeout_s: float = TIMEOUT_S,
        mono: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        ages: Ages | None = None,
    ) -> None:
        self.address = address
        self.run = ""  # of the server, or of all of a cluster; "" before the first connection
        self._runs: dict[str, str] = {}  # of the servers of a cluster, by their address
        self.version = ""
        self.ahead_s = 0.0  # the server's clock, before our wall clock
        self.is_cluster = False  # several servers, a part of the keys each
        self.busy_s = 0.0  # waited for answers so far
        self._timeout_s = timeout_s
        self.mono = mono
        self.wall = wall
        self.ages = ages or Ages()
        self.place = address  # of the server itself, which sentinels may have named
        self.primary = ""  # of a server that is a replica: where its primary is
        self._sentinels = Sentinels(address) if address.sentinels else None
        self._client: Any = None
        self._link: Any = None  # the connection of the client, unless it is a cluster's
        self._talking: _Talk | None = None  # on the link, while its commands are made
        self._meanwhile: Callable[[], None] | None = None

    def __repr__(self) -> str:
        return f"<Server {self.address.server}>"

    @abstractmethod
    def script(self, name: str) -> Script:
        """Return a script by its name."""

    def meaning(self, word: str, text: str) -> StoreError:
        """Return the error that an answer of a script means, by its first word."""
        return ScriptRefused(word, f"{self.address.server} refused a command: {text}")

    # ------------------------------------------------------------------ calls

    def call(self, name: str, keys: Sequence[str], payload: Payload) -> Any:
        """Run a script, and return its answer.

        Raises:
            StoreAway: it is not known whether it ran.
            StoreError: it was refused.
        """
        (answer,) = self.calls([(name, keys, payload)])
        if isinstance(answer, StoreError):
            raise answer
        return answer

    def calls(self, calls: Iterable[Call]) -> list[Any]:
        """Run several scripts in one exchange; return their answers, errors among them.

        Each is sent as soon as it is made, so that the server works while others are made.

        Raises:
            StoreAway: it is not known which of them ran.
        """
        return self._run(calls, ())[0]

    @contextmanager
    def working(self, meanwhile: Callable[[], None] | None) -> Iterator[None]:
        """Call a function in every exchange, when all is sent and before answers are awaited.

        It must not use this connection. An exchange with a cluster does without it.
        """
        self._meanwhile, before = meanwhile, self._meanwhile
        try:
            yield
        finally:
            self._meanwhile = before

    def call_and_ask(self, call: Call, commands: Sequence[Command]) -> tuple[Any, list[Any]]:
        """Run a script, and then commands that change nothing: see `calls_and_ask`."""
        (answer,), others = self.calls_and_ask([call], commands)
        if isinstance(answer, StoreError):
            raise answer
        return answer, others

    def calls_and_ask(
        self, calls: Iterable[Call], commands: Sequence[Command]
    ) -> tuple[list[Any], list[Any]]:
        """Run scripts, and then commands that change nothing: in one exchange, if possible.

        Returns the answers of the scripts, errors among them, and those of the commands.

        Raises:
            StoreAway: it is not known which of the scripts ran.
            StoreError: a command was refused.
        """
        if self.is_cluster:  # they may be for several servers
            return self.calls(calls), self.ask_all(commands)
        ran, answers = self._run(calls, commands)
        return ran, self._sound(answers)

    def _run(
        self, calls: Iterable[Call], commands: Sequence[Command]
    ) -> tuple[list[Any], list[Any]]:
        names: list[str] = []
        sent: list[Command] = []

        def made() -> Iterator[Command]:
            for name, keys, payload in calls:
                names.append(name)
                digest = self.script(name).digest
                sent.append(("EVALSHA", digest, len(keys), *keys, _encode(payload)))
                yield sent[-1]
            yield from commands

        answers = self._exchange(made())
        missing = [at for at, each in enumerate(answers) if _is_unknown_script(each)]
        if missing:  # a server that was restarted has none
            for name in dict.fromkeys(names[at] for at in missing):
                self.ask("SCRIPT", "LOAD", self.script(name).text)
            again = self._exchange([*(sent[at] for at in missing), *commands])
            for at, answer in zip([*missing, *range(len(sent), len(answers))], again, strict=True):
                answers[at] = answer
        known = [self._known(each) for each in answers]
        return known[: len(sent)], known[len(sent) :]

    def ask(self, *command: str | bytes | float) -> Any:
        """Run a command that changes nothing, and return its answer."""
        (answer,) = self.ask_all([command])
        return answer

    def ask_all(self, commands: Sequence[Command]) -> list[Any]:
        """Run several commands that change nothing, in one exchange."""
        if not commands:
            return []
        return self._sound([self._known(each) for each in self._exchange(commands)])

    def _sound(self, answers: list[Any]) -> list[Any]:
        """Return answers; the first error among them is raised."""
        for answer in answers:
            if isinstance(answer, StoreError):
                raise answer
        return answers

    def change(self, *command: str | bytes | float) -> Any:
        """Run a command that changes something and may be repeated."""
        return self.ask(*command)

    def information(self, section: str) -> list[dict[str, str]]:
        """Return the answer of INFO; in a cluster, of every primary."""
        if not self.run:
            self.ask("PING")  # whether it is a cluster is known then
        if not self.is_cluster:
            return [info(self.ask("INFO", section))]
        answers = self._exchange([("INFO", section)], {"target_nodes": "primaries"})
        (nodes,) = [self._known(each) for each in answers]
        if isinstance(nodes, StoreError):
            raise nodes
        return [info(each) for each in nodes.values()]

    def saw(self, server_ms: int, asked_at: float) -> None:
        """Learn the difference of the clocks: the server's time, and our wall time before."""
        self.ahead_s = server_ms / 1000.0 - (asked_at + self.wall()) / 2.0

    def close(self) -> None:
        """Close the connection; closing twice is harmless."""
        client, self._client = self._client, None
        link, self._link = self._link, None
        if link is not None:
            link.disconnect()
        if client is not None:
            client.close()

    # ------------------------------------------------------------------ the connection

    def _exchange(
        self, commands: Iterable[Command], options: Mapping[str, str] | None = None
    ) -> list[Any]:
        """Send commands, and return their answers; errors of the server are among them."""
        import redis

        try:
            client = self._client or self._connect()
            if self.is_cluster:
                return self._exchange_in_cluster(client, list(commands), options)
            sent: list[Command] = []
            answers = self._talk(client, _noted(commands, sent))
            if any(_is_moved(each) for each in answers):
                return self._exchange_in_cluster(self._join_cluster(), sent, options)
        except redis.AuthenticationError as error:
            raise _refused(str(error), self.address) from None
        except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
            if self._sentinels is not None:
                self.close()  # they may name another server by now
            raise _gone_away(error, self.address) from error
        except redis.ResponseError as error:  # while connecting
            raise self._known(error) from error
        return answers

    def _talk(self, client: Any, commands: Iterable[Command]) -> list[Any]:
        """Send commands in pieces while they are made, and read the answers.

        The making of a command may need an exchange: then the answers to those before it are
        read first. The client library's own pipeline takes several times the CPU.
        """
        connection, outer = self._link, self._talking
        self._talking = talk = _Talk()
        try:
            if outer is not None:
                self._hear(client, connection, outer)
            for command in commands:
                if not talk.names and (outer is None or not outer.names):
                    self._be_connected(connection)
                if talk.add(str(command[0]), connection.pack_command(*command)) >= _PIECE_BYTES:
                    connection.send_packed_command((talk.piece(),))
            self._hear(client, connection, talk)
        except BaseException:
            connection.disconnect()  # answers may be under way
            if outer is not None:
                outer.is_broken = len(outer.answers) < len(outer.names)
            raise
        finally:
            self._talking = outer
        return talk.answers

    def _hear(self, client: Any, connection: Any, talk: _Talk) -> None:
        """Send what is not sent, and read all answers that are missing."""
        import redis

        if talk.is_broken:
            raise redis.ConnectionError("the connection was lost meanwhile")
        if rest := talk.piece():
            connection.send_packed_command((rest,))
        if self._meanwhile is not None:
            self._meanwhile()
        began = self.mono()
        try:
            for name in talk.names[len(talk.answers) :]:
                try:
                    talk.answers.append(client.parse_response(connection, name))
                except redis.ResponseError as error:
                    talk.answers.append(error)
        finally:
            self.busy_s += self.mono() - began

    def _be_connected(self, connection: Any) -> None:
        """Connect, unless the connection is there and nothing waits to be read from it."""
        import redis

        connection.connect()
        try:
            is_sound = not connection.can_read()
        except (redis.ConnectionError, redis.TimeoutError, OSError):
            is_sound = False
        if not is_sound:
            connection.disconnect()
            connection.connect()

    def _exchange_in_cluster(
        self, client: Any, commands: Sequence[Command], options: Mapping[str, str] | None
    ) -> list[Any]:
        import redis

        began = self.mono()
        try:
            if len(commands) == 1:
                try:
                    return [client.execute_command(*commands[0], **(options or {}))]
                except redis.ResponseError as error:
                    return [error]
            pipeline = client.pipeline(transaction=False)
            for command in commands:
                pipeline.execute_command(*command)
            answers: list[Any] = pipeline.execute(raise_on_error=False)
            for answer in answers:
                if isinstance(answer, redis.ConnectionError | redis.TimeoutError):
                    raise answer
        finally:
            self.busy_s += self.mono() - began
        return answers

    def _connect(self) -> Any:
        import redis

        if not self.is_cluster:
            options = self._options()
            if self._sentinels is not None:
                host, port = self._sentinels.primary(options)
                self.place = self.address._replace(host=host, port=port)
                options = self._options()
            client = redis.Redis(db=self.address.database, **options)
            pool = client.connection_pool
            self._link = pool.connection_class(**pool.connection_kwargs)
            with suppress(redis.ResponseError):  # the command itself will tell
                self._link.connect()
            self._client = client
        return self._join_cluster() if self.is_cluster else self._client

    def _join_cluster(self) -> Any:
        """Connect to all servers of a cluster: a command goes to the one that has its key."""
        from redis.cluster import RedisCluster

        self.close()
        self.is_cluster = True
        self._client = RedisCluster(dynamic_startup_nodes=False, **self._options())
        return self._client

    def _options(self) -> dict[str, Any]:
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        address = self.address
        password = password_of(address)
        require_safe(self.place, password)
        return {
            "host": self.place.host,
            "port": self.place.port,
            "username": address.user or None,
            "password": password,
            "socket_timeout": self._timeout_s,
            "socket_connect_timeout": self._timeout_s,
            "socket_keepalive": True,
            "retry": Retry(NoBackoff(), 1 if self.is_cluster else 0),
            "health_check_interval": 0,
            "protocol": 2,
            "redis_connect_func": self._connected,
            **tls_options(address),
        }

    def _connected(self, connection: Any) -> None:
        """Greet the server on a new connection, and ask which run of it this is."""
        if not self.is_cluster:  # the client of a cluster has greeted it already
            connection.on_connect()
        connection.send_command("INFO", "server")
        facts = info(connection.read_response())
        mode = facts.get("redis_mode") or facts.get("server_mode")
        self.is_cluster = self.is_cluster or mode == "cluster"
        self.run = facts.get("run_id", "")
        if self.is_cluster:
            self._runs[f"{connection.host}:{connection.port}"] = self.run
            self.run = " ".join(f"{node}={run}" for node, run in sorted(self._runs.items()))
        self.version = facts.get("valkey_version") or facts.get("redis_version", "")
        connection.send_command("INFO", "replication")
        facts = info(connection.read_response())
        is_replica = not self.is_cluster and facts.get("role", "master") != "master"
        self.primary = f"{facts['master_host']}:{facts['master_port']}" if is_replica else ""

    def _known(self, answer: Any) -> Any:
        """Return an answer, or the error of the store that an error of the server means."""
        if not isinstance(answer, Exception):
            return answer  # as nearly all are
        import redis

        if isinstance(answer, redis.ResponseError) and "READONLY" in _whole(answer):
            self.close()
            return StoreAway(self._words_of_replica())
        return self._error(answer) if isinstance(answer, redis.RedisError) else answer

    def _error(self, answer: Exception) -> StoreError:
        """Return the error of the store that an error of the server means."""
        address, text = self.address, _whole(answer)
        word = text.partition(" ")[0]
        if word in _AWAY:
            return StoreAway(f"{address.server} cannot be written to now: {text}")
        if word in _FULL:
            return StoreFull(f"{address.server} has no room: {text}")
        if word in _REFUSED:
            return _refused(text, address)
        if "DB index is out of range" in text:
            return AddressRefused(
                f"{address.server} has no database {address.database}: a server has those from 0 "
                "to 15 unless it is configured otherwise, and a cluster has 0 only"
            )
        return self.meaning(word, text)

    def _words_of_replica(self) -> str:
        shown = self.address.server
        if self._sentinels is not None:
            at = f"{self.place.host}:{self.place.port}"
            return f"{shown}: {at} is a replica now, the sentinels have yet to name its primary"
        where = f" ({self.primary})" if self.primary else ""
        return (
            f"{shown} is a replica, which cannot be written to: use the address of its "
            f"primary{where}, or of sentinels (redis+sentinel://)"
        )


def tls_options(address: Address) -> dict[str, Any]:
    """Return what the client library needs to know for TLS."""
    import os

    from .address import CA_FILE_VARIABLE

    if not address.is_tls:
        return {}
    options: dict[str, Any] = {"ssl": True, "ssl_cert_reqs": "required"}
    if ca_file := os.environ.get(CA_FILE_VARIABLE):
        options["ssl_ca_certs"] = ca_file
    return options


def info(text: bytes | str | dict[str, Any]) -> dict[str, str]:
    """Return the lines of an INFO answer by their names; the client library may have split it."""
    if isinstance(text, dict):
        return {name: str(value) for name, value in text.items()}
    lines = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    pairs = [line.partition(":") for line in lines.splitlines()]
    return {name: value.strip() for name, colon, value in pairs if colon}


def _noted(commands: Iterable[Command], sent: list[Command]) -> Iterator[Command]:
    for command in commands:
        sent.append(command)
        yield command


def _is_unknown_script(answer: object) -> bool:
    if not isinstance(answer, Exception):
        return False  # as nearly all are
    import redis

    # Some versions of the client take the first word off, and raise a class of its own.
    return isinstance(answer, redis.exceptions.NoScriptError) or (
        isinstance(answer, redis.ResponseError) and str(answer).startswith("NOSCRIPT")
    )


def _is_moved(answer: object) -> bool:
    import redis

    return isinstance(answer, redis.ResponseError) and (
        isinstance(answer, redis.exceptions.MovedError) or str(answer).startswith("MOVED ")
    )


def _whole(error: Exception) -> str:
    """Return the server's error with its first word, which the client library takes off."""
    import redis

    text = str(error)
    words: dict[type[Exception], str] = {
        redis.exceptions.BusyLoadingError: "LOADING",
        redis.exceptions.ReadOnlyError: "READONLY",
        redis.exceptions.OutOfMemoryError: "OOM",
        redis.exceptions.NoPermissionError: "NOPERM",
        redis.exceptions.ClusterDownError: "CLUSTERDOWN",
        redis.exceptions.MasterDownError: "MASTERDOWN",
        redis.exceptions.TryAgainError: "TRYAGAIN",
        redis.exceptions.AuthenticationError: "NOAUTH",
    }
    for kind, word in words.items():
        if isinstance(error, kind) and not text.startswith(word):
            return f"{word} {text}"
    return text


def _refused(text: str, address: Address) -> StoreError:
    return AddressRefused(
        f"{address.server} refused us: {text.rstrip('.?')}. Check the user and the password "
        "(MANNERLY_REDIS_URL or --redis-password-file), and what the user may do"
    )


def _gone_away(error: Exception, address: Address) -> StoreError:
    import redis

    if isinstance(error, redis.exceptions.BusyLoadingError):
        return StoreAway(f"{address.server} is loading its data")
    reason = str(error) or type(error).__name__
    if reason.startswith("Connection closed by server"):
        reason = "it closed the connection. Is this a Redis or Valkey server, and does it want TLS?"
    return StoreAway(f"{address.server} cannot be reached: {reason}")
