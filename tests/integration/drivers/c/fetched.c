/* fetched PORT DATABASE: runs each line of its input as a prepared statement, and prints the rows.

Each is executed twice without a cursor, then twice with one, by libmariadb; two rows are fetched at a time. */
#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 200, COLUMNS_MAX = 40 };

static int fail(const char *what, const char *error) {
  printf("%s: %s\n", what, error);
  exit(1);
}

static void rows(MYSQL_STMT *statement) {
  static char texts[COLUMNS_MAX][WIDTH];
  static unsigned long sizes[COLUMNS_MAX];
  static my_bool nulls[COLUMNS_MAX];
  MYSQL_BIND results[COLUMNS_MAX];
  int code, count;
  if (mysql_stmt_execute(statement)) fail("execute", mysql_stmt_error(statement));
  count = mysql_stmt_field_count(statement);
  memset(results, 0, sizeof results);
  for (int i = 0; i < count; i++) {
    results[i].buffer_type = MYSQL_TYPE_STRING;
    results[i].buffer = texts[i];
    results[i].buffer_length = WIDTH;
    results[i].length = &sizes[i];
    results[i].is_null = &nulls[i];
  }
  if (mysql_stmt_bind_result(statement, results)) fail("bind", mysql_stmt_error(statement));
  while (!(code = mysql_stmt_fetch(statement))) {
    for (int i = 0; i < count; i++)
      printf("%.*s|", nulls[i] ? 4 : (int)sizes[i], nulls[i] ? "NULL" : texts[i]);
    printf("\n");
  }
  if (code != MYSQL_NO_DATA) fail("fetch", mysql_stmt_error(statement));
  printf("--\n");
}

int main(int argc, char **argv) {
  char sql[1000];
  unsigned long cursor = CURSOR_TYPE_READ_ONLY, at_once = 2;
  MYSQL *client = mysql_init(NULL);
  if (argc != 3 || !mysql_real_connect(client, "127.0.0.1", "root", "", argv[2], atoi(argv[1]), NULL, 0))
    fail("connect", mysql_error(client));
  while (fgets(sql, sizeof sql, stdin)) {
    MYSQL_STMT *statement = mysql_stmt_init(client);
    if (mysql_stmt_prepare(statement, sql, strcspn(sql, "\n"))) fail(sql, mysql_stmt_error(statement));
    for (int i = 0; i < 4; i++) {
      if (i == 2) {
        mysql_stmt_attr_set(statement, STMT_ATTR_CURSOR_TYPE, &cursor);
        mysql_stmt_attr_set(statement, STMT_ATTR_PREFETCH_ROWS, &at_once);
      }
      rows(statement);
      if (mysql_query(client, "DO 1")) fail("a statement in between", mysql_error(client));
    }
    if (mysql_stmt_close(statement)) fail("close", mysql_error(client));
  }
  mysql_close(client);
  return 0;
}
