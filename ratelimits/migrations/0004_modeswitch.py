from __future__ import annotations

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ratelimits", "0003_scopecost")]

    operations = [
        migrations.CreateModel(
            name="ModeSwitch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "mode",
                    models.CharField(
                        choices=[
                            ("enforce", "enforce"),
                            ("shadow", "shadow: count and report, refuse nothing"),
                            ("off", "off: count nothing"),
                            ("settings", "as in the settings again"),
                        ],
                        max_length=10,
                        verbose_name="mode",
                    ),
                ),
                (
                    "since",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False, verbose_name="since"
                    ),
                ),
                ("until", models.DateTimeField(editable=False, verbose_name="until")),
                (
                    "by",
                    models.CharField(
                        blank=True,
                        default="",
                        editable=False,
                        max_length=150,
                        verbose_name="by",
                    ),
                ),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="For those who come after you: what happened, and what is to be done.",
                        max_length=200,
                        verbose_name="reason",
                    ),
                ),
            ],
            options={
                "verbose_name": "switch of the mode",
                "verbose_name_plural": "switches of the mode",
                "ordering": ["-pk"],
                "base_manager_name": "objects",
                "default_permissions": ("view",),
                "permissions": [("switch_mode", "Can switch the mode of all limits")],
            },
        ),
    ]
