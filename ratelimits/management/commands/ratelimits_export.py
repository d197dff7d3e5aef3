"""Prints plans as code: a file for review, for ratelimits_apply and for other databases."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import Error

from ratelimits import rows
from ratelimits.management.databases import fault_of
from ratelimits.plan_files.writing import text_of

FAULT = 2


class Command(BaseCommand):
    help = (
        "Print the plans, their limits, service limits and costs of scopes as TOML, which "
        "ratelimits_apply takes back. Tenants are not part of it. Ends with 0, or with 2 and "
        "nothing printed if the database can't be read."
    )
    # What is wrong with other parts of a project does not change what is sold.
    requires_system_checks = []

    def handle(self, **options: Any) -> None:
        alias = rows.write_alias()
        try:
            text = text_of(alias)
        except Error as error:
            raise CommandError(fault_of(error), returncode=FAULT) from error
        self.stdout.write(text, ending="")
