"""The customers of a project with one schema each, as django-tenants wants them."""

from __future__ import annotations

from django_tenants.models import DomainMixin, TenantMixin


class Customer(TenantMixin):  # type: ignore[misc]
    pass


class Domain(DomainMixin):  # type: ignore[misc]
    pass
