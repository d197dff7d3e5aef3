"""Which limits apply to a caller, read from the models and kept warm."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime, timezone
from typing import NamedTuple

from . import rows
from .conf import conf
from .keeping import Kept, put, read
from .keys import digest
from .limits import Limit, Owner
from .logs import logger, once
from .modes import Switch, Version, mode_with
from .stores.base import Group, Slot
from .tallies import reloads

# Tenants, and addresses of anonymous callers, that a process keeps at once.
MOST_TENANTS = 200_000
MOST_ADDRESSES = 10_000
# Seconds between looks at the store for requests of which nothing is counted.
LOOK = 1.0


class Caller(NamedTuple):
    """Who is counted: a tenant's key, None for anonymous; and an address, None if there is none.

    With `only_address`, just the service's limits per address apply.
    """

    tenant: str | None
    address: str | None = None
    only_address: bool = False


class Prepared(NamedTuple):
    """The limits of one caller and scope, what they were made of, and when one of them ends."""

    group: Group
    plans: rows.Plans
    version: str
    until: float

    def holds(self, plans: Kept) -> bool:
        return (
            self.plans is plans.value and self.version == plans.version and self.until > time.time()
        )


class Catalog:
    """Limits by caller. `versioned` is false inside of a transaction that edits them."""

    def __init__(self, versioned: bool = True) -> None:
        self.versioned = versioned
        # What an operator switched to, as last heard.
        self.switch: Switch | None = None
        self.version = ""
        self._of_plans: tuple[str, str] | None = None
        self._plans: Kept | None = None
        self._tenants: dict[str, Kept] = {}
        self._addresses: dict[str | None, Kept] = {}
        self._due = 0.0

    @property
    def mode(self) -> str:
        """The mode in force."""
        return conf.MODE if self.switch is None else mode_with(self.switch)

    @property
    def of_plans(self) -> tuple[str, str]:
        """The key and the version of the plans, as they travel with a take."""
        found = self._of_plans
        if found is None:
            found = self._of_plans = (plans_key(), self.version)
        return found

    def warm(self, caller: Caller, scope: str | None) -> Group | None:
        """The limits of a caller, if no database is needed to tell."""
        plans = self._plans
        if plans is None or not plans.fresh:
            return None
        if caller.tenant is None:
            return self._group(plans, self._anonymous(caller.address), caller, scope)
        own = self._tenants.get(caller.tenant)
        return self._group(plans, own, caller, scope) if own is not None and own.fresh else None

    def load(self, caller: Caller, scope: str | None) -> Group:
        """The limits of a caller, from the database as far as needed.

        Raises CatalogUnavailable if they can't be read and none are known from before.
        """
        plans = self.plans()
        if caller.tenant is None:
            return self._group(plans, self._anonymous(caller.address), caller, scope)
        key = caller.tenant
        own = self._tenants.get(key)
        if own is None or not own.fresh:
            version = own.version if own else ""
            reloads.note("tenant")
            own = read(lambda: rows.load_tenant(key), own, version, self.versioned)
            put(self._tenants, key, own, MOST_TENANTS)
        return self._group(plans, own, caller, scope)

    def made_of(self, caller: Caller) -> tuple[rows.Plans, rows.Own | None]:
        """What the limits of a caller are made of; None for the rows of an anonymous one.

        Raises CatalogUnavailable as load() does.
        """
        self.load(caller, None)
        own = None if caller.tenant is None else self._tenants[caller.tenant].value
        assert self._plans is not None
        return self._plans.value, own

    def plans(self) -> Kept:
        """All plans, from the database if they are not known or not fresh. Raises as load()."""
        plans = self._plans
        if plans is None or not plans.fresh:
            found = read(self._load_plans, plans, self.version, self.versioned)
            plans = self._plans = _unchanged(plans, found)
        return plans

    def _load_plans(self) -> rows.Plans:
        reloads.note("plans")
        version, plans = self.version, rows.load_plans()
        # Or else somebody has told meanwhile of a newer one.
        if version == self.version:
            self._switch_to(plans.switch)
        return plans

    def learn(self, caller: Caller, current: tuple[str, ...]) -> None:
        """The store knows newer versions: what was read under others is read again."""
        plans = self._plans
        known = {self.version} if plans is None else {self.version, plans.version}
        if current and known != {current[0]}:
            self.forget_plans(current[0])
        if caller.tenant is not None and len(current) > 1:
            own = self._tenants.get(caller.tenant)
            if own is not None and own.version != current[1]:
                self.forget_tenant(caller.tenant, current[1])

    def forget_plans(self, version: str) -> None:
        """The plans were edited, and are of this version now."""
        plans, now = self._plans, Version.read(version)
        # None named: nobody edited them all for longer than anything is kept.
        if now.everyone and Version.read(self.version).everyone != now.everyone:
            self._tenants.clear()
        self.version, self._of_plans = version, None
        if plans is not None:
            self._plans = Kept(plans.value, version, 0.0)
        self._switch_to(Switch.read(now.switch))

    def _switch_to(self, switch: Switch | None) -> None:
        if switch != self.switch:
            self.switch = switch
            if self.versioned:
                _tell(switch)

    def forget_tenant(self, key: str, version: str) -> None:
        """A tenant was edited, and is of this version now."""
        own = self._tenants.get(key)
        if own is not None:
            self._tenants[key] = Kept(own.value, version, 0.0)

    def clear(self) -> None:
        self.switch, self.version, self._of_plans = None, "", None
        self._plans = None
        self._tenants.clear()
        self._addresses.clear()
        self._due = 0.0

    def is_due(self) -> bool:
        """Whether to look for newer plans although nothing is to be counted. Once a second."""
        now = time.monotonic()
        if now < self._due:
            return False
        self._due = now + LOOK
        return True

    def _anonymous(self, address: str | None) -> Kept:
        kept = self._addresses.get(address)
        if kept is None:
            kept = Kept(None, "", 0.0)
            put(self._addresses, address, kept, MOST_ADDRESSES)
        return kept

    def _group(self, plans: Kept, own: Kept | None, caller: Caller, scope: str | None) -> Group:
        """The prepared limits, made anew if the plans changed or one of them has expired."""
        assert own is not None
        address = caller.address if plans.value.by_address else None
        mode = self.mode
        key = (scope, mode, address, caller.only_address)
        found: Prepared | None = own.groups.get(key)
        if found is not None and found.holds(plans):
            return found.group
        if len(own.groups) > 64:
            own.groups.clear()
        slots, until = _slots(plans.value, own.value, caller, scope)
        has_own = own.value is not None and bool(own.value.limits)
        cost = plans.value.costs.get(scope)
        versions = self._versions(plans, own, caller)
        owner = owner_of(caller)
        group = Group(moded(slots, mode), versions, has_own, cost, scope or "", owner)
        own.groups[key] = Prepared(group, plans.value, plans.version, until)
        return group

    def _versions(self, plans: Kept, own: Kept, caller: Caller) -> tuple[tuple[str, str], ...]:
        if not self.versioned:
            return ()
        of_plans = (plans_key(), plans.version)
        if caller.tenant is None:
            return (of_plans,)
        return (of_plans, (tenant_key(caller.tenant), own.version))


def plans_key() -> str:
    """Where the store keeps the version of the plans."""
    return digest("version of plans")


def tenant_key(key: str) -> str:
    """Where the store keeps the version of a tenant: beside what is counted for it.

    The part before the colon tells stores of several servers where that is.
    """
    return f"{own_subject(Caller(key))}:v"


def _tell(switch: Switch | None) -> None:
    if switch is None:
        logger.warning('The mode of all limits is as in the settings again: "%s".', conf.MODE)
        return
    until = datetime.fromtimestamp(switch.until, timezone.utc)
    logger.warning('The mode of all limits is "%s" until %s.', switch.mode, until.isoformat())


def _unchanged(before: Kept | None, now: Kept) -> Kept:
    """Equal plans are the same plans, so that what was prepared of them stays."""
    if before is not None and before.value == now.value:
        now.value = before.value
    return now


def own_subject(caller: Caller) -> str:
    """The name in the store of what is counted for a caller itself."""
    if caller.tenant is None:
        return digest("address", caller.address or "")
    return digest("tenant", caller.tenant)


def owner_of(caller: Caller) -> Owner:
    """A caller as people know it."""
    if caller.tenant is None or caller.only_address:
        return Owner("address", caller.address or "")
    return Owner("tenant", caller.tenant)


def _slots(
    plans: rows.Plans, own: rows.Own | None, caller: Caller, scope: str | None
) -> tuple[tuple[Slot, ...], float]:
    service = _service_slots(plans, caller, scope)
    if caller.only_address:
        service = [slot for slot in service if slot.limit.per == "address"]
        return tuple(service), float("inf")
    limits, until = in_force(plans, own, scope)
    return (*_own_slots(limits, caller), *service), until


def in_force(
    plans: rows.Plans, own: rows.Own | None, scope: str | None
) -> tuple[list[Limit], float]:
    """What counts of merged(). A scope of None is all scopes."""
    limits, until = merged(plans, own)
    return [limit for limit in limits if _counts(limit, scope)], until


def merged(plans: rows.Plans, own: rows.Own | None) -> tuple[list[Limit], float]:
    """The limits of a tenant (of an anonymous caller: None), and until when they stay so.

    An own limit replaces the plan's of the same name, or adds one.
    """
    until, now = float("inf"), time.time()
    found = {limit.name: limit for limit in plans.limits.get(plan_of(plans, own) or "", ())}
    for limit, expires in own.limits if own else ():
        ends = _timestamp(expires)
        if ends > now:
            found[limit.name] = limit
            until = min(until, ends)
    return list(found.values()), until


def plan_of(plans: rows.Plans, own: rows.Own | None) -> str | None:
    """The plan in force, by its slug."""
    if not plans.limits:
        once.warning(
            "There is no plan, so nothing is limited. "
            "`manage.py ratelimits_starter` creates three to edit."
        )
    if own is None:
        return plans.anonymous or plans.default
    if own.plan is not None and own.plan not in plans.limits:
        once.error(f"There is no plan {own.plan!r}; its tenants have the default plan.")
        return plans.default
    return own.plan or plans.default


def _timestamp(expires: datetime | None) -> float:
    return float("inf") if expires is None else expires.timestamp()


def _counts(limit: Limit, scope: str | None) -> bool:
    if limit.rate.is_unlimited or limit.mode == "off":
        return False
    return scope is None or limit.scope in ("", scope)


def moded(slots: tuple[Slot, ...], mode: str) -> tuple[Slot, ...]:
    """In the mode "shadow" no limit refuses; in "off" there are none."""
    if mode == "enforce":
        return slots
    shadows = (Slot(replace(slot.limit, mode="shadow"), slot.subject) for slot in slots)
    return () if mode == "off" else tuple(shadows)


def _own_slots(limits: list[Limit], caller: Caller) -> list[Slot]:
    subject = own_subject(caller)
    if caller.tenant is None:
        limits = [replace(limit, per="address") for limit in limits]
    return [Slot(limit, subject) for limit in limits]


def _service_slots(plans: rows.Plans, caller: Caller, scope: str | None) -> list[Slot]:
    slots = []
    for limit in plans.service:
        if not _counts(limit, scope):
            continue
        if limit.per == "everyone":
            slots.append(Slot(limit, digest("everyone")))
        elif caller.address is not None:
            slots.append(Slot(limit, digest("service address", caller.address)))
    return slots
