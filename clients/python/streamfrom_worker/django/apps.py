"""The Django application, whose `migrate` creates the backends' queues."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class StreamfromConfig(AppConfig):
    """The application `streamfrom_worker.django`."""

    name = "streamfrom_worker.django"
    label = "streamfrom_worker"
    verbose_name = "Tasks on streamfrom"

    def ready(self) -> None:
        """Create the queues after each `migrate`."""
        post_migrate.connect(_make_queues, sender=self)


def _make_queues(using: str, **_: Any) -> None:
    from .backend import backends

    for backend in backends():
        if backend.database == using:
            backend.make()
