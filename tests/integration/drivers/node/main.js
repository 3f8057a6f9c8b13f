// What a Node program does with prepared statements, with mysql2's execute().
//
// Usage: node main.js PORT DATABASE. Prints "ok", or what went wrong, and exits with 1.
"use strict";
const assert = require("node:assert/strict");
const mysql = require("mysql2/promise");

async function main() {
  const options = {
    host: "127.0.0.1", port: Number(process.argv[2]), user: "root", database: process.argv[3],
    supportBigNumbers: true, bigNumberStrings: true, timezone: "Z",
  };
  const db = await mysql.createConnection(options);
  const big = Buffer.alloc(1_200_000, "\0\xff'\\", "latin1");
  const moment = new Date(Date.UTC(2026, 0, 2, 3, 4, 5));
  await db.execute(
    "INSERT INTO item (id, unsigned_value, name, price, ratio, moment, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
    [1, "18446744073709551615", "hällo 🎉", "123.45000", 0.1, moment, big]);
  await db.execute("INSERT INTO item (id, name) VALUES (?, ?), (?, ?)", [4, null, 7, ""]);
  const [[row]] = await db.execute("SELECT * FROM item WHERE id = ?", [1]);
  assert.equal(row.unsigned_value, "18446744073709551615");
  assert.equal(row.name, "hällo 🎉");
  assert.equal(row.price, "123.45000");
  assert.equal(row.ratio, 0.1);
  assert.deepEqual(row.moment, moment);
  assert.ok(row.body.equals(big));
  const [[nothing]] = await db.execute("SELECT name FROM item WHERE id = ?", [4]);
  assert.equal(nothing.name, null);

  const pool = mysql.createPool({ ...options, connectionLimit: 8 });
  await Promise.all(Array.from({ length: 200 }, async (_, turn) => {
    const [rows] = await pool.execute("SELECT id FROM item WHERE id >= ? AND id < ?", [1, turn % 2 ? 4 : 5]);
    assert.equal(rows.length, turn % 2 ? 1 : 2);
  }));
  await pool.end();

  await db.beginTransaction();
  await db.execute("UPDATE item SET name = ? WHERE id = ?", ["changed", 7]);
  await db.rollback();
  const [[same]] = await db.execute("SELECT name FROM item WHERE id = ?", [7]);
  assert.equal(same.name, "");
  await assert.rejects(db.execute("INSERT INTO item (id, name) VALUES (?, ?)", [1, "again"]), { errno: 1062 });
  await assert.rejects(db.execute("SELECT nothing FROM item"), { errno: 1054 });

  await db.execute("INSERT INTO my_message (id, message) VALUES (?, ?), (?, ?)", [1, "one", 4, "four"]);
  const reader = await mysql.createConnection(options);
  const seen = await new Promise((resolve, reject) => {
    const found = [];
    reader.connection.execute("STREAM * FROM my_message")
      .on("result", (message) => { found.push(message); if (found.length === 2) resolve(found); })
      .on("error", reject);
  });
  reader.destroy();
  assert.deepEqual(seen.map((message) => message.message).sort(), ["four", "one"]);
  for (const message of seen) {
    const [acked] = await db.execute(
      "UPDATE my_message SET time_acked = NOW() WHERE id = ?", [message.id]);
    assert.equal(acked.affectedRows, 1);
  }
  await db.end();
  console.log("ok");
}

main().catch((fault) => { console.log(fault); process.exit(1); });
