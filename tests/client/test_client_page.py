"""The samples of docs/client.md, as the modules of a package, do what the page says."""

from __future__ import annotations

import asyncio
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from ratelimits.client import RetryLater, upstream
from ratelimits.effects import drive
from ratelimits.models import Upstream
from tests.client.vendor import Reply, Vendor
from tests.docs.samples import modules

SAMPLES = modules("docs/client.md")
KEYS = ["VENDOR_KEY", "OPENAI_KEY", "ANTHROPIC_KEY", "STRIPE_KEY", "GITHUB_TOKEN", "MODEL"]

Sample = Callable[[str], Any]

pytestmark = pytest.mark.django_db(transaction=True)


class Refused(Exception):
    """As SDKs raise it: `held` are attributes that hold the answer."""

    def __init__(self, **held: Any) -> None:
        super().__init__("429")
        self.__dict__.update(held)


class Sdk:
    """Somebody's client library, which notes how it was made and refuses when told to."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.options = options
        self.refusal: Exception | None = None

    def __getattr__(self, name: str) -> Sdk:
        return self

    def __call__(self, *args: Any, **options: Any) -> str:
        if self.refusal is not None:
            raise self.refusal
        return "done"


class LanguageSdk(Sdk):
    """One that sends by an httpx client, and takes what that raises for a fault of the network."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        try:
            return self.options["http_client"].post(self.options["base_url"]).text
        except Exception as error:
            raise ConnectionError from error


def stand_ins(vendor: Vendor) -> dict[str, SimpleNamespace]:
    """The modules of SDKs, as far as the page needs them."""
    inner = {"base_url": vendor.url}
    languages = {
        "DefaultHttpxClient": httpx.Client,
        "APIConnectionError": ConnectionError,
        "OpenAI": lambda **options: LanguageSdk(**options, **inner),
        "Anthropic": lambda **options: LanguageSdk(**options, **inner),
    }
    return {
        "openai": SimpleNamespace(**languages),
        "anthropic": SimpleNamespace(**languages),
        "stripe": SimpleNamespace(StripeClient=Sdk),
        "github": SimpleNamespace(Github=Sdk, Auth=SimpleNamespace(Token=str)),
        "boto3": SimpleNamespace(client=Sdk),
        "botocore": SimpleNamespace(),
        "botocore.config": SimpleNamespace(Config=dict),
        "botocore.exceptions": SimpleNamespace(ClientError=Refused),
        "shop.vendors_sdk": SimpleNamespace(vendor_sdk=Sdk(), Unavailable=Refused),
    }


