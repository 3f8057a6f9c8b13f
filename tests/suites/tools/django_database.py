"""Settings of a Django project without a program of its own; runs in the environment of that tool."""

import os

import pymysql


# Django asks for this version of mysqlclient, whose place PyMySQL takes.
pymysql.version_info = (2, 2, 7, "final", 0)
pymysql.install_as_MySQLdb()

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.mysql",
        "HOST": "127.0.0.1",
        "PORT": os.environ["PORT"],
        "USER": "root",
        "NAME": os.environ["DATABASE"],
    }
}
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth"]
SECRET_KEY = "of no use"
