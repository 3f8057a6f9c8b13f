"""The task of `bench.django_app`: Django finds a task by its module, which cannot be that of its settings."""

# mypy: ignore-errors
# Run where Django is installed, which need not be here.

import os
import time

from django_tasks import task


@task
def note(sent_s: float) -> None:
    """Write how many milliseconds after *sent_s* it was started."""
    with open(os.environ["RUN"], "a") as run:
        run.write(f"{(time.time() - sent_s) * 1000:.3f}\n")
