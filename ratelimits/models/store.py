from __future__ import annotations

from django.db import models


class StoreRow(models.Model):
    """Counts, for a cache alias that is a DatabaseCache. Not for people to edit.

    Written over connections of their own, see stores/database.py. `expires_at` is in
    microseconds and has no index, which every take would have to write to.
    """

    key = models.CharField(max_length=32, primary_key=True)
    value = models.BinaryField()
    expires_at = models.BigIntegerField()

    class Meta:
        default_permissions = ()
