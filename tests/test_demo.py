from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from drf_spectacular.validation import validate_schema

from demo_project.tenants import KEYS
from tests.demo import ROOT, Browser, Demo
from tests.servers import RedisServer

SEARCH = "/api/search?q=tea"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    demo = Demo(tmp_path_factory.mktemp("demo"))
    yield demo
    demo.end()


def set_rate(demo: Demo, plan: str, limit: str, rate: str) -> None:
    """As an operator does it: log in, open the plan, change one field, save."""
    browser = Browser(demo)
    browser.log_in("admin", "demo")
    pages = [f"/admin/ratelimits/plan/{number}/change/" for number in (1, 2, 3)]
    page = next(page for page in pages if browser.form(page)["slug"] == plan)
    fields = browser.form(page)
    row = next(name for name, value in fields.items() if name.endswith("-name") and value == limit)
    fields[row.replace("-name", "-rate")] = rate
    answer = browser.post(page, {**fields, "_save": "Save"})
    assert (answer.status, answer.headers.get("Location")) == (302, "/admin/ratelimits/plan/")


def explained(demo: Demo, pasted: str) -> str:
    """What the admin says of a receipt."""
    browser = Browser(demo)
    browser.log_in("admin", "demo")
    page = "/admin/ratelimits/tenant/receipt/"
    return browser.post(page, {**browser.form(page), "receipt": pasted}).body


def test_it_prints_what_to_try(demo: Demo) -> None:
    assert f"http://127.0.0.1:{demo.port}{SEARCH}" in demo.printed
    assert "/admin/ (admin / demo)" in demo.printed
    assert "/admin/ratelimits/tenant/receipt/" in demo.printed
    for key in KEYS.values():
        assert key in demo.printed


def test_a_caller_can_ask_for_all_limits(demo: Demo) -> None:
    answer = demo.request("/rate_limit", X_API_Key=KEYS["clinic"])
    told = json.loads(answer.body)
    assert (answer.status, told["available"]) == (200, True)
    assert told["limits"]


def test_the_schema_tells_of_limits(demo: Demo) -> None:
    answer = demo.request("/schema")
    assert not any("ratelimit" in name.lower() for name in answer.headers)
    described = json.loads(answer.body)
    validate_schema(described)
    search = described["paths"]["/api/search"]["post"]
    assert search["x-ratelimit"] == [{"scope": "search", "cost": 5}]
    assert {"200", "400", "429", "503"} == set(search["responses"])


def test_answers_publish_the_plan_until_the_eleventh_is_refused(demo: Demo) -> None:
    answers = [demo.request(SEARCH, X_API_Key=KEYS["anonymous"]) for _ in range(11)]
    assert [answer.status for answer in answers] == [200] * 10 + [429]
    first, refused = answers[0], answers[10]
    assert json.loads(first.body)["found"] == ["black tea", "green tea"]
    assert '"requests";q=10;w=60' in first.headers["RateLimit-Policy"]
    assert '"requests";r=9;t=' in first.headers["RateLimit"]
    assert first.headers["RateLimit-Limit"] == "10"
    assert first.headers["RateLimit-Remaining"] == "9"
    assert int(first.headers["RateLimit-Reset"]) > 0
    assert "Retry-After" not in first.headers
    assert '"requests";r=0;t=' in refused.headers["RateLimit"]
    assert 1 <= int(refused.headers["Retry-After"]) <= 6
    assert refused.headers["Content-Type"] == "application/problem+json"
    problem = json.loads(refused.body)
    assert problem["status"] == 429
    assert problem["detail"] == "Limit is 10 requests per minute for this key."
    assert problem["violated-policies"] == ["requests"]
    assert problem["retry_after"] == int(refused.headers["Retry-After"])
    assert "“Anonymous (anonymous)” was refused on" in explained(demo, refused.body)


def test_an_edit_in_the_admin_changes_the_next_answer(demo: Demo) -> None:
    key = KEYS["acme"]
    before = [demo.request(SEARCH, X_API_Key=key).status for _ in range(11)]
    assert before == [200] * 10 + [429]
    try:
        set_rate(demo, "free", "requests", "20/m")
        after = demo.request(SEARCH, X_API_Key=key)
        assert after.status == 200
        assert '"requests";q=20;w=60' in after.headers["RateLimit-Policy"]
        set_rate(demo, "free", "requests", "5/m")
        assert demo.request(SEARCH, X_API_Key=key).status == 429
    finally:
        set_rate(demo, "free", "requests", "10/m")


def test_a_tenant_searches_for_many_at_five_units_and_orders(demo: Demo) -> None:
    headers = {"X_API_Key": KEYS["bakery"], "Content_Type": "application/json"}
    many = demo.request("/api/search", "POST", '{"queries": ["rice", "tea"]}', **headers)
    assert json.loads(many.body) == {"rice": ["rice"], "tea": ["black tea", "green tea"]}
    assert '"search";r=15;' in many.headers["RateLimit"]
    order = '{"product": "rice", "quantity": 2}'
    assert demo.request("/api/orders", "POST", order, **headers).status == 201
    assert len(json.loads(demo.request("/api/orders", **headers).body)) == 1
    other = demo.request("/api/orders", X_API_Key=KEYS["clinic"])
    assert json.loads(other.body) == []
    exported = demo.request("/export", **headers)
    assert exported.body.splitlines()[1].startswith("rice,2,")
    assert '"requests";' in exported.headers["RateLimit"]


