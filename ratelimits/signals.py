"""Signals of the app. Those of edits are for changes that send no post_save or post_delete."""

from __future__ import annotations

from django.dispatch import Signal

# Plans, their limits or service limits were changed in bulk. kwargs: using (database alias).
plans_edited = Signal()

# Tenants or their own limits were changed in bulk. kwargs: using, keys (a list of tenant keys,
# old and new ones; None if any tenant may be meant).
tenants_edited = Signal()
