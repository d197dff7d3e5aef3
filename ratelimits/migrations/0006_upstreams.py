from __future__ import annotations

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models

import ratelimits.fields
import ratelimits.validation


class Migration(migrations.Migration):
    dependencies = [
        ("ratelimits", "0005_tenant_page"),
    ]

    operations = [
        migrations.CreateModel(
            name="Upstream",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "slug",
                    models.SlugField(
                        help_text="The name that the code calls it by. Renaming starts a new count.",
                        max_length=100,
                        unique=True,
                        verbose_name="slug",
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        blank=True,
                        default="",
                        max_length=100,
                        validators=[ratelimits.validation.validate_printable],
                        verbose_name="name",
                    ),
                ),
                (
                    "base_url",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Where the API is, such as https://api.example.com/v1. No credentials.",
                        max_length=200,
                        validators=[ratelimits.validation.validate_base_url],
                        verbose_name="base URL",
                    ),
                ),
                (
                    "max_wait",
                    models.FloatField(
                        default=5.0,
                        help_text="Seconds that a call may wait for its turn. One that would have to wait for longer is told so at once, so that a queue can take it. 0: nobody waits.",
                        validators=[
                            ratelimits.validation.validate_seconds,
                            django.core.validators.MinValueValidator(0),
                        ],
                        verbose_name="longest wait",
                    ),
                ),
                (
                    "guard",
                    models.FloatField(
                        default=0.05,
                        help_text="Seconds that calls leave later than they must, since some are faster on their way than those before them: as much as the times of their way differ.",
                        validators=[
                            ratelimits.validation.validate_seconds,
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(10),
                        ],
                        verbose_name="guard",
                    ),
                ),
                (
                    "retry_statuses",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="Answers besides 429 that mean the limit was exceeded and nothing was done, such as 403, 529. One that means something else too counts if its fields speak of a limit.",
                        max_length=100,
                        validators=[ratelimits.validation.validate_statuses],
                        verbose_name="statuses of refusals",
                    ),
                ),
            ],
            options={
                "verbose_name": "upstream",
                "verbose_name_plural": "upstreams",
                "ordering": ["slug"],
                "base_manager_name": "objects",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("max_wait__gte", 0)),
                        name="ratelimits_upstream_max_wait",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("guard__gte", 0), ("guard__lte", 10)),
                        name="ratelimits_upstream_guard",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="UpstreamLimit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        help_text="For those who read why a call waits. Renaming keeps what was used.",
                        max_length=100,
                        validators=[ratelimits.validation.validate_printable],
                        verbose_name="name",
                    ),
                ),
                (
                    "rate",
                    ratelimits.fields.RateField(
                        help_text="As they tell it, for example 10/s, 100/m, 5000/h or 10000/d.",
                        max_length=50,
                        verbose_name="rate",
                    ),
                ),
                (
                    "burst",
                    models.PositiveBigIntegerField(
                        blank=True,
                        help_text="How many calls a bucket takes at once. Empty: as many as the rate says.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000000000000),
                        ],
                        verbose_name="burst",
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("bucket", "bucket that refills"), ("window", "window")],
                        default="window",
                        help_text="A window, unless they say that theirs is a bucket that refills all the time.",
                        max_length=10,
                        verbose_name="kind",
                    ),
                ),
                (
                    "per",
                    models.CharField(
                        choices=[
                            ("credential", "each credential"),
                            ("tenant", "each customer in whose name we call"),
                        ],
                        default="credential",
                        help_text="A share for each customer keeps one of them from using up a credential.",
                        max_length=10,
                        verbose_name="per",
                    ),
                ),
                (
                    "upstream",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="limits",
                        to="ratelimits.upstream",
                        verbose_name="upstream",
                    ),
                ),
            ],
            options={
                "verbose_name": "limit of an upstream",
                "verbose_name_plural": "limits of upstreams",
                "ordering": ["name"],
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("upstream", "name"),
                        name="ratelimits_upstreamlimit_name",
                        violation_error_message="The upstream has a limit of this name already.",
                    )
                ],
            },
        ),
    ]
