"""The task of `bench.django_app`. Django finds a task by its module, which must not be the one of the settings."""

# mypy: ignore-errors
# Run where Django is installed, which need not be here.

import os
import time

from django_tasks import task


@task
def note(sent_s: float) -> None:
    """Record the milliseconds between *sent_s* and the start of this task."""
    with open(os.environ["RUN"], "a") as run:
        run.write(f"{(time.time() - sent_s) * 1000:.3f}\n")