@pytest.fixture
def sample(
    vendor: Vendor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> Iterator[Sample]:
    """Gives a module of the page, for whom the vendor is one of the test's."""
    (tmp_path / "shop").mkdir()
    for name, text in SAMPLES.items():
        here = text.replace("https://api.vendor.example", vendor.url)
        (tmp_path / "shop" / f"{name}.py").write_text(here)
    for key in KEYS:
        setattr(settings, key, "a key")
    for name, module in stand_ins(vendor).items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.syspath_prepend(tmp_path)
    yield lambda name: importlib.import_module(f"shop.{name}")
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        del sys.modules[name]


def add(slug: str, **values: Any) -> None:
    row = Upstream.objects.create(slug=slug, **values)
    row.limits.create(name="calls", rate="100/s")


def calls_of(slug: str, credential: str = "a key") -> int:
    """How many passed the gate."""
    return drive(upstream(slug, credential).gate().look()).calls


def is_blocked(slug: str, credential: str = "a key") -> bool:
    return drive(upstream(slug, credential).gate().look()).blocked_for > 3000


def close(*clients: Any) -> None:
    for client in clients:
        client.close()


def test_each_sample_is_tried() -> None:
    assert set(re.findall(r"sample\(\"(\w+)\"\)", Path(__file__).read_text())) == set(SAMPLES)


def test_the_row_and_the_session(sample: Sample, vendor: Vendor) -> None:
    sample("upstreams")
    shop = sample("vendor")
    vendor.will(Reply(body=b"[1]"))
    assert shop.list_orders() == [1]
    assert vendor.received[0].headers["authorization"] == "Bearer a key"
    assert calls_of("vendor") == 1
    close(shop.session)


def test_in_the_name_of_a_customer(sample: Sample, vendor: Vendor) -> None:
    add("vendor")
    Upstream.objects.get().limits.create(name="customer", rate="1/h", per="tenant")
    session_for = sample("customers").session_for
    for key in ("acme", "bakery"):
        with session_for(SimpleNamespace(key=key)) as session:
            session.get(vendor.url)
            with pytest.raises(RetryLater) as caught:
                session.get(vendor.url)
            assert caught.value.limit == "customer"


def test_sessions_and_clients(sample: Sample, vendor: Vendor) -> None:
    add("vendor")
    session, clients = sample("sessions").session, sample("clients")
    assert session.get(f"{vendor.url}/orders").status_code == 200
    assert clients.client.get("/orders").status_code == 200

    async def call() -> int:
        async with clients.aclient as client:
            return (await client.get("/orders")).status_code

    assert asyncio.run(call()) == 200
    assert calls_of("vendor") == 3
    close(session, clients.client, sample("vendor").session)


def test_a_proxy(sample: Sample, vendor: Vendor) -> None:
    add("vendor")
    name = "http://proxy.example:3128"
    text = SAMPLES["proxied"].replace(name, vendor.url)
    names: dict[str, Any] = {"__name__": "shop.proxied", "__package__": "shop"}
    assert name in SAMPLES["proxied"]
    sample("vendor")
    exec(text, names)
    assert names["client"].get("http://elsewhere.example/orders").status_code == 200
    assert vendor.received[0].path == "http://elsewhere.example/orders"
    mounted = httpx.Client(mounts={vendor.url: names["api"].transport(names["inner"])})
    assert mounted.get(vendor.url).status_code == 200
    assert calls_of("vendor") == 2
    close(names["client"], mounted, sample("vendor").session)
    assert sample("proxied").client is not names["client"]


def test_any_other_client(sample: Sample) -> None:
    add("vendor")
    sdk = sample("sdk")
    assert sdk.export(7) == "done"
    sdk.vendor_sdk.refusal = Refused(answer_headers={"Retry-After": "3600"})
    with pytest.raises(Refused):
        sdk.sync()
    assert is_blocked("vendor")
    with pytest.raises(RetryLater):
        sdk.export(7)
    close(sample("vendor").session)


def test_sdks_with_a_client_of_ours(sample: Sample, vendor: Vendor) -> None:
    add("openai")
    add("anthropic")
    shop = sample("assistants")
    for sdk in (shop.gpt, shop.claude):
        assert sdk.options["max_retries"] == 0
    assert (shop.gpt(), shop.ask("Why?")) == ("well", "well")
    vendor.will(Reply(429, {"Retry-After": "3600"}))
    with pytest.raises(RetryLater):
        shop.ask("Why?")
    assert (calls_of("openai"), calls_of("anthropic")) == (1, 2)
    close(*(sdk.options["http_client"] for sdk in (shop.gpt, shop.claude)))


def test_sdks_in_a_slot(sample: Sample) -> None:
    add("stripe")
    add("github", retry_statuses="403")
    add("dynamodb")
    payments, repositories, tables = sample("payments"), sample("repositories"), sample("tables")
    assert payments.payments.options == {"max_network_retries": 0}
    assert repositories.hub.options["retry"] is None
    assert tables.tables.options["config"] == {"retries": {"total_max_attempts": 1}}
    told = {"Retry-After": "3600"}
    answer = {"HTTPHeaders": told, "HTTPStatusCode": 400}
    error = {"Error": {"Code": "ThrottlingException"}, "ResponseMetadata": answer}
    refusals: list[tuple[str, str, Sdk, Callable[[], Any], dict[str, Any]]] = [
        ("stripe", "a key", payments.payments, payments.customers, {"http_status": 429}),
        ("github", "a key", repositories.hub, lambda: repositories.user("x"), {"status": 403}),
        ("dynamodb", "", tables.tables, tables.names, {"response": error}),
    ]
    for slug, key, sdk, call, held in refusals:
        assert call() == "done"
        sdk.refusal = Refused(headers=told, **held)
        with pytest.raises(Refused):
            call()
        assert is_blocked(slug, key)


def test_later(sample: Sample, vendor: Vendor) -> None:
    add("vendor")
    exports = sample("exports")
    vendor.will(Reply(body=b"[]"), Reply(429, {"Retry-After": "3600"}))
    assert exports.export_or_say_when() == {"orders": []}
    told = exports.export_or_say_when()
    assert (told["limit"], told["seconds"]) == ("", 3600)
    assert "Retry-After: 3600" in told["reason"]
    close(sample("vendor").session)
