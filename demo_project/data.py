"""What a new database begins with: plans, tenants, a limit of the service, and the admin."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from ratelimits.models import Plan, PlanLimit, ServiceLimit, Tenant

ADMIN, PASSWORD = "admin", "demo"

# Each limit by its fields; what is left out has the model's default.
PLANS: dict[str, tuple[str, list[dict[str, object]]]] = {
    "free": (
        "To try the API.",
        [{"name": "requests", "rate": "10/m"}, {"name": "daily", "rate": "1000/d"}],
    ),
    "pro": (
        "For one product in production.",
        [
            {"name": "requests", "rate": "100/m", "burst": 30},
            {"name": "search", "rate": "60/m", "burst": 20, "scope": "search"},
            {"name": "daily", "rate": "50000/d"},
        ],
    ),
    "enterprise": (
        "By contract.",
        [
            {"name": "requests", "rate": "1000/m", "burst": 200},
            {"name": "search", "rate": "600/m", "burst": 100, "scope": "search"},
            {"name": "monthly", "rate": "10000000/month", "algorithm": "fixed_window"},
        ],
    ),
}
# The last has no plan of its own, and so the default one.
TENANTS = {"acme": "free", "bakery": "pro", "clinic": "enterprise", "anonymous": None}


def create() -> bool:
    """Fill a new database; tells whether it was one. Whatever is there is left alone."""
    if Plan.objects.exists() or Tenant.objects.exists() or User.objects.exists():
        return False
    with transaction.atomic():
        User.objects.create_superuser(ADMIN, password=PASSWORD)
        plans = {slug: _plan(slug, *values) for slug, values in PLANS.items()}
        for key, slug in TENANTS.items():
            plan = plans[slug] if slug else None
            Tenant.objects.create(key=key, name=key.capitalize(), plan=plan)
        clinic = Tenant.objects.get(key="clinic")
        clinic.limits.create(
            name="search", rate="900/m", burst=150, scope="search", reason="Agreed in its contract."
        )
        ServiceLimit.objects.create(name="everything", rate="2000/s", burst=4000)
    return True


def _plan(slug: str, description: str, limits: list[dict[str, object]]) -> Plan:
    is_free = slug == "free"
    plan = Plan.objects.create(
        slug=slug,
        name=slug.capitalize(),
        description=description,
        is_default=is_free,
        is_anonymous=is_free,
    )
    for fields in limits:
        PlanLimit.objects.create(plan=plan, **fields)
    return plan


def admin_password() -> str | None:
    """The password to log in with, None if somebody changed it."""
    user = User.objects.filter(username=ADMIN).first()
    return PASSWORD if user is not None and user.check_password(PASSWORD) else None
