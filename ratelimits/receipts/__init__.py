"""Receipts: what a refusal was about, sealed into the `instance` of its problem.

The caller keeps it for us, and can neither read nor change it; here nothing is stored for it.
"""

from __future__ import annotations

from datetime import timedelta

from django.utils.translation import gettext as _

from ratelimits.limits import Decision
from ratelimits.sealing import BrokenSeal, seal, unseal

from .urns import found_in, is_begun_in, urn_of
from .values import Receipt, pack, unpack

PURPOSE = "receipts"
KEPT = timedelta(days=30)


class NotAReceipt(ValueError):
    """What was pasted explains nothing. Its text says why, to people."""


def receipt_of(decision: Decision) -> str:
    """The receipt of a refusal: a URN of fewer than 500 characters."""
    return urn_of(seal(pack(decision), PURPOSE))


def read(pasted: str) -> Receipt:
    """The receipt in what somebody pasted, whatever stands around it. Raises NotAReceipt."""
    sealed = found_in(pasted)
    for candidate in sealed:
        try:
            receipt = unpack(unseal(candidate, PURPOSE))
        except BrokenSeal:
            continue
        if receipt is None:
            raise NotAReceipt(
                _("This receipt was made by another release, which wrote more in it.")
            )
        return _checked(receipt)
    if sealed:
        raise NotAReceipt(
            _(
                "This receipt is not ours, or not as we gave it: it was made up, changed, cut "
                "short, or made with another secret."
            )
        )
    if is_begun_in(pasted):
        raise NotAReceipt(
            _(
                "This is only the beginning of a receipt. Ask for all of “instance”: it goes on "
                "with a question mark after the first 45 characters."
            )
        )
    raise NotAReceipt(
        _("There is no receipt in this. It is the text “instance” in the body of a refusal.")
    )


def _checked(receipt: Receipt) -> Receipt:
    if receipt.age > KEPT:
        raise NotAReceipt(
            _(
                "This receipt is too old: it was made on %(date)s, and receipts are read for "
                "%(days)d days."
            )
            % {"date": receipt.at.date().isoformat(), "days": KEPT.days}
        )
    return receipt


__all__ = ["NotAReceipt", "Receipt", "read", "receipt_of"]
