import java.io.ByteArrayInputStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * What a Java program does with a JDBC driver: MySQL Connector/J, MariaDB Connector/J 2 and 3.
 *
 * <p>Usage: Driver DRIVER PORT DATABASE USER TLS PREPARED, DRIVER being mysql, mariadb2 or
 * mariadb3, the last two 0 or 1. Prints "ok", or what went wrong, and exits with 1.
 */
public final class Driver {
  private static final int ROWS = 20_000;

  private final String url;
  private final boolean mysql;

  private Driver(String[] arguments) {
    String driver = arguments[0];
    mysql = driver.equals("mysql");
    boolean tls = arguments[4].equals("1");
    String address =
        (mysql ? "jdbc:mysql" : "jdbc:mariadb") + "://127.0.0.1:" + arguments[1] + "/" + arguments[2]
            + "?user=" + arguments[3] + (arguments[3].equals("root") ? "" : "&password=secret")
            + "&useServerPrepStmts=" + arguments[5].equals("1");
    if (driver.equals("mariadb2")) {
      url = address + (tls ? "&useSsl=true&trustServerCertificate=true" : "");
    } else if (mysql) {
      url = address + (tls ? "&sslMode=REQUIRED" : "&sslMode=DISABLED");
    } else {
      url = address + (tls ? "&sslMode=trust" : "&sslMode=disable");
    }
  }

  public static void main(String[] arguments) {
    try {
      new Driver(arguments).everything();
    } catch (Throwable fault) {
      fault.printStackTrace(System.out);
      System.exit(1);
    }
    System.out.println("ok");
  }

  private static void expect(String what, Object got, Object wanted) {
    if (!wanted.equals(got)) {
      throw new AssertionError(what + ": got " + got + ", wanted " + wanted);
    }
  }

  private Connection connect(String options) throws SQLException {
    return DriverManager.getConnection(url + options);
  }

  private static PreparedStatement prepare(Connection db, String sql, Object... values)
      throws SQLException {
    PreparedStatement statement = db.prepareStatement(sql);
    for (int place = 0; place < values.length; place++) {
      statement.setObject(place + 1, values[place]);
    }
    return statement;
  }

  private static int change(Connection db, String sql, Object... values) throws SQLException {
    try (PreparedStatement statement = prepare(db, sql, values)) {
      return statement.executeUpdate();
    }
  }

  /** Returns the first row of an answer. MySQL's executeQuery() knows no STREAM, so none is used. */
  private static ResultSet first(PreparedStatement statement) throws SQLException {
    expect("rows", statement.execute(), true);
    ResultSet row = statement.getResultSet();
    expect("a row", row.next(), true);
    return row;
  }

  private void everything() throws SQLException {
    try (Connection db = connect("")) {
      types(db);
      transactions(db);
      faults(db);
      batches();
      large(db);
      generated(db);
      messages(db);
    }
    killed();
  }

  private void types(Connection db) throws SQLException {
    byte[] big = new byte[1_200_000];
    Arrays.fill(big, (byte) '\'');
    // Before MariaDB, MySQL's driver cuts fractions off, and sends a BigInteger as one with a sign.
    Timestamp moment = Timestamp.valueOf("2026-01-02 03:04:05" + (mysql ? "" : ".000678"));
    BigInteger unsigned = new BigInteger("18446744073709551615");
    try (PreparedStatement insert = db.prepareStatement(
        "INSERT INTO item (id, unsigned_value, name, price, ratio, moment, body)"
            + " VALUES (?, ?, ?, ?, ?, ?, ?)")) {
      insert.setLong(1, 1);
      insert.setObject(2, mysql ? unsigned.toString() : unsigned);
      insert.setString(3, "hällo 🎉");
      insert.setBigDecimal(4, new BigDecimal("123.45000"));
      insert.setDouble(5, 0.1);
      insert.setTimestamp(6, moment);
      insert.setBinaryStream(7, new ByteArrayInputStream(big));
      expect("inserted", insert.executeUpdate(), 1);
    }
    String two = "INSERT INTO item (id, name) VALUES (?, ?), (?, ?)";
    expect("inserted", change(db, two, 4, null, 7, ""), 2);
    try (PreparedStatement select = prepare(db, "SELECT * FROM item WHERE id = ?", 1)) {
      ResultSet row = first(select);
      expect("unsigned", row.getString("unsigned_value"), unsigned.toString());
      expect("name", row.getString("name"), "hällo 🎉");
      expect("price", row.getBigDecimal("price"), new BigDecimal("123.45000"));
      expect("ratio", row.getDouble("ratio"), 0.1);
      expect("moment", row.getTimestamp("moment"), moment);
      expect("body", Arrays.equals(row.getBytes("body"), big), true);
      select.setInt(1, 4);
      expect("NULL", String.valueOf(first(select).getString("name")), "null");
    }
    try (ResultSet columns = db.getMetaData().getColumns(db.getCatalog(), null, "item", "%")) {
      expect("a column", columns.next(), true);
      expect("the first column", columns.getString("COLUMN_NAME"), "id");
    }
  }

