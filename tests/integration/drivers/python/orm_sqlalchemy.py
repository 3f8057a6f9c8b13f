"""What a program does with SQLAlchemy: an ORM model, sessions, a pool, streamed rows, messages.

Usage: orm_sqlalchemy.py DRIVER PORT DATABASE USER TLS PREPARED, DRIVER being SQLAlchemy's name of
one (pymysql, mysqldb, mysqlconnector). Prints "ok".
"""

import os
import sys
import time

from sqlalchemy import BigInteger, Engine, String, create_engine, func, inspect, select, text
from sqlalchemy.exc import IntegrityError, ProgrammingError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Item(Base):
    __tablename__ = "item"
    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    name: Mapped[str | None] = mapped_column(String(100))


def main() -> None:
    driver, port, database, user, tls, _ = sys.argv[1:]
    password = ":secret" if user != "root" else ""
    arguments = {}
    if driver == "pymysql":
        arguments = {"ssl_verify_cert": False} if tls == "1" else {"ssl_disabled": True}
    elif driver == "mysqldb":
        arguments = {"ssl_mode": "REQUIRED" if tls == "1" else "DISABLED"}
    else:
        arguments = {"ssl_disabled": tls != "1"}
    engine = create_engine(
        f"mysql+{driver}://{user}{password}@127.0.0.1:{port}/{database}",
        connect_args=arguments,
        pool_pre_ping=True,
    )
    assert "item" in inspect(engine).get_table_names()
    columns = {column["name"] for column in inspect(engine).get_columns("item")}
    assert {"id", "name"} <= columns, columns
    with Session(engine) as session:
        session.add_all([Item(id=1, name="hällo 🎉"), Item(id=4), Item(id=7, name="")])
        session.commit()
        session.get_one(Item, 7).name = "undone"
        session.flush()
        session.rollback()
        assert session.get_one(Item, 7).name == ""
        session.get_one(Item, 7).name = "changed"
        session.commit()
        names = session.scalars(select(Item.name).order_by(Item.id)).all()
        assert names == ["hällo 🎉", None, "changed"], names
        assert session.scalar(select(func.count()).select_from(Item)) == 3
        session.add(Item(id=1))
        try:
            session.commit()
        except IntegrityError:
            session.rollback()
        else:
            raise AssertionError("a duplicate was taken")
        session.delete(session.get_one(Item, 4))
        session.commit()
        assert session.get(Item, 4) is None

    with engine.connect() as connection:
        try:
            connection.execute(text("SELECT nothing FROM item"))
        except (ProgrammingError, Exception) as error:
            assert "1054" in str(error), error
        connection.rollback()
        connection.execute(
            Item.__table__.insert(),
            [{"id": number, "name": "x" * 90} for number in range(100, 1100)],
        )
        connection.commit()
        rows = connection.execution_options(stream_results=True).execute(select(Item))
        assert sum(1 for _ in rows) == 1002
        connection.commit()

    take_and_ack(engine)
    with engine.begin() as connection:
        connection.execute(
            text("INSERT INTO my_message (id, message) VALUES (1, 'one'), (4, 'four')")
        )

    if driver == "mysqlconnector":
        # SQLAlchemy gives this driver buffered cursors alone, and a STREAM has no end.
        reader = engine.raw_connection()
        rows = reader.driver_connection.cursor(buffered=False)
        rows.execute("STREAM id, message FROM my_message")
        # It gives a row when it has the next one; without this that is message 4, once more.
        soon = time.time_ns() + 1_000_000_000
        more = f"INSERT INTO my_message (id, message, time_next) VALUES (6, 'six', {soon})"
        with engine.begin() as connection:
            connection.execute(text(more))
    else:
        rows = (
            engine.connect()
            .execution_options(yield_per=1)
            .execute(text("STREAM id, message FROM my_message"))
        )
    acked = 0
    with engine.connect() as connection:
        while acked < 2:
            message_id, _ = rows.fetchone()
            acked += connection.execute(
                text("UPDATE my_message SET time_acked = NOW() WHERE id = :id"),
                {"id": message_id},
            ).rowcount
            connection.commit()
    print("ok", flush=True)
    # The stream is still open, and whoever drops its cursor waits for its end.
    os._exit(0)


def take_and_ack(engine: Engine) -> None:
    """Messages through the pool: each turn takes a connection from it and gives it back."""
    ack = text("UPDATE my_message SET time_acked = NOW() WHERE id = :id")
    take = text("STREAM id, message FROM my_message LIMIT :n WAIT :s")
    with engine.begin() as connection:
        connection.execute(
            text("INSERT INTO my_message (id, message) VALUES (11, 'one'), (14, 'four')")
        )
    taken = []
    while len(taken) < 2:
        with engine.begin() as connection:
            found = connection.execute(take, {"n": 1, "s": 60}).all()
            for message_id, _ in found:
                assert connection.execute(ack, {"id": message_id}).rowcount == 1
        taken += [message_id for message_id, _ in found]
    assert sorted(taken) == [11, 14], taken
    with Session(engine) as session:
        assert session.execute(take, {"n": 5, "s": 0}).all() == []


if __name__ == "__main__":
    main()
