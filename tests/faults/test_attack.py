"""What an operator does in the middle of an attack acts at once, in every worker."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from demo_project.data import ADMIN, PASSWORD
from demo_project.serving import HOST
from tests.servers import RedisServer
from tests.waiting import wait_until

from .serving import Answer, Gunicorn, busy, gunicorn

WORKERS = 3
ATTACKERS = [f"198.51.100.{number}" for number in range(1, 9)]
# What each address may have from then on.
QUOTA = 15


class Operator:
    """Somebody with a browser, who is served by whichever worker comes first."""

    def __init__(self, port: int) -> None:
        self.root = f"http://{HOST}:{port}/admin/"
        self.session = requests.Session()
        self.post("login/", username=ADMIN, password=PASSWORD)

    def post(self, page: str, **values: object) -> None:
        url = self.root + page
        assert self.session.get(url).ok
        values["csrfmiddlewaretoken"] = self.session.cookies["csrftoken"]
        response = self.session.post(url, values, allow_redirects=False)
        assert response.status_code == 302, response.text

    def switch(self, mode: str) -> None:
        self.post("ratelimits/modeswitch/add/", mode=mode, seconds=900, reason="An attack.")


@pytest.fixture
def served(server: RedisServer, prepared: Path) -> Iterator[Gunicorn]:
    options = {"STORE_TIMEOUT": 2, "TRUSTED_PROXIES": 1, "CATALOG_TTL": 3600}
    with gunicorn(prepared, server.url, "demo_project.wsgi", workers=WORKERS, **options) as served:
        yield served


def ask_everywhere(served: Gunicorn, address: str, times: int = 24) -> list[Answer]:
    """Until each worker has answered, and so many times at least."""
    answers: list[Answer] = []
    while len(answers) < times or len({answer.worker for answer in answers}) < WORKERS:
        answers.append(served.ask("acme", address=address))
        assert len(answers) < 1000
    return answers


def test_a_limit_for_addresses_and_a_switch_of_the_mode(served: Gunicorn) -> None:
    operator = Operator(served.port)
    with busy(served, "acme", 2, ATTACKERS) as answers:
        wait_until(lambda: len({answer.worker for answer in answers}) == WORKERS)
        assert {answer.status for answer in answers} == {200}
        limit = {"name": "addresses", "rate": f"{QUOTA}/d", "per": "address", "mode": "enforce"}
        operator.post("ratelimits/servicelimit/add/", **limit)
        saved = time.time()
        new = Counter(answer.status for answer in ask_everywhere(served, "203.0.113.7"))
        wait_until(lambda: len(answers) and answers[-1].status == 429)
    after = [answer.status for answer in answers if answer.asked > saved]
    # As many as there are units, whichever workers are asked, and not one more.
    assert new[200] == QUOTA
    assert after.count(200) <= QUOTA * len(ATTACKERS)
    everywhere(served, operator)


def everywhere(served: Gunicorn, operator: Operator) -> None:
    """The attackers have nothing left; what is switched is so in each worker from then on."""
    attacker = ATTACKERS[0]
    operator.session.headers["X-Forwarded-For"] = "203.0.113.8"
    # It is another one of them that has used up all of its units first.
    wait_until(lambda: served.ask("acme", address=attacker).status == 429)
    assert {answer.status for answer in ask_everywhere(served, attacker)} == {429}
    operator.switch("shadow")
    # Those who were just refused are so for a moment more, without asking.
    time.sleep(0.3)
    passed = ask_everywhere(served, attacker)
    assert {answer.status for answer in passed} == {200}
    assert not any("RateLimit" in answer.headers for answer in passed)
    operator.switch("settings")
    assert {answer.status for answer in ask_everywhere(served, attacker)} == {429}
    operator.switch("off")
    time.sleep(0.3)
    assert {answer.status for answer in ask_everywhere(served, attacker)} == {200}
    operator.switch("settings")
    is_back: set[int] = set()

    def refuse_again() -> bool:
        answer = served.ask("acme", address=attacker)
        (is_back.add if answer.status == 429 else is_back.discard)(answer.worker)
        return len(is_back) == WORKERS

    wait_until(refuse_again)
    assert {answer.status for answer in ask_everywhere(served, attacker)} == {429}
