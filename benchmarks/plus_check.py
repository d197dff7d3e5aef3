"""drf-ratelimit-plus against cache.get(), in an environment of its own; prints JSON.

Run by parts/plus.py, with the address and the process of the Redis server.
"""

from __future__ import annotations

import json
import sys
from itertools import cycle

from benchmarks.timing import Subject, race

GET = "cache.get"
ALGORITHMS = ("token_bucket", "fixed_window")


def main(url: str, pid: str, seconds: str) -> None:
    import django
    from django.conf import settings

    backend = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": url}
    settings.configure(
        SECRET_KEY="x",
        ALLOWED_HOSTS=["*"],
        CACHES={"default": backend},
        RATELIMIT_PLUS={"REDIS_URL": url},
        INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"],
    )
    django.setup()
    times = race(subjects(), float(seconds), [int(pid)])
    found = {name: vars(times.ratio(name, GET)) for name in ALGORITHMS}
    medians = {name: times.of(name).median for name in ALGORITHMS}
    print(json.dumps({"django": django.__version__, "ratios": found, "medians": medians}))


def subjects() -> list[Subject]:
    from django.core.cache import cache

    cache.set("benchmark", 12345, None)
    found = [Subject(GET, lambda: cache.get("benchmark"))]
    return found + [check(algorithm) for algorithm in ALGORITHMS]


def check(algorithm: str) -> Subject:
    from django.test import RequestFactory
    from drf_ratelimit_plus.throttles import rate_limit

    throttle = rate_limit(rate="1000000/m", algorithm=algorithm, key="ip", scope="bench")
    made = [RequestFactory().get("/", REMOTE_ADDR=f"192.0.2.{number}") for number in range(64)]
    turn = cycle(made)
    return Subject(algorithm, lambda: throttle().allow_request(next(turn), None))


if __name__ == "__main__":
    main(*sys.argv[1:])