  private static String name(Connection db) throws SQLException {
    try (PreparedStatement select = prepare(db, "SELECT name FROM item WHERE id = ?", 7)) {
      return first(select).getString(1);
    }
  }

  private static void transactions(Connection db) throws SQLException {
    db.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
    expect("isolation", db.getTransactionIsolation(), Connection.TRANSACTION_READ_COMMITTED);
    for (boolean commits : new boolean[] {false, true}) {
      db.setAutoCommit(false);
      String update = "UPDATE item SET name = ? WHERE id = ?";
      expect("updated", change(db, update, "changed", 7), 1);
      expect("inside", name(db), "changed");
      if (commits) {
        db.commit();
      } else {
        db.rollback();
      }
      db.setAutoCommit(true);
      expect("after", name(db), commits ? "changed" : "");
    }
  }

  private static void faults(Connection db) throws SQLException {
    Map<String, Integer> codes =
        Map.of(
            "INSERT INTO item (id) VALUES (1)", 1062,
            "SELECT nothing FROM item", 1054,
            "FROBNICATE 1", 1064);
    for (Map.Entry<String, Integer> one : codes.entrySet()) {
      try (PreparedStatement refused = db.prepareStatement(one.getKey())) {
        refused.execute();
        throw new AssertionError(one.getKey() + " was not refused");
      } catch (SQLException refusal) {
        expect(one.getKey(), refusal.getErrorCode(), one.getValue());
      }
    }
    expect("valid", db.isValid(5), true);
  }

  /** Fills the table, by statements that the driver writes together and by single ones. */
  private void batches() throws SQLException {
    int id = 100;
    for (String rewrites : new String[] {"&rewriteBatchedStatements=true", ""}) {
      int rows = rewrites.isEmpty() ? 500 : ROWS - 500;
      try (Connection db = connect(rewrites);
          PreparedStatement insert =
              db.prepareStatement("INSERT INTO item (id, name) VALUES (?, ?)")) {
        db.setAutoCommit(false);
        for (int row = 0; row < rows; row++) {
          insert.setInt(1, id++);
          insert.setString(2, "x".repeat(90));
          insert.addBatch();
        }
        int[] counts = insert.executeBatch();
        expect("batch", counts.length, rows);
        expect("counts", rewrites.isEmpty() ? Arrays.stream(counts).sum() : rows, rows);
        db.commit();
      }
    }
    Set<Long> made = new TreeSet<>();
    try (Connection db = connect("");
        PreparedStatement insert =
            db.prepareStatement(
                "INSERT INTO job (number) VALUES (?)", Statement.RETURN_GENERATED_KEYS);
        PreparedStatement ack = db.prepareStatement("UPDATE job SET time_acked = ? WHERE id = ?")) {
      for (int number = 0; number < 9; number++) {
        insert.setInt(1, number);
        insert.addBatch();
      }
      expect("sent", Arrays.stream(insert.executeBatch()).sum(), 9);
      ResultSet keys = insert.getGeneratedKeys();
      while (keys.next()) {
        made.add(keys.getLong(1));
      }
      expect("keys", made.size(), 9);
      for (Long moment : new Long[] {null, System.currentTimeMillis() * 1_000_000}) {
        for (long key : made) {
          ack.setObject(1, moment);
          ack.setLong(2, key);
          ack.addBatch();
        }
      }
      expect("left, then acked", Arrays.stream(ack.executeBatch()).sum(), 18);
    }
  }

