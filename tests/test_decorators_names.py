"""Whose bucket a limit is counted in: no two views share one unless they are told to."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import RedirectView, TemplateView

from ratelimits.decorators import ratelimit
from ratelimits.naming import name_of
from tests.doors import left, request
from tests.views import FORMS, hello, limited_view

once = ratelimit("1/d", by="ip")


@method_decorator(once, name="dispatch")
class Dispatched(View):
    def get(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse()


@method_decorator(once, name="dispatch")
class DispatchedToo(View):
    def get(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse()


@once
class Whole(View):
    def get(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse()


class Elsewhere:
    @once
    class Whole(View):
        def get(self, request: HttpRequest) -> HttpResponse:
            return HttpResponse()


class Base(View):
    @once
    def get(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse()

    @once
    def post(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse()


class First(Base):
    pass


class Second(Base):
    pass


class Inherited(Dispatched):
    pass


def worded(request: HttpRequest, word: Any = "") -> HttpResponse:
    return HttpResponse(word)


def made(number: int) -> Any:
    def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse(str(number))

    return view


class Objects:
    def one(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse()

    def two(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse()


class Callable1:
    def __call__(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse()


class Callable2(Callable1):
    pass


def passes(view: Any, method: str = "get") -> bool:
    response = view(request(method))
    assert response.status_code in (200, 302, 405, 429)
    return bool(response.status_code != 429)


PAIRS: dict[str, tuple[Any, Any]] = {
    "dispatch": (Dispatched.as_view(), DispatchedToo.as_view()),
    "inherited dispatch": (Dispatched.as_view(), Inherited.as_view()),
    "classes of one name": (Whole.as_view(), Elsewhere.Whole.as_view()),
    "inherited method": (First.as_view(), Second.as_view()),
    "as_view": (once(View.as_view()), once(RedirectView.as_view(url="/"))),
    "as_view with other text": (
        once(RedirectView.as_view(url="/a")),
        once(RedirectView.as_view(url="/b")),
    ),
    "partial": (once(partial(worded, word="a")), once(partial(worded, word="b"))),
    "partial of list": (
        once(partial(worded, word=["a", 1])),
        once(partial(worded, word=["a", 2])),
    ),
    "partial of class": (
        once(partial(worded, word=Callable1)),
        once(partial(worded, word=Callable2)),
    ),
    "partial and function": (once(partial(worded, word="a")), once(worded)),
    "functions": (once(hello), once(worded)),
    "bound methods": (once(Objects().one), once(Objects().two)),
    "objects": (once(Callable1()), once(Callable2())),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_two_views_have_two_buckets(pair: str) -> None:
    first, second = PAIRS[pair]
    assert passes(first)
    assert not passes(first)
    assert passes(second)
    assert not passes(second)


def test_two_methods_have_two_buckets() -> None:
    view = First.as_view()
    assert passes(view)
    assert passes(view, "post")
    assert not passes(view)


def test_views_that_share_a_name_share_the_bucket() -> None:
    login = ratelimit("2/d", by="ip", name="login")

    class Login(View):
        @login
        def get(self, request: HttpRequest) -> HttpResponse:
            return HttpResponse()

    views = [login(hello), login(worded), Login.as_view()]
    assert [passes(view) for view in views] == [True, True, False]


def test_one_name_under_two_kinds_of_callers_are_two_buckets() -> None:
    """Case 8: an address, a header and a key of the same text are not one caller."""
    options = {"name": "shared", "rate": "1/d"}
    same = "192.0.2.1"
    views = [
        ratelimit(by=by, **options)(hello)  # type: ignore[arg-type]
        for by in ("ip", "header:X-Key", "header:X-Other", lambda request: same)
    ]
    fields = {"HTTP_X_KEY": same, "HTTP_X_OTHER": same, "REMOTE_ADDR": same}
    for _ in range(2):
        answers = [view(request(**fields)).status_code for view in views]
    assert answers == [429] * 4
    assert {view(request(**fields)).headers["RateLimit-Remaining"] for view in views} == {"0"}
    fresh = ratelimit(by="header:X-Third", **options)(hello)  # type: ignore[arg-type]
    assert passes(fresh)


def test_parts_of_names_do_not_run_together() -> None:
    """Case 8."""
    first = ratelimit("1/d", by=lambda request: "c", name="a:b")(hello)
    second = ratelimit("1/d", by=lambda request: "b:c", name="a")(hello)
    assert passes(first)
    assert passes(second)
    assert not passes(second)


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("function", "view"),
        ("class", "Page"),
        ("dispatch", "Page"),
        ("get", "Page.get"),
        ("method", "Page.get"),
        ("own dispatch", "Own"),
        ("as_view", "Page"),
        ("partial", "view"),
        ("bound method", "Pages.page"),
        ("object", "Pages"),
    ],
)
def test_published_name(form: str, name: str) -> None:
    response = limited_view(form, once)(request())
    assert list(left(response)) == [name]


@pytest.mark.parametrize("form", FORMS)
def test_published_name_of_ones_own(form: str) -> None:
    response = limited_view(form, ratelimit("1/d", by="ip", name="own"))(request())
    assert left(response) == {"own": 0}


def test_a_name_is_the_same_in_every_process() -> None:
    """No address in memory is part of it."""
    views = [
        partial(worded, word=Callable1()),
        partial(worded, word=worded),
        TemplateView.as_view(extra_context={"a": object()}),
        Callable1(),
        Objects().one,
        made(1),
    ]
    for view in views:
        assert "0x" not in name_of(view).ident
        assert name_of(view).ident.startswith((__name__, "django.views.generic"))


def decorated_twice(upper: Any, lower: Any, between: Any) -> list[Any]:
    """A view with two limits, in every way that one can write it."""

    class OnDispatch(View):
        get = staticmethod(hello)

    class OnMethod(View):
        @upper
        @between
        @lower
        def get(self, request: HttpRequest) -> HttpResponse:
            return HttpResponse()

    class Nested(View):
        @method_decorator(upper)
        @method_decorator(lower)
        def get(self, request: HttpRequest) -> HttpResponse:
            return HttpResponse()

    class Below(View):
        @lower
        def get(self, request: HttpRequest) -> HttpResponse:
            return HttpResponse()

    listed_class: Any = type("Listed", (OnDispatch,), {"__module__": __name__})
    listed = method_decorator([upper, lower], name="dispatch")
    return [
        upper(between(lower(hello))),
        upper(between(lower(partial(worded, word="x")))),
        upper(lower(type("OnClass", (OnDispatch,), {"__module__": __name__}))).as_view(),
        listed(listed_class).as_view(),
        upper(lower(OnDispatch.as_view())),
        OnMethod.as_view(),
        Nested.as_view(),
        upper(Below.as_view()),
        upper(type("OnBoth", (Below,), {"__module__": __name__})).as_view(),
    ]


@pytest.mark.parametrize("between", [csrf_exempt, lambda view: view], ids=["between", "direct"])
@pytest.mark.parametrize("index", range(9))
def test_two_limits_on_one_view(index: int, between: Any) -> None:
    """Case 45: three a minute and thirty a day, each with a bucket of its own."""
    minute, day = ratelimit("3/h", by="ip"), ratelimit("30/d", by="ip")
    view = decorated_twice(day, minute, between)[index]
    assert sorted(left(view(request())).values()) == [2, 29]
    answers = [view(request()) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    body = answers[-1].content.decode()
    assert '"detail": "Limit is 3 requests per hour' in body


def test_limits_directly_above_each_other_are_one_take() -> None:
    """Case 45: refused by one, nothing is taken from the other."""
    view = ratelimit("30/d", by="ip", name="day")(ratelimit("3/h", by="ip", name="hour")(hello))
    answers = [view(request()) for _ in range(8)]
    assert [answer.status_code for answer in answers] == [200] * 3 + [429] * 5
    assert left(answers[-1]) == {"day": 27, "hour": 0}


def test_the_same_plan_twice_is_counted_once_at_the_highest_cost() -> None:
    """Rule 10, for one take and for two."""
    cheap, dear = (ratelimit("9/d", by="ip", name="same", cost=cost) for cost in (2, 3))
    views = [
        cheap(dear(hello)),
        dear(cheap(hello)),
        cheap(csrf_exempt(dear(hello))),
        dear(csrf_exempt(cheap(hello))),
    ]
    for number, view in enumerate(views):
        assert left(view(request(REMOTE_ADDR=f"192.0.2.{number}"))) == {"same": 6}