def test_a_made_up_key_is_no_tenant(demo: Demo) -> None:
    answers = [demo.request("/api/version", X_API_Key=f"made-up-{n}") for n in range(11)]
    assert [answer.status for answer in answers] == [200] * 10 + [429]
    assert "for this address" in answers[10].body


@pytest.mark.parametrize("path", ["/fixed", "/sliding", "/bucket"])
def test_algorithms_count_ten_of_a_second_for_each_caller(demo: Demo, path: str) -> None:
    for name in ("one", "two"):
        answer = demo.request(path, X_API_Key=f"{path}-{name}")
        assert answer.headers["RateLimit-Policy"].endswith(";q=10;w=1")
        assert answer.headers["RateLimit-Remaining"] == "9"


def test_global_is_one_bucket(demo: Demo) -> None:
    statuses = [demo.request("/global", X_API_Key=f"caller-{n}").status for n in range(60)]
    assert {*statuses} <= {200, 429}
    assert statuses.count(200) < 60


def test_pages_have_their_styles(demo: Demo) -> None:
    page = demo.request("/")
    assert page.status == 200 and KEYS["acme"] in page.body
    assert "style=" not in page.body
    for path in ("/static/demo/demo.css", "/static/admin/css/base.css"):
        assert demo.request(path).status == 200


def ask_both_workers(demo: Demo) -> tuple[int, int, float]:
    """How many of many requests passed, of how many, in how many seconds."""
    statuses: list[int] = []
    workers: set[str] = set()
    started = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        # The second worker may still be starting.
        while len(workers) < 2 and len(statuses) < 6000:
            asked = [pool.submit(demo.request, SEARCH, X_API_Key=KEYS["acme"]) for _ in range(60)]
            for answer in (future.result() for future in asked):
                statuses.append(answer.status)
                workers.add(answer.headers["X-Demo-Worker"])
    assert len(workers) == 2
    return statuses.count(200), len(statuses), time.monotonic() - started


def test_workers_share_one_count_in_the_bundled_valkey(tmp_path: Path) -> None:
    demo = Demo(tmp_path, "--workers", "2")
    try:
        passed, _, seconds = ask_both_workers(demo)
        # Exactly 10, unless it took so long that there was one more after 6 s.
        assert 10 <= passed <= 10 + seconds / 6
        set_rate(demo, "free", "requests", "1000000/m")
        passed, asked, _ = ask_both_workers(demo)
        assert passed == asked
    finally:
        code = demo.end()
    assert (code, demo.is_gone()) == (0, True), demo.printed
    assert demo.printed.endswith("Stopped.\n")


def test_workers_count_in_the_redis_that_is_named(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    demo = Demo(tmp_path, REDIS_URL=redis_server.url)
    try:
        assert demo.request(SEARCH, X_API_Key=KEYS["acme"]).status == 200
        assert redis_server.client().dbsize() > 0
        assert "the Redis at REDIS_URL" in demo.printed
    finally:
        demo.end()


def test_ctrl_c_ends_everything_and_a_second_run_leaves_edits_alone(tmp_path: Path) -> None:
    demo = Demo(tmp_path)
    set_rate(demo, "free", "requests", "7/m")
    assert "is new" in demo.printed
    assert demo.end(signal.SIGINT, group=True) == 0
    assert demo.is_gone()
    assert "Traceback" not in demo.printed
    demo = Demo(tmp_path)
    try:
        assert "is as you left it" in demo.printed
        answer = demo.request(SEARCH, X_API_Key=KEYS["acme"])
        assert '"requests";q=7;w=60' in answer.headers["RateLimit-Policy"]
    finally:
        demo.end()


def test_a_port_in_use_is_said_at_once(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, error = run_in_vain(tmp_path, "--port", str(port))
    assert code == 1
    assert error == f"CommandError: Port {port} is in use. Choose another one with --port.\n"
    assert not (tmp_path / "demo.sqlite3").exists()


def test_a_redis_that_is_away_is_said_at_once(tmp_path: Path) -> None:
    code, error = run_in_vain(tmp_path, "--port", "0", REDIS_URL="redis://127.0.0.1:1/0")
    assert code == 1
    assert error.startswith("CommandError: REDIS_URL names no Redis that answers: ")


def run_in_vain(directory: Path, *options: str, **env: str) -> tuple[int, str]:
    variables = {**os.environ, "DEMO_DATABASE": str(directory / "demo.sqlite3"), **env}
    variables.pop("DJANGO_SETTINGS_MODULE", None)
    finished = subprocess.run(
        [sys.executable, "manage.py", "demo", *options],
        cwd=ROOT, env=variables, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return finished.returncode, finished.stderr


def test_migrations_are_complete(tmp_path: Path) -> None:
    variables = {**os.environ, "DEMO_DATABASE": str(tmp_path / "demo.sqlite3")}
    variables.pop("DJANGO_SETTINGS_MODULE", None)
    command = [sys.executable, "manage.py", "makemigrations", "--check", "--dry-run"]
    finished = subprocess.run(
        command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stdout
