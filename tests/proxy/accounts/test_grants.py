"""Lines as MariaDB 10.11 and MySQL 9.7 wrote them, and what an account may do by them."""

import pytest

from streamfrom.proxy.accounts.grants import ALL, Grant, read_grants


MARIADB = (
    "GRANT `r1` TO `u1`@`%`",
    "GRANT EXECUTE ON *.* TO `u1`@`%` IDENTIFIED BY PASSWORD '*B69027D44F6E5EDC07F1AEAD1477967B16F28227'",
    "GRANT SELECT ON `a``b`.* TO `u1`@`%`",
    "GRANT SELECT ON `al\\_pha%`.* TO `u1`@`%`",
    "GRANT SELECT (`id`), UPDATE (`s`, `t`) ON `beta`.`t` TO `u1`@`%`",
    "GRANT `r2` TO `r1`",
    "GRANT USAGE ON *.* TO `r1`",
    "GRANT INSERT ON `gamma`.* TO `r1`",
    "GRANT SELECT ON *.* TO PUBLIC",
    "SET DEFAULT ROLE `r1` FOR `u1`@`%`",
)
MYSQL = (
    "GRANT SELECT, SHOW VIEW ON *.* TO `u3`@`%`",
    "GRANT BACKUP_ADMIN,XA_RECOVER_ADMIN ON *.* TO `u3`@`%` WITH GRANT OPTION",
    "GRANT ALL PRIVILEGES ON `alpha`.* TO `u3`@`%`",
    "REVOKE SELECT, SHOW VIEW ON `beta`.* FROM `u3`@`%`",
    "GRANT EXECUTE ON PROCEDURE `beta`.`p` TO `u3`@`%`",
    "GRANT PROXY ON `root`@`localhost` TO `u3`@`%`",
    "GRANT `r1`@`%`,`a ON b`@`%` TO `u3`@`%`",
)


def test_mariadbs_lines_are_read():
    rights = read_grants(MARIADB)
    assert rights.roles == ("`r1`",)
    assert rights.granted == (
        Grant(frozenset({"EXECUTE"}), None),
        Grant(frozenset({"SELECT"}), "a`b"),
        Grant(frozenset({"SELECT"}), "al\\_pha%"),
        Grant(frozenset({"SELECT", "UPDATE"}), "beta", "t"),
        Grant(frozenset({"USAGE"}), None),
        Grant(frozenset({"INSERT"}), "gamma"),
        Grant(frozenset({"SELECT"}), None, is_everybodys=True),
    )


def test_mysqls_lines_are_read():
    rights = read_grants(MYSQL)
    assert rights.roles == ("`r1`@`%`", "`a ON b`@`%`")
    assert rights.revoked == (Grant(frozenset({"SELECT", "SHOW VIEW"}), "beta"),)
    assert rights.granted == (
        Grant(frozenset({"SELECT", "SHOW VIEW"}), None),
        Grant(frozenset({"BACKUP_ADMIN", "XA_RECOVER_ADMIN", "GRANT OPTION"}), None),
        Grant(frozenset({ALL}), "alpha"),
        Grant(frozenset({"EXECUTE"}), "beta", "p"),
        Grant(frozenset({"PROXY"}), None),
    )


def test_ansi_quotes_and_names_without_any_are_read():
    assert read_grants(['GRANT SELECT ON "a""b".* TO "u"@"%"']).granted[0].database == 'a"b'
    assert read_grants(["GRANT SELECT ON shop.* TO u@localhost"]).granted[0].database == "shop"


@pytest.mark.parametrize(
    ("database", "may"),
    [
        ("al_pha", {"EXECUTE", "SELECT"}),
        ("al_pha2", {"EXECUTE", "SELECT"}),
        ("gamma", {"EXECUTE", "SELECT", "INSERT"}),
        ("beta", {"EXECUTE", "SELECT", "UPDATE"}),
        ("other", {"EXECUTE", "SELECT"}),
    ],
)
def test_what_may_be_done_in_a_database_is_what_any_line_says(database, may):
    assert read_grants(MARIADB).at(database) == may


def test_a_pattern_is_one_and_an_escaped_character_is_itself():
    rights = read_grants(
        ["GRANT SELECT ON `al\\_pha%`.* TO `u`@`%`", "GRANT DROP ON `x_`.* TO u@h"]
    )
    assert rights.at("al_pha_9")
    assert not rights.at("alxpha")
    assert rights.at("xy")
    assert not rights.at("x")
    # Behind a table's name there is no pattern.
    assert not read_grants(["GRANT SELECT ON `x_`.`t` TO u@h"]).at("xy")


def test_a_partial_revoke_is_left_out_of_what_all_databases_have():
    rights = read_grants(MYSQL)
    assert rights.at("beta") == {"EXECUTE"}
    assert rights.at("gamma") == {"SELECT", "SHOW VIEW"}
    assert rights.at("alpha") == {"SELECT", "SHOW VIEW", ALL}


def test_rights_on_the_server_alone_reach_no_database():
    rights = read_grants(["GRANT PROCESS, REPLICATION CLIENT, RELOAD ON *.* TO `u`@`%`"])
    assert rights.at("alpha") == set()


@pytest.mark.parametrize(
    "line",
    [
        "GRANT USAGE ON *.* TO `u`@`%`",
        "GRANT SELECT, SHOW VIEW ON `shop`.* TO `u`@`%`",
        "GRANT PROCESS, REPLICATION CLIENT ON *.* TO `u`@`%`",
        "GRANT SELECT, BINLOG MONITOR, SLAVE MONITOR ON *.* TO `u`@`%`",
        "GRANT SHOW_ROUTINE ON *.* TO `u`@`%`",
        "SET DEFAULT ROLE `r` FOR `u`@`%`",
    ],
)
def test_to_read_is_not_to_write(line):
    assert read_grants([line]).beyond_reading() == []


@pytest.mark.parametrize(
    ("line", "more", "level"),
    [
        ("GRANT SELECT, INSERT ON `a`.* TO u@h", {"INSERT"}, "`a`.*"),
        ("GRANT SELECT, UPDATE (`c`) ON `a`.`t` TO u@h", {"UPDATE"}, "`a`.`t`"),
        ("GRANT EXECUTE ON FUNCTION `a`.`f` TO u@h", {"EXECUTE"}, "`a`.`f`"),
        ("GRANT SELECT ON `a`.* TO u@h WITH GRANT OPTION", {"GRANT OPTION"}, "`a`.*"),
        ("GRANT FILE ON *.* TO u@h", {"FILE"}, "*.*"),
        ("GRANT LOCK TABLES ON `a``b`.* TO u@h", {"LOCK TABLES"}, "`a``b`.*"),
        ("GRANT ALL PRIVILEGES ON *.* TO u@h", {ALL}, "*.*"),
        ("GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO u@h", {"SYSTEM_VARIABLES_ADMIN"}, "*.*"),
        ("GRANT PROXY ON ''@'%' TO u@h", {"PROXY"}, "*.*"),
    ],
)
def test_everything_else_is_more_than_to_read(line, more, level):
    (found,) = read_grants([line]).beyond_reading()
    assert (found.privileges, found.level) == (more, level)
