"""Django's tasks on streamfrom.

::

    INSTALLED_APPS = [..., "streamfrom_worker.django"]
    TASKS = {"default": {"BACKEND": "streamfrom_worker.django.backend.StreamfromBackend"}}

A task is a row of a queue in the keyspace of one of your DATABASES, whose HOST and PORT are the proxy's. It is therefore part
of the request's transaction, and the commit wakes a worker: `manage.py streamfrom_worker`. `manage.py migrate` creates the queue.
"""
