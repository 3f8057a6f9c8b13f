// What a Node program does with a driver: mysql2, mariadb.
//
// Usage: node main.js DRIVER PORT DATABASE USER TLS PREPARED, the last two 0 or 1. Prints "ok", or
// what went wrong, and exits with 1.
"use strict";
const assert = require("node:assert/strict");

const ROWS = 20_000;
const [driver, port, database, user, tls, prepared] = process.argv.slice(2);
const options = {
  host: "127.0.0.1", port: Number(port), user, password: user === "root" ? "" : "secret", database,
  supportBigNumbers: true, bigNumberStrings: true, timezone: "Z",
  ...(tls === "1" ? { ssl: { rejectUnauthorized: false } } : {}),
};

// The same few calls of both drivers; a result is an array of rows or has affectedRows.
const drivers = {
  mysql2: () => {
    const mysql = require("mysql2/promise");
    return {
      connect: () => mysql.createConnection(options),
      pool: () => mysql.createPool({ ...options, connectionLimit: 8 }),
      run: async (db, sql, values) =>
        (await (prepared === "1" ? db.execute(sql, values) : db.query(sql, values)))[0],
      stream: async (db, sql) => {
        const command = prepared === "1" ? db.connection.execute(sql) : db.connection.query(sql);
        return command.stream();
      },
    };
  },
  mariadb: () => {
    const mariadb = require("mariadb");
    return {
      connect: () => mariadb.createConnection(options),
      pool: () => mariadb.createPool({ ...options, connectionLimit: 8 }),
      run: (db, sql, values) => (prepared === "1" ? db.execute(sql, values) : db.query(sql, values)),
      stream: async (db, sql) => prepared === "1"
        ? (await db.prepare(sql)).executeStream([]) : db.queryStream(sql),
    };
  },
};

async function main() {
  const { connect, pool, run, stream } = drivers[driver]();
  const db = await connect();
  await values(db, run);

  const crowd = pool();
  await Promise.all(Array.from({ length: 200 }, async (_, turn) => {
    const sql = "SELECT id FROM item WHERE id >= ? AND id < ?";
    const rows = await run(crowd, sql, [1, turn % 2 ? 4 : 5]);
    assert.equal(rows.length, turn % 2 ? 1 : 2);
  }));
  await crowd.end();

  for (const end of ["rollback", "commit"]) {
    await db.beginTransaction();
    await run(db, "UPDATE item SET name = ? WHERE id = ?", ["changed", 7]);
    const [inside] = await run(db, "SELECT name FROM item WHERE id = ?", [7]);
    assert.equal(inside.name, "changed");
    await db[end]();
    const [after] = await run(db, "SELECT name FROM item WHERE id = ?", [7]);
    assert.equal(after.name, end === "commit" ? "changed" : "");
  }
  const again = run(db, "INSERT INTO item (id, name) VALUES (?, ?)", [1, "again"]);
  await assert.rejects(again, { errno: 1062 });
  await assert.rejects(run(db, "SELECT nothing FROM item", []), { errno: 1054 });
  await assert.rejects(run(db, "FROBNICATE 1", []), { errno: 1064 });

  const many = Array.from({ length: ROWS }, (_, number) => `(${number + 100}, '${"x".repeat(90)}')`);
  await db.query(`INSERT INTO item (id, name) VALUES ${many.join(", ")}`);
  let count = 0;
  for await (const row of await stream(db, "SELECT id, name FROM item WHERE id >= 100")) {
    assert.equal(row.name.length, 90);
    count += 1;
  }
  assert.equal(count, ROWS);
  await messages(db, connect, run, stream);

  const other = await connect();
  db.on("error", () => {}); // the driver tells of the loss by itself as well
  await run(other, `KILL ${db.threadId}`, []).catch((fault) => assert.equal(fault.errno, 1094));
  await assert.rejects(run(db, "SELECT 1", []));
  db.destroy();
  const back = await connect();
  const [{ rows }] = await run(back, "SELECT COUNT(*) AS `rows` FROM item", []);
  assert.equal(Number(rows), ROWS + 3);
  await back.end();
  await other.end();
  console.log("ok");
}

async function values(db, run) {
  const big = Buffer.alloc(1_200_000, "\0\xff'\\", "latin1");
  const moment = new Date(Date.UTC(2026, 0, 2, 3, 4, 5));
  await run(db,
    "INSERT INTO item (id, unsigned_value, name, price, ratio, moment, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
    [1, "18446744073709551615", "hällo 🎉", "123.45000", 0.1, moment, big]);
  const made = await run(db, "INSERT INTO item (id, name) VALUES (?, ?), (?, ?)", [4, null, 7, ""]);
  assert.equal(made.affectedRows, 2);
  const [row] = await run(db, "SELECT * FROM item WHERE id = ?", [1]);
  assert.equal(String(row.unsigned_value), "18446744073709551615");
  assert.equal(row.name, "hällo 🎉");
  assert.equal(row.price, "123.45000");
  assert.equal(row.ratio, 0.1);
  assert.deepEqual(row.moment, moment);
  assert.ok(row.body.equals(big));
  const [nothing] = await run(db, "SELECT name FROM item WHERE id = ?", [4]);
  assert.equal(nothing.name, null);
}

async function messages(db, connect, run, stream) {
  await run(db, "INSERT INTO my_message (id, message) VALUES (?, ?), (?, ?)", [1, "one", 4, "four"]);
  const reader = await connect();
  reader.on("error", () => {});
  const seen = {};
  const rows = await stream(reader, "STREAM id, message FROM my_message");
  rows.on("error", () => {}); // destroy() below ends a stream that has no end
  await new Promise((resolve, reject) => {
    rows.on("data", (message) => {
      const ack = "UPDATE my_message SET time_acked = NOW() WHERE id = ? AND time_acked IS NULL";
      run(db, ack, [message.id]).then((acked) => {
        assert.equal(acked.affectedRows, 1);
        seen[message.id] = message.message;
        if (Object.keys(seen).length === 2) resolve();
      }).catch(reject);
    });
  });
  reader.destroy();
  assert.deepEqual(seen, { 1: "one", 4: "four" });
}

main().catch((fault) => { console.log(fault); process.exit(1); });
