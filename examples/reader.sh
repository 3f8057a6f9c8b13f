# Sourced by the image of MariaDB when a shard's data is made: the account for users who may only read.
docker_process_sql <<SQL
CREATE USER streamfrom_reader@'%' IDENTIFIED BY '$(docker_sql_escape_string_literal "$READER_PASSWORD")';
GRANT SELECT, SHOW VIEW ON commerce.* TO streamfrom_reader@'%';
SQL
