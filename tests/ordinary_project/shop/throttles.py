import logging

from rest_framework.throttling import ScopedRateThrottle, SimpleRateThrottle, UserRateThrottle

logger = logging.getLogger("shop")


class BurstRateThrottle(UserRateThrottle):
    scope = "burst"


class SustainedRateThrottle(UserRateThrottle):
    scope = "sustained"

    def throttle_failure(self):
        logger.warning("Throttled %s", self.key)
        return super().throttle_failure()


class LoginThrottle(SimpleRateThrottle):
    """By the name that is tried, whoever tries it."""

    scope = "login"

    def get_cache_key(self, request, view):
        name = request.data.get("username")
        if not name:
            return None
        return self.cache_format % {"scope": self.scope, "ident": name.lower()}


class StaffExemptThrottle(BurstRateThrottle):
    def allow_request(self, request, view):
        if request.user.is_staff:
            return True
        return super().allow_request(request, view)


class ReportThrottle(ScopedRateThrottle):
    """Tells how many are left, as snippets on the web do."""

    def allow_request(self, request, view):
        allowed = super().allow_request(request, view)
        view.left = max(0, self.num_requests - len(self.history))
        return allowed
