"""Opens phpMyAdmin's pages with two keyspaces: python pages.py PHPMYADMIN's FOLDER. Ends with the pages that show an error."""

import http.cookiejar
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path


START_S = 120.0
# Each with what it must show.
PAGES = {
    "/": "Server version",
    "/server/databases": "stock",
    "/server/variables": "sql_mode",
    "/server/status": "Traffic",
    "/server/collations": "utf8mb4_bin",
    "/server/engines": "InnoDB",
    "/database/structure&db=shop": "customer",
    "/database/structure&db=stock": "part",
    "/database/sql&db=stock": "Run SQL",
    "/database/search&db=shop": "Search in database",
    "/database/export&db=shop": "customer",
    "/database/routines&db=stock": "Routines",
    "/database/triggers&db=stock": "Triggers",
    "/database/operations&db=stock": "Collation",
    "/database/data-dictionary&db=shop": "purchase",
    "/table/structure&db=stock&table=part": "word",
    "/table/operations&db=stock&table=part": "Table options",
    "/table/export&db=stock&table=part": "part",
    "/table/relation&db=shop&table=purchase": "customer_id",
    "/table/search&db=stock&table=part": "word",
    "/sql&db=stock&table=part&pos=0": "bolt",
    "/sql&db=shop&table=customer&pos=0": "Ana",
    "/sql&db=shop&table=job&pos=0": "two",
    "/sql&db=shop&table=names&pos=0": "Ana",
    "/navigation&ajax_request=1": "stock",
}
QUERIES = {
    ("stock", "SELECT word FROM part"): "bolt",
    ("shop", "SELECT payload FROM job ORDER BY id"): "two",
    ("stock", "UPDATE part SET word = 'nut' WHERE id = 1"): "1 row affected",
}
ERROR = re.compile(r"alert alert-danger|Fatal error|Uncaught|#1\d{3} - |mysqli::")
CONFIG = """<?php
$cfg['blowfish_secret'] = '{secret}';
$cfg['Servers'][1] = ['auth_type' => 'config', 'host' => '127.0.0.1', 'port' => '{port}', 'user' => 'root',
    'password' => '', 'AllowNoPassword' => true];
$cfg['TempDir'] = '{folder}';
"""
EXTENSIONS = ("mysqlnd", "mbstring", "ctype", "iconv", "tokenizer", "simplexml", "mysqli")


def started(root: Path, folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Return PHP's own web server before phpMyAdmin, and its address."""
    (folder / "config.inc.php").write_text(
        CONFIG.format(port=os.environ["PORT"], secret="s" * 32, folder=folder)
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = " ".join(f"-d extension={name}" for name in EXTENSIONS)
    script = (
        f"mkdir -p /etc/phpmyadmin && cp {folder}/config.inc.php /etc/phpmyadmin/ &&"
        f" exec php8.2 {options} -d session.save_path={folder} -S 127.0.0.1:{port} -t /usr/share/phpmyadmin"
    )
    inside = Path(__file__).with_name("inside.sh")
    command = [str(inside), str(root), "sh", "-c", script]
    log = (folder / "php.log").open("wb")
    return subprocess.Popen(command, stdout=log, stderr=log), f"http://127.0.0.1:{port}/"


def main() -> None:
    folder = Path.cwd()
    php, address = started(Path(sys.argv[1]), folder)
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    wrong = []

    def shown(path: str, **form: str) -> str:
        data = urllib.parse.urlencode(form).encode() if form else None
        try:
            with browser.open(f"{address}index.php?route={path}", data, START_S) as answer:
                return str(answer.read(), "utf-8")
        except urllib.error.HTTPError as error:
            return f"Uncaught {error.code}: {error.read().decode()}"

    def look(name: str, page: str, wanted: str) -> None:
        (folder / f"{len(list(folder.iterdir()))}.html").write_text(f"<!-- {name} -->{page}")
        page = re.sub("(?s)<noscript>.*?</noscript>", "", page)
        fault = ERROR.search(page)
        if fault or wanted not in page:
            start = max(0, fault.start() - 100) if fault else 0
            wrong.append(f"{name}: no {wanted!r}, or {page[start : start + 600]!r}")

    try:
        deadline = time.monotonic() + START_S
        front = ""
        while not front:
            try:
                front = shown("/")
            except OSError:
                if time.monotonic() > deadline or php.poll() is not None:
                    sys.exit((folder / "php.log").read_text())
                time.sleep(0.1)
        token = re.search(r'name="token" value="([^"]+)"', front)
        for path, wanted in PAGES.items():
            look(path, shown(path), wanted)
        for (database, sql), wanted in QUERIES.items():
            form = {"token": token[1] if token else "", "db": database, "sql_query": sql}
            look(sql, shown("/import", **form, is_js_confirmed="0", pos="0"), wanted)
    finally:
        php.terminate()
        php.wait()
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{len(PAGES) + len(QUERIES)} pages")


if __name__ == "__main__":
    main()
