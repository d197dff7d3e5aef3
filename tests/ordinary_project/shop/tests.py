from unittest import mock

from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.exceptions import ImproperlyConfigured
from django.test import SimpleTestCase
from rest_framework.test import APIClient, APIRequestFactory, APITestCase, force_authenticate
from rest_framework.throttling import AnonRateThrottle, SimpleRateThrottle, UserRateThrottle
from rest_framework.views import APIView

from shop.throttles import BurstRateThrottle, LoginThrottle, SustainedRateThrottle
from shop.views import ping


class ThrottleTests(APITestCase):
    def setUp(self):
        cache.clear()
        self.user = User.objects.create_user("ada", password="x")
        self.other = User.objects.create_user("bob", password="x")

    def statuses(self, url, times, **headers):
        return [self.client.get(url, headers=headers).status_code for _ in range(times)]

    def test_anonymous_callers_have_the_rate_of_the_settings(self):
        self.assertEqual(self.statuses("/ping/", 5), [200] * 4 + [429])

    def test_users_have_another_one(self):
        self.client.force_authenticate(self.user)
        self.assertEqual(self.statuses("/ping/", 7), [200] * 6 + [429])

    def test_users_are_counted_apart(self):
        self.client.force_authenticate(self.user)
        self.statuses("/ping/", 7)
        self.client.force_authenticate(self.other)
        self.assertEqual(self.statuses("/ping/", 1), [200])

    def test_views_share_the_rate_of_a_user(self):
        self.client.force_authenticate(self.user)
        self.statuses("/ping/", 5)
        self.assertEqual(self.statuses("/users/", 2), [200, 429])

    def test_the_last_proxy_says_who_calls(self):
        forged = [f"6.6.6.{number}, 1.2.3.4" for number in range(5)]
        codes = [self.statuses("/ping/", 1, x_forwarded_for=each)[0] for each in forged]
        self.assertEqual(codes, [200] * 4 + [429])
        self.assertEqual(self.statuses("/ping/", 1, x_forwarded_for="1.2.3.5"), [200])

    def test_burst_and_sustained(self):
        self.client.force_authenticate(self.user)
        now = 1_700_000_000
        with mock.patch.object(UserRateThrottle, "timer", lambda self: now):
            self.assertEqual(self.statuses("/users/recent/", 3), [200] * 3)
            now += 60
            self.assertEqual(self.statuses("/users/recent/", 2), [200] * 2)
            now += 60
            with self.assertLogs("shop", "WARNING") as logs:
                self.assertEqual(self.statuses("/users/recent/", 1), [429])
            self.assertIn(f"throttle_sustained_{self.user.pk}", logs.output[0])
            now += 86400
            self.assertEqual(self.statuses("/users/recent/", 1), [200])

    def test_the_wait_is_told(self):
        self.client.force_authenticate(self.user)
        with mock.patch.object(BurstRateThrottle, "timer", return_value=1_700_000_000):
            self.statuses("/users/staff/", 3)
            response = self.client.get("/users/staff/")
        self.assertEqual(response.status_code, 429)
        self.assertLessEqual(int(response["Retry-After"]), 60)
        self.assertEqual(response.data["error"], "slow down")
        self.assertAlmostEqual(response.data["seconds"], 60, delta=1)

    def test_staff_are_not_throttled(self):
        self.user.is_staff = True
        self.client.force_authenticate(self.user)
        self.assertEqual(self.statuses("/users/staff/", 5), [200] * 5)

    def test_names_are_counted_by_name(self):
        def tried(**data):
            return self.client.post("/login/", data, format="json").status_code

        self.assertEqual([tried(username="ada") for _ in range(3)], [200, 200, 429])
        self.assertEqual(tried(username="ADA"), 429)
        self.assertEqual(tried(username="bob"), 200)
        self.assertEqual([tried() for _ in range(5)], [200] * 5)

    def test_scoped_and_what_is_left(self):
        self.client.force_authenticate(self.user)
        self.assertEqual(self.client.get("/reports/").data, {"left": 0})
        self.assertEqual(self.client.get("/reports/").status_code, 429)

    def test_refused_before_throttles_is_not_counted(self):
        self.assertEqual(self.statuses("/reports/", 3), [401] * 3)

    def test_open_views_are_open(self):
        self.assertEqual(self.statuses("/open/", 8), [200] * 8)

    def test_clearing_the_cache_starts_anew(self):
        self.statuses("/ping/", 5)
        cache.clear()
        self.assertEqual(self.statuses("/ping/", 1), [200])

    def test_another_rate_for_a_test(self):
        self.client.force_authenticate(self.user)
        with mock.patch.object(BurstRateThrottle, "rate", "1/min", create=True):
            self.assertEqual(self.statuses("/users/staff/", 2), [200, 429])

    def test_another_rate_by_a_patched_method(self):
        self.client.force_authenticate(self.user)
        with mock.patch("shop.throttles.BurstRateThrottle.get_rate", return_value="2/day"):
            self.assertEqual(self.statuses("/users/staff/", 3), [200, 200, 429])

    @mock.patch.dict(SimpleRateThrottle.THROTTLE_RATES, {"anon": "1/min"})
    def test_another_rate_by_the_dictionary(self):
        self.assertEqual(self.statuses("/ping/", 2), [200, 429])

    @mock.patch.object(AnonRateThrottle, "allow_request", return_value=True)
    def test_switched_off_by_a_patch(self, allow_request):
        # The rate of users is by address for those who are not authenticated.
        self.assertEqual(self.statuses("/ping/", 7), [200] * 6 + [429])


class UnitTests(SimpleTestCase):
    """Throttles by themselves, without a database."""

    def setUp(self):
        cache.clear()

    def request(self, user=None):
        request = APIRequestFactory().post("/login/")
        request.user = user or mock.Mock(is_authenticated=True, pk=1)
        request.data = {"username": "Ada"}
        return request

    def test_a_key(self):
        self.assertEqual(LoginThrottle().get_cache_key(self.request(), None), "throttle_login_ada")
        self.assertEqual(
            BurstRateThrottle().get_cache_key(self.request(), None), "throttle_burst_1"
        )

    def test_a_throttle_is_asked_again_and_again(self):
        request, view = self.request(), APIView()
        throttle = LoginThrottle()
        allowed = [throttle.allow_request(request, view) for _ in range(3)]
        self.assertEqual(allowed, [True, True, False])
        self.assertGreater(throttle.wait(), 0)
        self.assertFalse(LoginThrottle().allow_request(request, mock.Mock()))
        self.assertFalse(LoginThrottle().allow_request(request, None))

    def test_its_numbers(self):
        throttle = SustainedRateThrottle()
        self.assertEqual((throttle.num_requests, throttle.duration), (5, 86400))
        throttle.allow_request(self.request(), None)
        self.assertEqual(len(throttle.history), 1)

    def test_no_rate_is_an_error(self):
        elsewhere = mock.patch.object(BurstRateThrottle, "scope", "nowhere")
        with elsewhere, self.assertRaises(ImproperlyConfigured):
            BurstRateThrottle()

    def test_one_request_for_several_calls(self):
        request = APIRequestFactory().get("/ping/")
        force_authenticate(request, mock.Mock(is_authenticated=True, pk=5))
        codes = [ping(request).status_code for _ in range(7)]
        self.assertEqual(codes, [200] * 6 + [429])

    def test_another_client_another_address(self):
        for address in ("10.0.0.1", "10.0.0.2"):
            client = APIClient(REMOTE_ADDR=address)
            codes = [client.get("/ping/").status_code for _ in range(5)]
            self.assertEqual(codes, [200] * 4 + [429])
