import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;

/**
 * A producer with JDBC: java -cp mysql-connector-j.jar Producer.java < messages, one message per line.
 *
 * <p>Each message is sent once, even if the connection breaks. The program chooses the id, so it can repeat an INSERT
 * whose outcome is unknown: if the first one took effect, the second one is a duplicate.
 */
public final class Producer {
  private static final int SILENCE_S = 30; // then a connection is replaced
  private static final int PATIENCE_S = 60; // then a message fails with the error
  private static final int DUPLICATE = 1062;
  // Temporary errors: a full or stopping proxy, an unavailable shard, a lock, a deadlock, a lost connection.
  private static final Set<Integer> PASSING = Set.of(1040, 1053, 1105, 1205, 1213, 2013, 4031);
  private static final String INSERT = "INSERT INTO my_message (id, message) VALUES (?, ?)";

  private Connection connection;

  /** Sends a message, commits it and returns its id. */
  private long send(String message) throws SQLException, InterruptedException {
    long id = ThreadLocalRandom.current().nextLong(1, 1L << 53); // every driver keeps 53 bits
    long end = System.nanoTime() + PATIENCE_S * 1_000_000_000L;
    boolean isRepeated = false;
    for (long pause = 100; ; pause = Math.min(pause * 2, 10_000)) {
      try {
        if (connection == null) {
          connection = connect();
        }
        try (PreparedStatement statement = connection.prepareStatement(INSERT)) {
          statement.setLong(1, id);
          statement.setString(2, message);
          statement.executeUpdate();
        }
        return id;
      } catch (SQLException error) {
        int number = error.getErrorCode();
        if (number == DUPLICATE && isRepeated) {
          return id;
        }
        boolean isRefused = number > 0 && !PASSING.contains(number); // without a number the connection broke
        if (isRefused || System.nanoTime() - end > 0) {
          throw error;
        }
        System.err.println("again in a moment: " + error.getMessage());
        if (connection != null) {
          connection.abort(Runnable::run);
          connection = null;
        }
        isRepeated = true;
      }
      Thread.sleep((long) (pause * (0.5 + Math.random() / 2)));
    }
  }

  private static Connection connect() throws SQLException {
    Map<String, String> given = System.getenv();
    Properties options = new Properties();
    options.setProperty("user", given.getOrDefault("USER_NAME", "app"));
    options.setProperty("password", given.getOrDefault("PASSWORD", "app-password"));
    options.setProperty("connectTimeout", "10000");
    options.setProperty("socketTimeout", String.valueOf(SILENCE_S * 1000));
    return DriverManager.getConnection(
        given.getOrDefault("JDBC_URL", "jdbc:mysql://127.0.0.1:15306/commerce"), options);
  }

  public static void main(String[] arguments) throws Exception {
    Producer producer = new Producer();
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      System.out.println("sent " + producer.send(line));
    }
  }
}
