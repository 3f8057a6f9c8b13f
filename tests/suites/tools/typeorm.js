// TypeORM's calls that look at a whole schema: node typeorm.js STEP
const { DataSource, EntitySchema } = require("typeorm");

const { PORT: port, DATABASE: database, DIALECT: type } = process.env;
const item = new EntitySchema({
  name: "item",
  columns: { id: { type: Number, primary: true, generated: true }, name: { type: String, length: 40 } },
});
const source = new DataSource({ type, host: "127.0.0.1", port, username: "root", database, entities: [item] });
const steps = {
  synchronize: () => source.synchronize(),
  describe: async () => {
    const runner = source.createQueryRunner();
    // Without names it reads the server's own tables as well, and fails at a generated column of MySQL's.
    const names = (await runner.query("SHOW TABLES")).map((row) => Object.values(row)[0]);
    for (const table of await runner.getTables(names)) {
      console.log(table.name, table.columns.map((one) => `${one.name} ${one.type}`).join(), table.indices.length);
    }
    await runner.release();
  },
  drop: () => source.dropDatabase(),
};
source.initialize().then(() => steps[process.argv[2]]()).then(() => source.destroy());
