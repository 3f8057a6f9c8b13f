import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.MigrationInfo;

/** Flyway's own commands, which only its paid command line offers without Maven: java Migrate.java STEP URL FOLDER. */
class Migrate {
    public static void main(String[] arguments) {
        var flyway = Flyway.configure().dataSource(arguments[1], "root", "")
                .locations("filesystem:" + arguments[2]).cleanDisabled(false)
                .baselineOnMigrate(arguments[0].equals("baseline")).baselineVersion("0").load();
        switch (arguments[0]) {
            case "migrate", "baseline" -> System.out.println(flyway.migrate().migrationsExecuted + " executed");
            case "validate" -> flyway.validate();
            case "info" -> {
                for (MigrationInfo one : flyway.info().all()) {
                    System.out.println(one.getDescription() + " " + one.getState());
                }
            }
            case "clean" -> flyway.clean();
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }
}
