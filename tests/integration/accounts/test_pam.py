"""A user whose account is PAM's logs in by either of its plugins, and is who PAM says.

The server runs with a configuration of PAM of its own, in a mount namespace: the machine's stays as it is.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pymysql
import pytest

from streamfrom.proxy.embedded.servers import EmbeddedServer, Family, find_server
from tests.fixtures.database_servers import IN_HASTE, OPTIONS, execute, root
from tests.fixtures.running_proxy import RunningProxy, user_toml
from tests.fixtures.streams import refused, rows, run, value


PASSWORD = "sésame's"
PROGRAM = """#!/bin/sh
# --no-defaults: as it is called.
exec unshare --mount sh -c '
  mount --bind {folder}/pam.d /etc/pam.d && mount --bind {folder}/security /etc/security && exec "$0" "$@"
' {server} "$@"
"""
SERVICE = """auth required pam_exec.so quiet expose_authtok {folder}/check
auth required pam_user_map.so
account required pam_permit.so
"""
CHECK = f"""#!/bin/sh
[ "$(tr -d '\\0')" = "{PASSWORD}" ]
"""


def wrapped(server: Path, folder: Path) -> Path:
    """Return a program that runs *server* where the files of PAM are those in *folder*."""
    texts = {
        "pam.d/shop": SERVICE.format(folder=folder),
        "security/user_map.conf": "ann: reader\nbob: bob\n",
        "check": CHECK,
        "mariadbd": PROGRAM.format(folder=folder, server=server),
    }
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    return folder / "mariadbd"


@pytest.fixture(scope="module", params=["dialog", "mysql_clear_password"])
def pam_server(request, tmp_path_factory):
    program = find_server(Family.MARIADB)
    if program is None:
        pytest.skip("no mariadb server on this machine")
    if os.geteuid() or shutil.which("unshare") is None:
        pytest.skip("a configuration of PAM of its own needs root and the program `unshare`")
    if subprocess.run(["unshare", "--mount", "true"], check=False).returncode:
        pytest.skip("no mount namespaces here")
    folder = tmp_path_factory.mktemp("pam")
    clear = "ON" if request.param == "mysql_clear_password" else "OFF"
    options = ("--plugin-load-add=auth_pam", f"--loose-pam-use-cleartext-plugin={clear}")
    made = EmbeddedServer(
        folder / "server",
        program=wrapped(program, folder),
        options=(*OPTIONS, *IN_HASTE, *options),
    )
    with made as server:
        asked = "SELECT plugin_status FROM information_schema.plugins WHERE plugin_name = 'pam'"
        found = execute(server, asked)
        if found != (("ACTIVE",),):
            pytest.skip("this MariaDB has no plugin auth_pam")
        assert value(root(server), "SELECT @@pam_use_cleartext_plugin") == (clear == "ON")
        execute(server, "CREATE DATABASE shop CHARACTER SET utf8mb4")
        execute(server, "CREATE TABLE t (id INT PRIMARY KEY, secret INT)", database="shop")
        for name in ("ann", "bob"):
            execute(server, f"CREATE USER {name}@'%' IDENTIFIED VIA pam USING 'shop'")
        execute(server, "CREATE USER reader@'%' IDENTIFIED BY 'unused'")
        execute(server, "GRANT SELECT (id) ON shop.t TO reader@'%'")
        execute(server, "GRANT SELECT ON shop.* TO bob@'%'")
        yield server


def config(server: EmbeddedServer, *, password: str = PASSWORD, options: str = "") -> str:
    users = user_toml("ann", password) + user_toml("bob", password)
    return (
        '[server]\nlisten = "127.0.0.1:0"\n[keyspaces.shop]\n[[keyspaces.shop.shards]]\nname = "0"\n'
        f'primary = "mysql://root@127.0.0.1:{server.port}/shop{options}"\n{users}'
    )


def by_socket(server: EmbeddedServer) -> str:
    return f"?unix_socket={server.socket}"


def connect(proxy: RunningProxy, name: str, password: str = PASSWORD) -> Any:
    return proxy.connect(
        user=name, password=password.encode(), database="shop", autocommit=True
    )


def refusal(proxy: RunningProxy, name: str, password: str = PASSWORD) -> tuple[int, str]:
    """Return the error of the first statement of a session; the driver may send one at its login."""
    with pytest.raises(pymysql.MySQLError) as caught:
        rows(connect(proxy, name, password), "SELECT id FROM t")
    code, text = caught.value.args
    return code, text


def test_an_account_of_pam_is_whom_pam_names(pam_server, start_proxy):
    proxy = start_proxy(config(pam_server, options=by_socket(pam_server)))
    bob = connect(proxy, "bob")
    assert value(bob, "SELECT CURRENT_USER()") == "bob@%"
    assert rows(bob, "SELECT secret FROM t") == ()
    # PAM makes a reader of ann, which her account may not be yet.
    code, text = refusal(proxy, "ann")
    assert (code in {1045, 1698}, "shard '0'" in text) == (True, True), (code, text)
    execute(pam_server, "GRANT PROXY ON reader@'%' TO ann@'%'")
    try:
        for _ in range(3):
            ann = connect(proxy, "ann")
            assert value(ann, "SELECT CURRENT_USER()") == "reader@%"
            assert rows(ann, "SELECT id FROM t") == ()
            assert refused(ann, "SELECT secret FROM t")[0] == 1143
            assert value(ann, "SELECT @a") is None
            run(ann, "SET @a = 1")
            ann.close()
    finally:
        execute(pam_server, "REVOKE PROXY ON reader@'%' FROM ann@'%'")
    assert PASSWORD not in proxy.log()


def test_the_password_goes_over_no_open_connection(pam_server, start_proxy):
    code, text = refusal(start_proxy(config(pam_server)), "bob")
    assert (code, "over TLS or a unix socket only" in text) == (2061, True), (code, text)


def test_a_password_that_pam_refuses_is_the_servers_refusal(pam_server, start_proxy):
    made = config(pam_server, password="another", options=by_socket(pam_server))
    code, text = refusal(start_proxy(made), "bob", "another")
    assert (code, "shard '0'" in text, "another" in text) == (1045, True, False), (code, text)
