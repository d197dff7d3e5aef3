from __future__ import annotations

from django.db import migrations, models


def lighten(apps, schema_editor):
    """On PostgreSQL: counts need no log, and room beside them for the next version of a row."""
    if schema_editor.connection.vendor == "postgresql":
        table = schema_editor.quote_name(apps.get_model("ratelimits", "StoreRow")._meta.db_table)
        schema_editor.execute(f"ALTER TABLE {table} SET UNLOGGED")
        schema_editor.execute(f"ALTER TABLE {table} SET (fillfactor = 50)")


class Migration(migrations.Migration):
    dependencies = [("ratelimits", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="StoreRow",
            fields=[
                ("key", models.CharField(max_length=32, primary_key=True, serialize=False)),
                ("value", models.BinaryField()),
                ("expires_at", models.BigIntegerField()),
            ],
            options={"default_permissions": ()},
        ),
        migrations.RunPython(
            lighten, migrations.RunPython.noop, hints={"model_name": "storerow"}, elidable=False
        ),
    ]
