// A consumer for Node with mysql2: npm install && node consumer.js, stopped by SIGTERM or Ctrl-C.
//
// Each worker takes a message, does the work and acknowledges, over its own connection. Running work is finished and
// acknowledged, also after the signal and while the proxy restarts. A heartbeat extends the lease of long work. Failed
// work is retried, each time later.
"use strict";
const mysql = require("mysql2/promise");
const { setTimeout: sleep } = require("node:timers/promises");

const WORKERS = 4;
const HEARTBEAT_S = 10; // well below the lease, vt_ack_wait
const SILENCE_S = 30; // then a connection is replaced; well above WAIT
const TAKE = "STREAM id, message FROM my_message LIMIT 1 WAIT 5";
const MINE = "WHERE id = ? AND time_acked IS NULL";
const HEARTBEAT = `UPDATE my_message SET time_next = time_next + INTERVAL ${HEARTBEAT_S} SECOND ${MINE}`;
const ACK = `UPDATE my_message SET time_acked = NOW() ${MINE}`;
// Permanent errors: a wrong password, a missing right, database, table or column, wrong or unsupported SQL.
const PERMANENT = new Set([1044, 1045, 1049, 1054, 1064, 1142, 1146, 1235]);
const server = {
  host: process.env.HOST ?? "127.0.0.1",
  port: Number(process.env.PORT ?? 15306),
  user: process.env.USER_NAME ?? "app",
  password: process.env.PASSWORD ?? "app-password",
  database: "commerce",
  jsonStrings: true, // else JSON is parsed with MySQL and a string with MariaDB
};
let stopping = false;

async function work(message) {
  console.log("working on", message); // your work; a message may come twice
}

async function connect() {
  const connection = await mysql.createConnection(server);
  return connection.on("error", () => {}); // the next statement fails with it
}

async function consume() {
  let connection; // a promise, which a heartbeat and an acknowledgement may wait for together

  // Returns rows, or the number of changed rows; while the proxy is away, tries again.
  async function run(sql, ...values) {
    for (let pause = 100; ; pause = Math.min(pause * 2, 10_000)) {
      const mine = (connection ??= connect());
      try {
        const [found] = await (await mine).query({ sql, values, timeout: SILENCE_S * 1000 });
        return found.affectedRows ?? found;
      } catch (error) {
        if (connection === mine) connection = undefined;
        mine.then((broken) => broken.destroy(), () => {});
        if (PERMANENT.has(error.errno)) throw error;
        if (stopping && sql === TAKE) return [];
        console.log("again in a moment:", error.message);
      }
      await sleep(pause * (0.5 + Math.random() / 2));
    }
  }

  while (!stopping) {
    for (const { id, message } of await run(TAKE)) {
      const beating = setInterval(() => run(HEARTBEAT, id), HEARTBEAT_S * 1000);
      try {
        await work(message);
      } catch (error) {
        console.log(id, "failed:", error);
        continue;
      } finally {
        clearInterval(beating);
      }
      if (!await run(ACK, id)) console.log(id, "was acknowledged before");
    }
  }
  if (connection) (await connection).destroy();
}

for (const name of ["SIGTERM", "SIGINT"]) process.on(name, () => { stopping = true; });
for (let worker = 0; worker < WORKERS; worker++) consume();
