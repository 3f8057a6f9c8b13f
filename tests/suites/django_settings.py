"""Settings for Django's own tests; runs in the environment of that suite and not in ours.

Two databases that exist already, PyMySQL in place of mysqlclient, and a runner that writes how each
test ended as JSON.
"""

import json
import os
from pathlib import Path
from typing import Any

import pymysql
from django.test.runner import DiscoverRunner


# Django asks for this version of mysqlclient, whose place PyMySQL takes.
pymysql.version_info = (2, 2, 7, "final", 0)
pymysql.install_as_MySQLdb()

HERE = {
    "ENGINE": "django.db.backends.mysql",
    "HOST": "127.0.0.1",
    "PORT": os.environ["SUITE_PORT"],
    "USER": "root",
}
DATABASES = {
    "default": HERE | {"NAME": "django", "TEST": {"CHARSET": "utf8mb4"}},
    "other": HERE | {"NAME": "django_other", "TEST": {"CHARSET": "utf8mb4"}},
}
SECRET_KEY = "of no use"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "streamfrom_settings.Runner"


class Runner(DiscoverRunner):  # type: ignore[misc]
    """Runs as Django does and reports each test."""

    def run_suite(self, suite: Any, **options: Any) -> Any:
        names = [test.id() for test in suite]
        result = super().run_suite(suite, **options)
        ends = dict.fromkeys(names, "passed")
        ends |= {test.id(): "skipped" for test, _ in result.skipped}
        for test, _ in (*result.failures, *result.errors):
            # A part of a test is one of it; what fails for a whole class names none of its tests.
            ends[getattr(test, "test_case", test).id()] = "failed"
        Path(os.environ["SUITE_REPORT"]).write_text(json.dumps(ends))
        return result
