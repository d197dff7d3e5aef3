from __future__ import annotations

from typing import ClassVar

from django.core.validators import MinValueValidator
from django.db import models


class Order(models.Model):
    """What a tenant ordered through the API."""

    tenant = models.CharField(max_length=255, blank=True, default="", editable=False)
    product = models.CharField(max_length=100)
    quantity = models.PositiveSmallIntegerField(default=1, validators=[MinValueValidator(1)])
    created_at = models.DateTimeField(auto_now_add=True)

    objects: ClassVar[models.Manager[Order]] = models.Manager()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.quantity} x {self.product}"
