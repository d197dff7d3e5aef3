from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ratelimits", "0004_modeswitch")]

    operations = [
        migrations.AlterModelOptions(
            name="tenant",
            options={
                "base_manager_name": "objects",
                "ordering": ["key"],
                "permissions": [("reset_tenant", "Can reset what a tenant has used")],
                "verbose_name": "tenant",
                "verbose_name_plural": "tenants",
            },
        ),
        migrations.AddField(
            model_name="tenantlimit",
            name="burst_after",
            field=models.PositiveBigIntegerField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="tenantlimit",
            name="rate_after",
            field=models.CharField(blank=True, default="", editable=False, max_length=50),
        ),
        migrations.AddField(
            model_name="tenantlimit",
            name="reason_after",
            field=models.CharField(blank=True, default="", editable=False, max_length=200),
        ),
        migrations.AddField(
            model_name="tenantlimit",
            name="replaces",
            field=models.CharField(blank=True, default="", editable=False, max_length=300),
        ),
    ]
