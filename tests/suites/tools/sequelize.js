// Sequelize's calls that look at a whole schema: node sequelize.js STEP
const { DataTypes, Sequelize } = require("sequelize");

const { PORT: port, DATABASE: database, DIALECT: dialect } = process.env;
const sequelize = new Sequelize(database, "root", "", { dialect, host: "127.0.0.1", port, logging: false });
sequelize.define("item", { name: DataTypes.STRING }, { freezeTableName: true });
const schema = sequelize.getQueryInterface();
const steps = {
  sync: () => sequelize.sync({ alter: true }),
  describe: async () => {
    for (const table of await schema.showAllTables()) {
      const indexes = await schema.showIndex(table);
      console.log(table, Object.keys(await schema.describeTable(table)).join(), indexes.map((one) => one.name).join());
    }
  },
  drop: () => schema.dropAllTables(),
};
steps[process.argv[2]]().then(() => sequelize.close());
