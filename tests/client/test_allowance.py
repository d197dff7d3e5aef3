from __future__ import annotations

from ratelimits.client.allowance import CAPACITY, COST, MOST, Allowance, Allowances


def spent(allowance: Allowance) -> int:
    """How many repetitions are left, which are left no more."""
    return next(count for count in range(1000) if not allowance.spend())


def test_what_is_spent_comes_back_with_what_goes_well() -> None:
    allowance = Allowance()
    assert spent(allowance) == CAPACITY // COST
    for _ in range(COST - 1):
        allowance.give_back()
    assert not allowance.spend()
    allowance.give_back()
    assert allowance.spend()
    for _ in range(2 * CAPACITY):
        allowance.give_back()
    assert spent(allowance) == CAPACITY // COST


def test_each_upstream_and_credential_has_its_own() -> None:
    allowances = Allowances()
    spent(allowances.of("vendor", "a"))
    assert not allowances.of("vendor", "a").spend()
    assert allowances.of("vendor", "b").spend()
    assert allowances.of("other", "a").spend()


def test_those_used_last_are_remembered() -> None:
    allowances = Allowances()
    for name in ("used", "unused"):
        spent(allowances.of(name, ""))
    for number in range(MOST):
        allowances.of("vendor", str(number))
        assert not allowances.of("used", "").spend()
    assert allowances.of("unused", "").spend()
