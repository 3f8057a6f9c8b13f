"""The Django project of `bench.workloads.frameworks`: settings and task. Run as a program, it sends tasks at random moments."""

# mypy: ignore-errors
# Run where Django is installed, which need not be here.

import os
import random
import sys
import time

import pymysql


pymysql.version_info = (2, 2, 1, "final", 0)  # Django requires this version of mysqlclient
pymysql.install_as_MySQLdb()
SECRET_KEY = "of a bench"
USE_TZ = True
BACKEND = os.environ["BACKEND"]
INSTALLED_APPS = ["streamfrom_worker.django" if "streamfrom" in BACKEND else "django_tasks_db"]
TASKS = {"default": {"BACKEND": BACKEND}}
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.mysql",
        "HOST": "127.0.0.1",
        "PORT": os.environ["PORT"],
        "USER": "root",
        "NAME": os.environ["KEYSPACE"],
        "CONN_MAX_AGE": None,
    }
}


def main() -> None:
    """Send the given number of tasks at the given average interval in seconds."""
    import django

    django.setup()
    from bench.django_task import note

    count, pause_s = int(sys.argv[1]), float(sys.argv[2])
    for _ in range(count):
        time.sleep(random.uniform(0, 2 * pause_s))
        note.enqueue(time.time())


if __name__ == "__main__":
    main()
