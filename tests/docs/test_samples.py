"""Each sample of code, on whatever page, is run by a test, or it is said here why not."""

from __future__ import annotations

import pytest

from tests.docs.asked import asked
from tests.docs.pages import pages
from tests.docs.samples import CODE, Sample, sample, samples

INSTALLS = "needs an index of packages; .ci/run installs the wheel with each extra"
NOT_RUN = {
    ("README.md", "pip install 'django-ratelimits[drf,redis]'"): INSTALLS,
    ("README.md", "bin/python manage.py demo"): "tests/test_demo.py starts it, and CI's schema",
    ("docs/client.md", "pip install"): INSTALLS,
    ("docs/metrics.md", "pip install"): INSTALLS,
    ("docs/openapi.md", "pip install"): INSTALLS,
    ("docs/tutorial.md", "$ pip install 'django-ratelimits[drf,redis]'"): INSTALLS,
    ("docs/client-queues.md", "raise self.retry"): "it shows what is wrong with it",
    ("docs/performance.md", "python -m benchmarks"): "it takes minutes; .ci/run tries a quick one",
    ("README.md", "bin/pytest"): "it is what runs this",
}


def code() -> list[Sample]:
    return [each for page in pages() for each in samples(page) if each.language in CODE]


def test_each_is_run_or_not_for_a_reason() -> None:
    told = {each for page, holding in NOT_RUN for each in samples(page) if holding in each.text}
    left = [f"{each.page}:{each.line}" for each in code() if each not in asked() | told]
    assert left == [], "no test asks for these by tests/docs/samples.py"


@pytest.mark.parametrize(("page", "holding"), NOT_RUN)
def test_what_is_not_run_is_there_and_nobody_runs_it(page: str, holding: str) -> None:
    text = sample(page, holding)
    (found,) = [each for each in samples(page) if each.text == text]
    assert found not in asked()


def test_every_block_says_what_it_is() -> None:
    """A block of code without a language would be no sample."""
    unnamed = [each for page in pages() for each in samples(page) if not each.language]
    words = ("import ", "$ ", "pip ", "manage.py ", "RATELIMITS")
    assert [each for each in unnamed if each.text.startswith(words)] == []
