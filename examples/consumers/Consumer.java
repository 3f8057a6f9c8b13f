import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * A consumer with JDBC: java -cp mysql-connector-j.jar Consumer.java, stopped by SIGTERM or Ctrl-C.
 *
 * <p>Each worker takes a message, does the work and acknowledges, over its own connection. Running work is finished and
 * acknowledged, also after the signal and while the proxy restarts. A heartbeat extends the lease of long work. Failed
 * work is retried, each time later.
 */
public final class Consumer implements Runnable {
  private static final int WORKERS = 4;
  private static final int HEARTBEAT_S = 10; // well below the lease, vt_ack_wait
  private static final int SILENCE_S = 30; // then a connection is replaced; well above WAIT
  private static final String TAKE = "STREAM id, message FROM my_message LIMIT 1 WAIT 5";
  private static final String MINE = " WHERE id = ? AND time_acked IS NULL";
  private static final String HEARTBEAT =
      "UPDATE my_message SET time_next = time_next + INTERVAL " + HEARTBEAT_S + " SECOND" + MINE;
  private static final String ACK = "UPDATE my_message SET time_acked = NOW()" + MINE;
  // Permanent errors: a wrong password, a missing right, database, table or column, wrong or unsupported SQL.
  private static final Set<Integer> PERMANENT = Set.of(1044, 1045, 1049, 1054, 1064, 1142, 1146, 1235);

  private static final ExecutorService works = Executors.newCachedThreadPool();
  private static volatile boolean stopping;
  private Connection connection;

  private record Message(long id, String text) {}

  private interface Action<T> {
    T run() throws SQLException;
  }

  private static void work(String message) throws Exception {
    System.out.println("working on " + message); // your work; a message may come twice
  }

  /** Repeats the action until it succeeds, and returns its result; returns null after the signal if it is a take. */
  private <T> T keepTrying(boolean isTake, Action<T> action) throws Exception {
    for (long pause = 100; ; pause = Math.min(pause * 2, 10_000)) {
      try {
        if (connection == null) {
          Map<String, String> given = System.getenv();
          Properties options = new Properties();
          options.setProperty("user", given.getOrDefault("USER_NAME", "app"));
          options.setProperty("password", given.getOrDefault("PASSWORD", "app-password"));
          options.setProperty("connectTimeout", "10000");
          options.setProperty("socketTimeout", String.valueOf(SILENCE_S * 1000));
          connection = DriverManager.getConnection(
              given.getOrDefault("JDBC_URL", "jdbc:mysql://127.0.0.1:15306/commerce"), options);
        }
        return action.run();
      } catch (SQLException error) {
        if (connection != null) {
          connection.abort(Runnable::run);
          connection = null;
        }
        if (PERMANENT.contains(error.getErrorCode())) {
          throw error;
        }
        if (stopping && isTake) {
          return null;
        }
        System.out.println("again in a moment: " + error.getMessage());
      }
      Thread.sleep((long) (pause * (0.5 + Math.random() / 2)));
    }
  }

  private Message take() throws Exception {
    return keepTrying(true, () -> {
      try (PreparedStatement statement = connection.prepareStatement(TAKE)) {
        statement.execute(); // not executeQuery(), which refuses STREAM in MySQL's driver
        ResultSet rows = statement.getResultSet();
        return rows.next() ? new Message(rows.getLong(1), rows.getString(2)) : null;
      }
    });
  }

  private int write(String sql, long id) throws Exception {
    return keepTrying(false, () -> {
      try (PreparedStatement statement = connection.prepareStatement(sql)) {
        statement.setLong(1, id);
        return statement.executeUpdate();
      }
    });
  }

  private void handle(Message message) throws Exception {
    Future<Void> job = works.submit(() -> { work(message.text); return null; });
    while (true) {
      try {
        job.get(HEARTBEAT_S, TimeUnit.SECONDS);
        if (write(ACK, message.id) == 0) {
          System.out.println(message.id + " was acknowledged before");
        }
        return;
      } catch (TimeoutException stillWorking) {
        write(HEARTBEAT, message.id);
      } catch (ExecutionException error) {
        System.out.println(message.id + " failed: " + error.getCause());
        return;
      }
    }
  }

  @Override
  public void run() {
    try {
      while (!stopping) {
        Message message = take();
        if (message != null) {
          handle(message);
        }
      }
    } catch (Exception error) {
      error.printStackTrace();
      Runtime.getRuntime().halt(1);
    }
  }

  public static void main(String[] arguments) {
    ExecutorService workers = Executors.newFixedThreadPool(WORKERS);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      stopping = true;
      workers.shutdown();
      try {
        workers.awaitTermination(Long.MAX_VALUE, TimeUnit.SECONDS);
      } catch (InterruptedException never) {
        Thread.currentThread().interrupt();
      }
      Runtime.getRuntime().halt(0); // else 143, the signal's
    }));
    for (int worker = 0; worker < WORKERS; worker++) {
      workers.submit(new Consumer());
    }
  }
}