  /** Reads a large answer: whole, row by row, and some rows at a time by a server's cursor. */
  private void large(Connection plain) throws SQLException {
    int[] sizes = {0, mysql ? Integer.MIN_VALUE : 1, 700};
    for (int size : sizes) {
      boolean fetches = size == 700;
      Connection db = fetches && mysql ? connect("&useCursorFetch=true") : plain;
      try (PreparedStatement select =
          db.prepareStatement("SELECT id, name FROM item WHERE id >= ?")) {
        select.setFetchSize(size);
        select.setInt(1, 100);
        ResultSet rows = select.executeQuery();
        int count = 0;
        while (rows.next()) {
          expect("name", rows.getString(2).length(), 90);
          count++;
        }
        expect("rows, by " + size, count, ROWS);
      }
      // Where no cursor is opened, Connector/J waits for ever for the end of no rows.
      try (PreparedStatement none =
          db.prepareStatement("SELECT id FROM item WHERE name = 'nobody'")) {
        none.setFetchSize(size);
        expect("a row", none.executeQuery().next(), false);
      }
      if (db != plain) {
        db.close();
      }
    }
  }

  /** Takes and acknowledges jobs by STREAM … LIMIT, which is an answer that ends; returns their ids. */
  private static Set<Long> take(Connection db, int count) throws SQLException {
    Set<Long> ids = new TreeSet<>();
    try (PreparedStatement take = prepare(db, "STREAM id FROM job LIMIT ? WAIT ?", 5, 60);
        PreparedStatement ack =
            db.prepareStatement("UPDATE job SET state = 'acked' WHERE id = ?")) {
      while (ids.size() < count) {
        expect("rows", take.execute(), true);
        ResultSet rows = take.getResultSet();
        while (rows.next()) {
          ids.add(rows.getLong(1));
          ack.setLong(1, rows.getLong(1));
          expect("acked", ack.executeUpdate(), 1);
        }
      }
      take.setInt(2, 0);
      expect("rows", take.execute(), true);
      expect("another", take.getResultSet().next(), false);
    }
    return ids;
  }

  /** Ids that the proxy makes, as the driver tells them and as they come, over one connection without streaming. */
  private static void generated(Connection db) throws SQLException {
    Set<Long> made = new TreeSet<>();
    try (PreparedStatement insert =
        db.prepareStatement(
            "INSERT INTO job (number) VALUES (?)", Statement.RETURN_GENERATED_KEYS)) {
      for (int number = 1; number <= 3; number++) {
        insert.setInt(1, number);
        expect("inserted", insert.executeUpdate(), 1);
        ResultSet keys = insert.getGeneratedKeys();
        expect("a key", keys.next(), true);
        made.add(keys.getLong(1));
      }
    }
    db.setAutoCommit(false);
    expect("ids", take(db, 3), made);
    db.commit();
    db.setAutoCommit(true);
  }

  private void messages(Connection db) throws SQLException {
    String two = "INSERT INTO my_message (id, message) VALUES (?, ?), (?, ?)";
    expect("inserted", change(db, two, 1, "message 1", 4, "message 4"), 2);
    Map<Integer, String> seen = new HashMap<>();
    Connection reader = connect("");
    PreparedStatement stream = reader.prepareStatement("STREAM id, message FROM my_message");
    stream.setFetchSize(mysql ? Integer.MIN_VALUE : 1);
    expect("rows", stream.execute(), true);
    ResultSet rows = stream.getResultSet();
    try (PreparedStatement ack = db.prepareStatement(
        "UPDATE my_message SET time_acked = NOW() WHERE id = ? AND time_acked IS NULL")) {
      while (seen.size() < 2 && rows.next()) {
        seen.put(rows.getInt(1), rows.getString(2));
        ack.setInt(1, rows.getInt(1));
        expect("acked", ack.executeUpdate(), 1);
        expect("acked again", ack.executeUpdate(), 0);
      }
    }
    expect("messages", seen, Map.of(1, "message 1", 4, "message 4"));
    reader.abort(Runnable::run); // close() would read on to the end of a stream that has none
  }

  private void killed() throws SQLException {
    Connection lost = connect("");
    try (Connection db = connect("");
        Statement statement = db.createStatement();
        Statement ask = lost.createStatement()) {
      ResultSet row = ask.executeQuery("SELECT CONNECTION_ID()");
      row.next();
      statement.execute("KILL " + row.getLong(1));
      try {
        ask.executeQuery("SELECT 1");
        throw new AssertionError("a killed connection works");
      } catch (SQLException gone) {
        expect("valid", lost.isValid(1), false);
      }
    }
    try (Connection back = connect("");
        PreparedStatement count = prepare(back, "SELECT COUNT(*) FROM item")) {
      expect("rows", first(count).getInt(1), ROWS + 3);
    }
  }
}
