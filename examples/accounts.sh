# MariaDB's image sources this file when it creates a shard's data: the accounts of the proxy and of its users.
docker_process_sql <<SQL
-- Members of a fleet find each other in this database, which the proxy creates.
GRANT ALL PRIVILEGES ON streamfrom.* TO streamfrom@'%';
CREATE USER app@'%' IDENTIFIED BY '$(docker_sql_escape_string_literal "$APP_PASSWORD")';
GRANT ALL PRIVILEGES ON commerce.* TO app@'%';
CREATE USER ops@'%' IDENTIFIED BY '$(docker_sql_escape_string_literal "$OPS_PASSWORD")';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP ON commerce.* TO ops@'%';
CREATE USER reports@'%' IDENTIFIED BY '$(docker_sql_escape_string_literal "$REPORTS_PASSWORD")';
GRANT SELECT, SHOW VIEW ON commerce.* TO reports@'%';
SQL
