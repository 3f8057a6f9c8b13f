// A producer for Node with mysql2: npm install && node producer.js < messages, one message per line.
//
// Each message is sent once, even if the connection breaks. The program chooses the id, so it can repeat an INSERT whose
// outcome is unknown: if the first one took effect, the second one is a duplicate.
"use strict";
const mysql = require("mysql2/promise");
const { randomBytes } = require("node:crypto");
const readline = require("node:readline");
const { setTimeout: sleep } = require("node:timers/promises");

const SILENCE_S = 30; // then a connection is replaced
const PATIENCE_S = 60; // then a message fails with the error
const DUPLICATE = 1062;
// Temporary errors: a full or stopping proxy, an unavailable shard, a lock, a deadlock, a lost connection.
const PASSING = new Set([1040, 1053, 1105, 1205, 1213, 2013, 4031]);
const server = {
  host: process.env.HOST ?? "127.0.0.1",
  port: Number(process.env.PORT ?? 15306),
  user: process.env.USER_NAME ?? "app",
  password: process.env.PASSWORD ?? "app-password",
  database: "commerce",
};
let connection;

async function connect() {
  const opened = await mysql.createConnection(server);
  return opened.on("error", () => {}); // the next statement fails with it
}

// Sends a message, commits it and returns its id.
async function send(message) {
  const id = randomBytes(8).readBigUInt64BE() >> 11n || 1n; // every driver keeps 53 bits
  const sql = `INSERT INTO my_message (id, message) VALUES (${id}, ?)`;
  const end = Date.now() + PATIENCE_S * 1000;
  let isRepeated = false;
  for (let pause = 100; ; pause = Math.min(pause * 2, 10_000)) {
    try {
      connection ??= await connect();
      await connection.query({ sql, values: [message], timeout: SILENCE_S * 1000 });
      return id;
    } catch (error) {
      if (error.errno === DUPLICATE && isRepeated) return id;
      const isRefused = error.errno > 0 && !PASSING.has(error.errno); // without a number the connection broke
      if (isRefused || Date.now() > end) throw error;
      console.error("again in a moment:", error.message);
      connection?.destroy();
      connection = undefined;
      isRepeated = true;
    }
    await sleep(pause * (0.5 + Math.random() / 2));
  }
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    console.log("sent", String(await send(line)));
  }
  connection?.destroy();
}

main();
