// Consumes messages with a driver's default settings, and acknowledges each by the id that it was given.
const assert = require("node:assert/strict");

const [driver, port, database, count] = process.argv.slice(2);
const connection = require(driver).createConnection({ host: "127.0.0.1", port: Number(port), user: "root", database });

function query(sql, values) {
  return new Promise((resolve, reject) => {
    connection.query(sql, values, (error, result) => (error ? reject(error) : resolve(result)));
  });
}

async function main() {
  for (let left = Number(count); left > 0;) {
    for (const { id } of await query("STREAM id FROM job LIMIT 10 WAIT 20")) {
      const { affectedRows } = await query("UPDATE job SET time_acked = NOW() WHERE id = ?", [id]);
      assert.equal(affectedRows, 1, String(id));
      left -= 1;
    }
  }
  connection.end();
  console.log("ok");
}

main().catch((error) => { console.error(error); process.exit(1); });
