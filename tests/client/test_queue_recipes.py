"""The samples of docs/client-queues.md, as the modules of a package, do what the page says."""

from __future__ import annotations

import hashlib
import hmac
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import django
import dramatiq
import pytest
import rq
from celery import Celery, current_app
from celery.exceptions import Retry as Parked
from django.core.cache import cache
from django.test import RequestFactory
from dramatiq.brokers.stub import StubBroker
from freezegun import freeze_time
from huey import MemoryHuey

from ratelimits.client.errors import RetryLater
from tests.client.vendor import Reply, Vendor
from tests.docs.samples import modules
from tests.servers import RedisServer

SAMPLES = modules("docs/client-queues.md")
SECRET = b"secret"

Sample = Callable[[str], Any]


class Orders(ModuleType):
    """Refuses so many calls."""

    def __init__(self) -> None:
        super().__init__("shop.vendor")
        self.refusals, self.delay, self.calls = 1, 0.2, 0

    def send_order(self, order: int) -> str:
        self.calls += 1
        if self.calls <= self.refusals:
            raise RetryLater(self.delay, "daily")
        return f"sent {order}"


@pytest.fixture
def orders() -> Orders:
    return Orders()


@pytest.fixture
def sample(
    orders: Orders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> Iterator[Sample]:
    """Gives a module of the page."""
    settings.TASKS = {"default": {"BACKEND": "tests.client.deferring.Later"}}
    (tmp_path / "shop").mkdir()
    for name, text in SAMPLES.items():
        if django.VERSION < (6, 0):
            text = text.replace("django.tasks", "django_tasks")
        (tmp_path / "shop" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "shop.vendor", orders)
    yield lambda name: importlib.import_module(f"shop.{name}")
    for module in [name for name in sys.modules if name.startswith(("shop", "huey.contrib"))]:
        del sys.modules[module]


def test_each_sample_is_tried() -> None:
    tried = set(re.findall(r"sample\(.(\w+).\)", Path(__file__).read_text()))
    assert tried == set(SAMPLES)


@pytest.fixture
def alone() -> Iterator[Celery]:
    """What tasks that are shared by all apps belong to meanwhile."""
    before = current_app._get_current_object()
    app = Celery("recipes", broker="memory://", backend="cache+memory://")
    yield app
    app.close()
    before.set_current()


def test_celery(sample: Sample, orders: Orders, alone: Celery) -> None:
    push = sample("tasks").push
    assert (push.max_parks, push.longest_park) == (1000, 900)
    push.push_request(called_directly=False, id="x", args=(7,), kwargs={})
    with pytest.raises(Parked):
        push.run(7)
    assert push.run(7) == "sent 7"
    push.pop_request()
    for call in (push, lambda order: push.apply((order,), throw=True)):
        orders.calls = 0
        with pytest.raises(RetryLater):
            call(7)


def test_django_tasks(sample: Sample, orders: Orders) -> None:
    push = sample("jobs").push
    with freeze_time() as clock:
        push.enqueue(7)
        (first,) = push.get_backend().run_due()
        clock.tick(orders.delay)
        (second,) = push.get_backend().run_due()
    assert first.return_value == {"parked": second.id}
    assert second.return_value == "sent 7"


@pytest.fixture
def stub() -> Iterator[StubBroker]:
    """A queue of dramatiq's, and who works it."""
    broker = StubBroker()
    broker.emit_after("process_boot")
    dramatiq.set_broker(broker)
    worker = dramatiq.Worker(broker, worker_timeout=10, worker_threads=1)
    worker.start()
    yield broker
    worker.stop()
    broker.close()


def test_dramatiq(sample: Sample, orders: Orders, stub: StubBroker) -> None:
    push = sample("actors").push
    push.send_with_options(args=(7,), retries=500)
    stub.join(push.queue_name, timeout=60_000)
    assert (orders.calls, stub.dead_letters) == (2, [])
    # Other errors end.
    assert not push.options["retry_when"](20, ValueError())


@pytest.fixture
def rq_worker(redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> rq.SimpleWorker:
    # They are pytest's here.
    monkeypatch.setattr(rq.SimpleWorker, "_install_signal_handlers", lambda self: None)
    connection = redis_server.client()
    return rq.SimpleWorker([rq.Queue(connection=connection)], connection=connection)


def test_rq(sample: Sample, orders: Orders, rq_worker: rq.SimpleWorker) -> None:
    orders.delay = 90.5
    (queue,) = rq_worker.queues
    job = queue.enqueue(sample("rq_jobs").push, 7)
    rq_worker.work(burst=True)
    due = queue.scheduled_job_registry.get_scheduled_time(job) - datetime.now(timezone.utc)
    assert 30 < due.total_seconds() <= 91
    queue.enqueue_job(job)
    rq_worker.work(burst=True)
    assert job.return_value() == "sent 7"


def test_huey(sample: Sample, orders: Orders, settings: Any) -> None:
    orders.delay = 90.5
    settings.HUEY = queue = MemoryHuey()
    result = sample("huey_tasks").push(7)
    queue.execute(queue.dequeue())
    (parked,) = queue.scheduled()
    due = parked.eta.replace(tzinfo=timezone.utc) - datetime.now(timezone.utc)
    assert 30 < due.total_seconds() <= 90.5
    assert parked.retries == 0
    queue.execute(parked, parked.eta)
    assert result.get() == "sent 7"


@pytest.mark.parametrize("library", ["stamina", "tenacity"])
def test_without_a_queue(sample: Sample, orders: Orders, library: str) -> None:
    orders.refusals, orders.delay = 3, 0.01
    push = (sample("nightly") if library == "stamina" else sample("weekly")).push
    assert push(7) == "sent 7"
    orders.calls, orders.delay = 0, 601
    with pytest.raises(RetryLater):
        push(7)
    assert orders.calls == 1


@pytest.mark.django_db(transaction=True)
def test_two_customers(
    sample: Sample, vendor: Vendor, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.VENDOR_KEY, settings.VENDOR_URL = "key", vendor.url
    vendor.will(*[Reply(body=b"{}")] * 100)
    monkeypatch.delitem(sys.modules, "shop.vendor")
    models: Any = ModuleType("shop.models")
    models.Order = SimpleNamespace(objects=SimpleNamespace(get=order_of))
    monkeypatch.setitem(sys.modules, "shop.models", models)
    sample("upstreams")
    send_order = sample("vendor").send_order
    for customer, calls, limit in (("acme", 60, "customer"), ("bakery", 40, "account")):
        for _ in range(calls):
            assert send_order(customer) == {}
        with pytest.raises(RetryLater) as caught:
            send_order(customer)
        assert (caught.value.limit, caught.value.delay > 2) == (limit, True)


def order_of(pk: str) -> SimpleNamespace:
    return SimpleNamespace(tenant_key=pk, data={})


class Events(ModuleType):
    """What was handled; the broker of the first one is away."""

    def __init__(self) -> None:
        super().__init__("shop.events")
        self.handle, self.handled, self.is_away = self, list[str](), True

    def delay(self, event: str) -> None:
        if self.is_away:
            self.is_away = False
            raise ConnectionError
        self.handled.append(event)


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Events:
    settings.WEBHOOK_SECRET = SECRET
    events = Events()
    monkeypatch.setitem(sys.modules, "shop.events", events)
    cache.clear()
    return events


def delivered(view: Callable[..., Any], id: str, secret: bytes, address: str = "10.0.0.1") -> Any:
    signature = hmac.new(secret, id.encode(), hashlib.sha256).hexdigest()
    headers = {"x-signature": signature, "x-delivery": id}
    request = RequestFactory().post("/", id, "text/plain", headers=headers, REMOTE_ADDR=address)
    return view(request)


@pytest.mark.usefixtures("still")
def test_webhooks(sample: Sample, events: Events) -> None:
    view = sample("webhooks").webhook
    with pytest.raises(ConnectionError):
        delivered(view, "one", SECRET)
    assert [delivered(view, id, SECRET).status_code for id in ("one", "one", "two")] == [202] * 3
    assert events.handled == ["one", "two"]


@pytest.mark.usefixtures("still")
def test_who_forges_webhooks_uses_up_nothing_of_the_vendor(sample: Sample, events: Events) -> None:
    view, events.is_away = sample("webhooks").webhook, False
    forged = [delivered(view, "forged", b"guessed") for _ in range(31)]
    assert [answer.status_code for answer in forged] == [401] * 30 + [429]
    assert int(forged[-1]["Retry-After"]) > 0
    taken = [delivered(view, str(number), SECRET) for number in range(501)]
    assert [answer.status_code for answer in taken] == [202] * 500 + [429]
    assert taken[-1]["Retry-After"] == "1"
    assert delivered(view, "forged", b"guessed", "10.0.0.2").status_code == 401
