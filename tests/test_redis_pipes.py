"""Redis on an event loop: each caller gets its own reply, or is told that there is none."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, ReadOnlyError, RedisError, TimeoutError
from redis.retry import Retry

from ratelimits.algorithms import Operation
from ratelimits.stores.packing import in_protocol
from ratelimits.stores.redis import RedisStore
from ratelimits.stores.redis_pipes import NoPipe, Pipes
from tests.conformance.conftest import redis_only
from tests.conformance.stores import Calls, limit
from tests.faults.fakes import fake_redis
from tests.servers import RedisServer
from tests.waiting import wait_until

__all__ = ["redis_only"]


def pipes_to(port: int, timeout: float = 5) -> Pipes:
    pool = redis.ConnectionPool(
        port=port,
        socket_timeout=timeout,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
        driver_info=None,
    )
    return Pipes(pool.make_connection, timeout)


def port_of(url: str) -> int:
    return urlsplit(url).port or 0


def echo(number: int) -> bytes:
    return in_protocol("ECHO", f"{number}")


def clients_of(server: RedisServer) -> set[str]:
    """Those that are connected, but for who asks for that, or has asked before."""
    found = server.client().client_list()
    return {client["id"] for client in found if not client["cmd"].startswith("client")}


async def test_each_caller_has_its_own_reply(redis_server: RedisServer) -> None:
    pipes = pipes_to(redis_server.port)
    before = clients_of(redis_server)
    replies = await asyncio.gather(*(pipes.exchange(echo(n)) for n in range(500)))
    assert replies == [b"%d" % n for n in range(500)]
    assert len(clients_of(redis_server) - before) == 1


async def test_who_is_cancelled_leaves_no_reply_to_others(redis_server: RedisServer) -> None:
    pipes = pipes_to(redis_server.port)
    await pipes.exchange(echo(0))
    for _ in range(20):
        tasks = [asyncio.create_task(pipes.exchange(echo(n))) for n in range(50)]
        await asyncio.sleep(0)
        for task in tasks[::3]:
            task.cancel()
        replies = await asyncio.gather(*tasks, return_exceptions=True)
        for n, reply in enumerate(replies):
            assert isinstance(reply, asyncio.CancelledError) if n % 3 == 0 else reply == b"%d" % n


async def test_the_first_caller_may_give_up(redis_server: RedisServer) -> None:
    """The others wait for the same connection."""
    pipes = pipes_to(redis_server.port)
    tasks = [asyncio.create_task(pipes.exchange(echo(n))) for n in range(3)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    assert (await asyncio.gather(*tasks, return_exceptions=True))[1:] == [b"1", b"2"]


async def test_more_than_a_socket_takes_at_once(redis_server: RedisServer) -> None:
    pipes = pipes_to(redis_server.port)
    texts = [f"{n}" * 400_000 for n in range(8)]
    asked = [pipes.exchange(in_protocol("ECHO", text)) for text in texts]
    assert await asyncio.gather(*asked) == [text.encode() for text in texts]


async def test_errors_are_those_of_the_client(redis_server: RedisServer) -> None:
    pipes = pipes_to(redis_server.port)
    for command, kind in [("EVALSHA", "NoScriptError"), ("NONSENSE", "ResponseError")]:
        with pytest.raises(RedisError) as error:
            await pipes.exchange(in_protocol(command, "0" * 40, "0"))
        assert type(error.value).__name__ == kind
    assert await pipes.exchange(echo(1)) == b"1"


async def test_a_server_that_takes_too_long(redis_server: RedisServer) -> None:
    pipes = pipes_to(redis_server.port, 0.2)
    assert await pipes.exchange(echo(0)) == b"0"
    redis_server.stop()
    asked = [pipes.exchange(echo(n)) for n in range(10)]
    for error in await asyncio.gather(*asked, return_exceptions=True):
        assert isinstance(error, TimeoutError)
    redis_server.cont()
    # A new connection, on which no late reply comes.
    for n in range(100, 110):
        assert await pipes.exchange(echo(n)) == b"%d" % n


async def test_a_server_that_goes(redis_server: RedisServer) -> None:
    pipes = pipes_to(redis_server.port)
    assert await pipes.exchange(echo(0)) == b"0"
    redis_server.restart()
    with suppress(ConnectionError):
        await pipes.exchange(echo(1))
    assert await pipes.exchange(echo(2)) == b"2"


async def test_half_a_reply() -> None:
    replies = iter([b"$10\r\n12345", None])
    with fake_redis(lambda command: next(replies)) as url:
        pipes = pipes_to(port_of(url))
        asked = [pipes.exchange(echo(n)) for n in range(2)]
        for error in await asyncio.gather(*asked, return_exceptions=True):
            assert isinstance(error, ConnectionError)


async def test_a_connection_while_all_threads_of_the_loop_are_busy(
    redis_server: RedisServer,
) -> None:
    """A project may let them do what takes long, and no timeout would end the wait for one."""
    loop, release = asyncio.get_running_loop(), threading.Event()
    with ThreadPoolExecutor(1) as threads:
        loop.set_default_executor(threads)
        busy = loop.run_in_executor(None, release.wait)
        try:
            pipes = pipes_to(redis_server.port)
            assert await asyncio.wait_for(pipes.exchange(echo(1)), 20) == b"1"
        finally:
            release.set()
            await busy


async def test_a_server_that_hangs_up_at_once() -> None:
    """Nobody waits for ever for a connection that ended before it was used."""
    listener = socket.create_server(("127.0.0.1", 0))

    def hang_up(connection: Any) -> None:
        listener.accept()[0].close()

    with listener:
        pool = redis.ConnectionPool(
            port=listener.getsockname()[1],
            retry=Retry(NoBackoff(), 0),
            redis_connect_func=hang_up,
        )
        pipes = Pipes(pool.make_connection, 5)
        asked = [pipes.exchange(echo(n)) for n in range(5)]
        everyone = asyncio.gather(*asked, return_exceptions=True)
        for error in await asyncio.wait_for(everyone, 20):
            assert isinstance(error, ConnectionError)


@pytest.mark.parametrize("sent", [b"?what\r\n", b"+1\r\n+2\r\n"], ids=["nonsense", "two"])
async def test_a_reply_that_makes_no_sense(sent: bytes) -> None:
    """Nobody who asks later is given what is left of it."""

    with fake_redis(lambda c: sent if c[1] == b"0" else b"+%b\r\n" % c[1]) as url:
        pipes = pipes_to(port_of(url))
        with suppress(ConnectionError):
            await pipes.exchange(echo(0))
        await asyncio.sleep(0.01)
        assert await pipes.exchange(echo(7)) == b"7"


async def test_a_busy_loop_is_no_timeout(redis_server: RedisServer) -> None:
    """The reply was there all the time that the loop did something else."""
    pipes = pipes_to(redis_server.port, 0.2)
    await pipes.exchange(echo(0))
    task = asyncio.create_task(pipes.exchange(echo(1)))
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(_block, redis_server)
    assert await task == b"1"


def _block(server: RedisServer) -> None:
    """Until long after the timeout."""
    with server.connect() as client:
        for _ in range(3):
            client.execute_command("DEBUG", "SLEEP", "0.1")


async def test_who_was_demoted_is_asked_no_more() -> None:
    demoted = b"-READONLY You can't write against a read only replica.\r\n"
    with fake_redis(lambda command: demoted) as url:
        pipes = pipes_to(port_of(url))
        for _ in range(2):
            with pytest.raises(ReadOnlyError):
                await pipes.exchange(echo(0))
            found = [reference() for reference in pipes._pipes.values()]
            assert not any(pipe.is_open for pipe in found if pipe is not None)


def test_loops_that_end_leave_nothing_open(redis_server: RedisServer) -> None:
    """Each test of a project may have a loop of its own, and warnings for errors."""
    pipes = pipes_to(redis_server.port)

    async def some() -> list[Any]:
        return await asyncio.gather(*(pipes.exchange(echo(n)) for n in range(5)))

    for _ in range(10):
        assert asyncio.run(some()) == [b"%d" % n for n in range(5)]
    gc.collect()
    assert not pipes._pipes


async def test_to_end_those_of_all_loops(redis_server: RedisServer) -> None:
    """On the loop that this is called on, on one that runs elsewhere, and on one that rests."""
    pipes = pipes_to(redis_server.port)
    before = clients_of(redis_server)
    resting, elsewhere = asyncio.new_event_loop(), asyncio.new_event_loop()
    thread = threading.Thread(target=elsewhere.run_forever)
    try:
        await asyncio.to_thread(resting.run_until_complete, pipes.exchange(echo(1)))
        thread.start()
        asked = asyncio.run_coroutine_threadsafe(pipes.exchange(echo(2)), elsewhere)
        assert await asyncio.wrap_future(asked) == b"2"
        assert await pipes.exchange(echo(3)) == b"3"
        # What an earlier test has left may end meanwhile.
        assert len(clients_of(redis_server) - before) == 3
        pipes.close()
        wait_until(lambda: not clients_of(redis_server) - before)
        assert await pipes.exchange(echo(4)) == b"4"
    finally:
        elsewhere.call_soon_threadsafe(elsewhere.stop)
        await asyncio.to_thread(thread.join)
        for loop in (resting, elsewhere):
            loop.close()


async def test_where_loops_hear_of_no_sockets_threads_have_to_do(
    redis_only: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows."""

    def add_reader(*args: object) -> None:
        raise NotImplementedError

    calls = Calls(redis_only, limit("10/h"))
    assert calls.take(at=None).allowed
    monkeypatch.setattr(asyncio.get_running_loop(), "add_reader", add_reader)
    with pytest.raises(NoPipe):
        assert redis_only.pipes is not None
        await redis_only.pipes.exchange(echo(0))
    answer = await redis_only.arun(Operation.TAKE, calls.group, [1])
    assert (answer.allowed, redis_only.pipes) == (True, None)


async def test_a_script_that_was_forgotten(
    redis_only: RedisStore, redis_server: RedisServer
) -> None:
    calls = Calls(redis_only, limit("10/h"))
    assert calls.take(at=None).allowed
    redis_server.client().script_flush()
    for left in (8, 7):
        answer = await redis_only.arun(Operation.TAKE, calls.group, [1])
        assert answer.states[0] is not None
        assert 10 - answer.states[0].used - (answer.states[0].part > 0) == left
