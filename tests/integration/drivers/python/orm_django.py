"""What a program does with Django's ORM: a model, transactions, an iterator, messages by a cursor.

Usage: orm_django.py DRIVER PORT DATABASE USER TLS PREPARED, DRIVER being mysqlclient or pymysql.
Prints "ok".
"""

import os
import sys


def main() -> None:
    driver, port, database, user, tls, _ = sys.argv[1:]
    options = {"charset": "utf8mb4"}
    if driver == "pymysql":
        import pymysql

        pymysql.version_info = (2, 2, 7, "final", 0)  # Django asks for mysqlclient's
        pymysql.install_as_MySQLdb()
        options |= {"ssl_verify_cert": False} if tls == "1" else {"ssl_disabled": True}
    else:
        options["ssl_mode"] = "REQUIRED" if tls == "1" else "DISABLED"
    import django
    from django.conf import settings

    settings.configure(
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.mysql",
                "HOST": "127.0.0.1",
                "PORT": port,
                "USER": user,
                "PASSWORD": "secret" if user != "root" else "",
                "NAME": database,
                "OPTIONS": options,
            }
        },
        INSTALLED_APPS=[],
        USE_TZ=True,
    )
    django.setup()
    from django.db import IntegrityError, OperationalError, connection, models, transaction

    class Item(models.Model):
        id = models.BigIntegerField(primary_key=True)
        name = models.CharField(max_length=100, null=True)

        class Meta:
            app_label = "drivers"
            db_table = "item"

    assert "item" in connection.introspection.table_names()
    Item.objects.create(id=1, name="hällo 🎉")
    Item.objects.bulk_create([Item(id=4), Item(id=7, name="")])
    assert list(Item.objects.order_by("id").values_list("name", flat=True)) == [
        "hällo 🎉",
        None,
        "",
    ]
    try:
        with transaction.atomic():
            Item.objects.filter(id=7).update(name="undone")
            with transaction.atomic():  # a savepoint
                Item.objects.filter(id=1).update(name="undone too")
            raise KeyError
    except KeyError:
        pass
    assert Item.objects.get(id=7).name == ""
    with transaction.atomic():
        Item.objects.filter(id=7).update(name="changed")
    assert Item.objects.filter(name__startswith="ch").count() == 1
    try:
        with transaction.atomic():
            Item.objects.create(id=1)
    except IntegrityError as error:
        assert error.args[0] == 1062, error
    else:
        raise AssertionError("a duplicate was taken")
    with connection.cursor() as cursor:
        try:
            cursor.execute("SELECT nothing FROM item")
        except OperationalError as error:
            assert error.args[0] == 1054, error
    Item.objects.filter(id=4).delete()
    Item.objects.bulk_create(
        [Item(id=number, name="x" * 90) for number in range(100, 1100)], batch_size=1000
    )
    assert sum(1 for _ in Item.objects.iterator(chunk_size=500)) == 1002
    assert Item.objects.aggregate(models.Max("id")) == {"id__max": 1099}
    connection.close()
    assert Item.objects.filter(id=1).exists()  # on a new connection

    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO my_message (id, message) VALUES (1, 'one'), (4, 'four')")
    reader = connection.copy()
    reader.ensure_connection()
    from MySQLdb.cursors import SSCursor

    rows = reader.connection.cursor(SSCursor)
    rows.execute("STREAM id, message FROM my_message")
    acked = 0
    while acked < 2:
        message_id, _ = rows.fetchone()
        with connection.cursor() as cursor:
            acked += cursor.execute(
                "UPDATE my_message SET time_acked = NOW() WHERE id = %s", [message_id]
            )
    print("ok", flush=True)
    # The stream is still open, and whoever drops its cursor waits for its end.
    os._exit(0)


if __name__ == "__main__":
    main()
