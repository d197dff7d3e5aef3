from __future__ import annotations

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models

import ratelimits.fields
import ratelimits.validation


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Plan",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slug", models.SlugField(max_length=100, unique=True, verbose_name="slug")),
                (
                    "name",
                    models.CharField(
                        max_length=100,
                        validators=[ratelimits.validation.validate_printable],
                        verbose_name="name",
                    ),
                ),
                (
                    "description",
                    models.TextField(blank=True, default="", verbose_name="description"),
                ),
                (
                    "is_default",
                    models.BooleanField(
                        default=False,
                        help_text="For tenants that have no plan of their own.",
                        verbose_name="default",
                    ),
                ),
                (
                    "is_anonymous",
                    models.BooleanField(
                        default=False,
                        help_text="For callers without a tenant, each address by itself.",
                        verbose_name="anonymous",
                    ),
                ),
            ],
            options={
                "verbose_name": "plan",
                "verbose_name_plural": "plans",
                "ordering": ["name"],
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("is_default", True)),
                        fields=("is_default",),
                        name="ratelimits_one_default_plan",
                        violation_error_code="unique",
                        violation_error_message="Another plan is the default one already.",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("is_anonymous", True)),
                        fields=("is_anonymous",),
                        name="ratelimits_one_anonymous_plan",
                        violation_error_code="unique",
                        violation_error_message="Another plan is the anonymous one already.",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ServiceLimit",
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
                        help_text="Callers see it in the RateLimit fields. Renaming starts a new count.",
                        max_length=100,
                        validators=[ratelimits.validation.validate_printable],
                        verbose_name="name",
                    ),
                ),
                (
                    "rate",
                    ratelimits.fields.RateField(
                        help_text="For example 10/s, 100/m, 10/5m, 10000/d, 100000/month or unlimited. 0/m refuses every request.",
                        max_length=50,
                        verbose_name="rate",
                    ),
                ),
                (
                    "burst",
                    models.PositiveBigIntegerField(
                        blank=True,
                        help_text="How much a rested caller can take at once. Empty: as much as the rate says.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000000000000),
                        ],
                        verbose_name="burst",
                    ),
                ),
                (
                    "scope",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="The kind of request it covers, such as search. Empty: all requests.",
                        max_length=100,
                        validators=[ratelimits.validation.validate_printable],
                        verbose_name="scope",
                    ),
                ),
                (
                    "mode",
                    models.CharField(
                        choices=[("enforce", "enforce"), ("shadow", "shadow"), ("off", "off")],
                        default="enforce",
                        help_text="Shadow counts and reports, but never refuses.",
                        max_length=10,
                        verbose_name="mode",
                    ),
                ),
                (
                    "per",
                    models.CharField(
                        choices=[("everyone", "everyone together"), ("address", "each address")],
                        default="everyone",
                        help_text="One bucket for everyone should be well above the sum of the plans: whoever comes when it is empty is refused, whatever they paid for.",
                        max_length=10,
                        verbose_name="per",
                    ),
                ),
            ],
            options={
                "verbose_name": "limit of the service",
                "verbose_name_plural": "limits of the service",
                "ordering": ["name"],
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("name",),
                        name="ratelimits_servicelimit_name",
                        violation_error_code="unique",
                        violation_error_message="There is a limit of this name already.",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Tenant",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "key",
                    models.CharField(
                        help_text="As the TENANT setting gives it, such as user:7.",
                        max_length=255,
                        unique=True,
                        verbose_name="key",
                    ),
                ),
                (
                    "name",
                    models.CharField(blank=True, default="", max_length=200, verbose_name="name"),
                ),
                ("notes", models.TextField(blank=True, default="", verbose_name="notes")),
                (
                    "plan",
                    models.ForeignKey(
                        blank=True,
                        help_text="Empty: the default plan.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tenants",
                        to="ratelimits.plan",
                        verbose_name="plan",
                    ),
                ),
            ],
            options={
                "verbose_name": "tenant",
                "verbose_name_plural": "tenants",
                "ordering": ["key"],
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="PlanLimit",
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
                        help_text="Callers see it in the RateLimit fields. Renaming starts a new count.",
                        max_length=100,
                        validators=[ratelimits.validation.validate_printable],
                        verbose_name="name",
                    ),
                ),
                (
                    "rate",
                    ratelimits.fields.RateField(
                        help_text="For example 10/s, 100/m, 10/5m, 10000/d, 100000/month or unlimited. 0/m refuses every request.",
                        max_length=50,
                        verbose_name="rate",
                    ),
                ),
                (
                    "burst",
                    models.PositiveBigIntegerField(
                        blank=True,
                        help_text="How much a rested caller can take at once. Empty: as much as the rate says.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000000000000),
                        ],
                        verbose_name="burst",
                    ),
                ),
                (
                    "scope",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="The kind of request it covers, such as search. Empty: all requests.",
                        max_length=100,
                        validators=[ratelimits.validation.validate_printable],
                        verbose_name="scope",
                    ),
                ),
                (
                    "mode",
                    models.CharField(
                        choices=[("enforce", "enforce"), ("shadow", "shadow"), ("off", "off")],
                        default="enforce",
                        help_text="Shadow counts and reports, but never refuses.",
                        max_length=10,
                        verbose_name="mode",
                    ),
                ),
                (
                    "algorithm",
                    models.CharField(
                        choices=[
                            ("token_bucket", "token bucket"),
                            ("fixed_window", "fixed window"),
                            ("sliding_log", "sliding log"),
                            ("sliding_counter", "sliding counter"),
                        ],
                        default="token_bucket",
                        max_length=20,
                        verbose_name="algorithm",
                    ),
                ),
                (
                    "on_store_failure",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "as in settings"),
                            ("local", "count locally"),
                            ("allow", "allow"),
                            ("deny", "deny"),
                        ],
                        default="",
                        help_text="What happens to requests while the counts can't be reached.",
                        max_length=10,
                        verbose_name="on store failure",
                    ),
                ),
                (
                    "plan",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="limits",
                        to="ratelimits.plan",
                        verbose_name="plan",
                    ),
                ),
            ],
            options={
                "verbose_name": "limit of a plan",
                "verbose_name_plural": "limits of plans",
                "ordering": ["name"],
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("plan", "name"),
                        name="ratelimits_planlimit_name",
                        violation_error_message="The plan has a limit of this name already.",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="TenantLimit",
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
                        help_text="Callers see it in the RateLimit fields. Renaming starts a new count.",
                        max_length=100,
                        validators=[ratelimits.validation.validate_printable],
                        verbose_name="name",
                    ),
                ),
                (
                    "rate",
                    ratelimits.fields.RateField(
                        help_text="For example 10/s, 100/m, 10/5m, 10000/d, 100000/month or unlimited. 0/m refuses every request.",
                        max_length=50,
                        verbose_name="rate",
                    ),
                ),
                (
                    "burst",
                    models.PositiveBigIntegerField(
                        blank=True,
                        help_text="How much a rested caller can take at once. Empty: as much as the rate says.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000000000000),
                        ],
                        verbose_name="burst",
                    ),
                ),
                (
                    "scope",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="The kind of request it covers, such as search. Empty: all requests.",
                        max_length=100,
                        validators=[ratelimits.validation.validate_printable],
                        verbose_name="scope",
                    ),
                ),
                (
                    "mode",
                    models.CharField(
                        choices=[("enforce", "enforce"), ("shadow", "shadow"), ("off", "off")],
                        default="enforce",
                        help_text="Shadow counts and reports, but never refuses.",
                        max_length=10,
                        verbose_name="mode",
                    ),
                ),
                (
                    "algorithm",
                    models.CharField(
                        choices=[
                            ("token_bucket", "token bucket"),
                            ("fixed_window", "fixed window"),
                            ("sliding_log", "sliding log"),
                            ("sliding_counter", "sliding counter"),
                        ],
                        default="token_bucket",
                        max_length=20,
                        verbose_name="algorithm",
                    ),
                ),
                (
                    "on_store_failure",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "as in settings"),
                            ("local", "count locally"),
                            ("allow", "allow"),
                            ("deny", "deny"),
                        ],
                        default="",
                        help_text="What happens to requests while the counts can't be reached.",
                        max_length=10,
                        verbose_name="on store failure",
                    ),
                ),
                (
                    "expires_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="From then on it is as if it were not there. Empty: never.",
                        null=True,
                        verbose_name="expires at",
                    ),
                ),
                (
                    "reason",
                    models.CharField(blank=True, default="", max_length=200, verbose_name="reason"),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="limits",
                        to="ratelimits.tenant",
                        verbose_name="tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "limit of a tenant",
                "verbose_name_plural": "limits of tenants",
                "ordering": ["name"],
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "name"),
                        name="ratelimits_tenantlimit_name",
                        violation_error_message="The tenant has a limit of this name already.",
                    )
                ],
            },
        ),
    ]
