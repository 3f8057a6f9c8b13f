import java.math.BigDecimal;
import java.math.BigInteger;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.sql.Types;
import java.util.Arrays;

/**
 * What a Java program does with prepared statements, with MariaDB Connector/J.
 *
 * <p>Usage: Driver PORT DATABASE. Prints "ok", or what went wrong, and exits with 1.
 */
public final class Driver {
  private static void expect(String what, Object got, Object wanted) {
    if (!wanted.equals(got)) {
      throw new AssertionError(what + ": got " + got + ", wanted " + wanted);
    }
  }

  public static void main(String[] arguments) throws Exception {
    String url =
        "jdbc:mariadb://127.0.0.1:" + arguments[0] + "/" + arguments[1]
            + "?user=root&useServerPrepStmts=true";
    try (Connection db = DriverManager.getConnection(url)) {
      types(db);
      repeated(db);
      transactions(db);
      faults(db);
      messages(db);
    } catch (Throwable fault) {
      fault.printStackTrace(System.out);
      System.exit(1);
    }
    System.out.println("ok");
  }

  private static void types(Connection db) throws SQLException {
    byte[] big = new byte[1_200_000];
    Arrays.fill(big, (byte) '\'');
    Timestamp moment = Timestamp.valueOf("2026-01-02 03:04:05.000678");
    try (PreparedStatement insert = db.prepareStatement(
        "INSERT INTO item (id, unsigned_value, name, price, ratio, moment, body)"
            + " VALUES (?, ?, ?, ?, ?, ?, ?)")) {
      insert.setLong(1, 1);
      insert.setObject(2, new BigInteger("18446744073709551615"));
      insert.setString(3, "hällo 🎉");
      insert.setBigDecimal(4, new BigDecimal("123.45000"));
      insert.setDouble(5, 0.1);
      insert.setTimestamp(6, moment);
      insert.setBinaryStream(7, new java.io.ByteArrayInputStream(big));
      expect("inserted", insert.executeUpdate(), 1);
    }
    try (PreparedStatement insert =
        db.prepareStatement("INSERT INTO item (id, name) VALUES (?, ?), (?, ?)")) {
      insert.setInt(1, 4);
      insert.setNull(2, Types.VARCHAR);
      insert.setInt(3, 7);
      insert.setString(4, "");
      expect("inserted", insert.executeUpdate(), 2);
    }
    try (PreparedStatement select = db.prepareStatement("SELECT * FROM item WHERE id = ?")) {
      select.setInt(1, 1);
      ResultSet row = select.executeQuery();
      expect("a row", row.next(), true);
      expect("unsigned", row.getString("unsigned_value"), "18446744073709551615");
      expect("name", row.getString("name"), "hällo 🎉");
      expect("price", row.getBigDecimal("price"), new BigDecimal("123.45000"));
      expect("ratio", row.getDouble("ratio"), 0.1);
      expect("moment", row.getTimestamp("moment"), moment);
      expect("body", Arrays.equals(row.getBytes("body"), big), true);
      select.setInt(1, 4);
      row = select.executeQuery();
      expect("a row", row.next(), true);
      expect("NULL", String.valueOf(row.getString("name")), "null");
    }
  }

  private static void repeated(Connection db) throws SQLException {
    try (PreparedStatement select =
        db.prepareStatement("SELECT id FROM item WHERE id >= ? AND id < ?")) {
      select.setFetchSize(1);
      for (int turn = 0; turn < 100; turn++) {
        select.setInt(1, 1);
        select.setInt(2, turn % 2 == 0 ? 4 : 5);
        ResultSet rows = select.executeQuery();
        int count = 0;
        while (rows.next()) {
          count++;
        }
        expect("rows", count, turn % 2 == 0 ? 1 : 2);
      }
    }
  }

  private static void transactions(Connection db) throws SQLException {
    db.setAutoCommit(false);
    try (PreparedStatement update =
        db.prepareStatement("UPDATE item SET name = ? WHERE id = ?")) {
      update.setString(1, "changed");
      update.setInt(2, 7);
      expect("updated", update.executeUpdate(), 1);
    }
    db.rollback();
    db.setAutoCommit(true);
    try (PreparedStatement select = db.prepareStatement("SELECT name FROM item WHERE id = ?")) {
      select.setInt(1, 7);
      ResultSet row = select.executeQuery();
      row.next();
      expect("after", row.getString(1), "");
    }
  }

  private static void faults(Connection db) throws SQLException {
    try (PreparedStatement insert =
        db.prepareStatement("INSERT INTO item (id, name) VALUES (?, ?)")) {
      insert.setInt(1, 1);
      insert.setString(2, "again");
      insert.executeUpdate();
      throw new AssertionError("a duplicate was inserted");
    } catch (SQLException refusal) {
      expect("duplicate", refusal.getErrorCode(), 1062);
    }
  }

  private static void messages(Connection db) throws SQLException {
    try (PreparedStatement insert =
        db.prepareStatement("INSERT INTO my_message (id, message) VALUES (?, ?)")) {
      for (int id : new int[] {1, 4}) {
        insert.setInt(1, id);
        insert.setString(2, "message " + id);
        insert.addBatch();
      }
      insert.executeBatch();
    }
    try (PreparedStatement ack =
        db.prepareStatement("UPDATE my_message SET time_acked = NOW() WHERE id IN (?, ?)")) {
      ack.setInt(1, 1);
      ack.setInt(2, 4);
      expect("acked", ack.executeUpdate(), 2);
      expect("acked again", ack.executeUpdate(), 0);
    }
  }
}
