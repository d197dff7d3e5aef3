"""What may be at the address of Redis instead of it. It does not mend itself."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from tests.servers import RedisServer, free_port
from tests.settings import redis_caches

from .fakes import fake_redis
from .faults import Caches, Fault, fault

STRANGERS: dict[str, Fault] = {}


@fault(STRANGERS)
def a_closed_port(server: RedisServer) -> Iterator[Caches]:
    yield redis_caches(f"redis://127.0.0.1:{free_port()}/0")


@fault(STRANGERS)
def no_socket(server: RedisServer) -> Iterator[Caches]:
    yield redis_caches(f"unix://{server.directory}/nothing.sock")


@fault(STRANGERS)
def accepts_and_never_answers(server: RedisServer) -> Iterator[Caches]:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield redis_caches(f"redis://127.0.0.1:{silent.getsockname()[1]}/0")


def _answers(name: str, reply: bytes | None) -> None:
    @contextmanager
    def made(server: RedisServer) -> Iterator[Caches]:
        with fake_redis(lambda command: reply) as url:
            yield redis_caches(url)

    STRANGERS[name] = made


_answers("still loading", b"-LOADING Redis is loading the dataset in memory\r\n")
_answers("no cluster", b"-CLUSTERDOWN The cluster is down\r\n")
_answers(
    "full, as Redis 6 says it",
    b"-ERR Error running script (call to f_0): @user_script:9: @user_script: 9: "
    b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
)
_answers("closed before the reply", None)
_answers("a reply that never ends", b"*8\r\n:0\r\n:17")
_answers("garbage", b"HTTP/1.1 400 Bad Request\r\n\r\n")


@fault(STRANGERS)
def reset_within_the_reply(server: RedisServer) -> Iterator[Caches]:
    lasting = threading.local()

    def answer(command: list[bytes]) -> bytes | None:
        lasting.calls = getattr(lasting, "calls", 0) + 1
        # Half of an answer at once; the next read finds the connection gone.
        return b"*8\r\n:0\r\n" if lasting.calls == 1 else None

    with fake_redis(answer) as url:
        yield redis_caches(url)


@fault(STRANGERS)
def no_such_name(server: RedisServer) -> Iterator[Caches]:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise socket.gaierror(-2, "Name or service not known")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", fail)
        yield redis_caches("redis://redis.invalid:6379/0")


class Credentials(redis.CredentialProvider):
    """Of a service of the project's, which is away itself."""

    def get_credentials(self) -> tuple[str, str]:
        raise RuntimeError("no credentials today")


@fault(STRANGERS)
def no_credentials(server: RedisServer) -> Iterator[Caches]:
    options = {"credential_provider": Credentials()}
    yield redis_caches(server.url, CONNECTION_POOL_KWARGS=options)
