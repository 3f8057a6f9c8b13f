<?php
// What a PHP program does: one connection, buffered answers, mysqli or PDO.
// Usage: main.php DRIVER PORT DATABASE USER TLS PREPARED, DRIVER being mysqli or pdo. Prints "ok".

declare(strict_types=1);

[, $driver, $port, $database, $user, $tls, $prepared] = $argv;
$password = $user === 'root' ? '' : 'secret';

function expect(string $what, mixed $got, mixed $wanted): void
{
    if ($got !== $wanted) {
        throw new Exception("$what: got " . json_encode($got) . ', wanted ' . json_encode($wanted));
    }
}

final class OverMysqli
{
    public mysqli $db;

    public function __construct(private bool $prepared, int $port, string $user, string $password, string $database, bool $tls)
    {
        mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
        $this->db = mysqli_init();
        $flags = $tls ? MYSQLI_CLIENT_SSL | MYSQLI_CLIENT_SSL_DONT_VERIFY_SERVER_CERT : 0;
        $this->db->real_connect('127.0.0.1', $user, $password, $database, $port, null, $flags);
    }

    private function run(string $sql, array $values): mysqli_stmt|mysqli_result|bool
    {
        if ($this->prepared) {
            $statement = $this->db->prepare($sql);
            $statement->execute($values ?: null);
            return $statement;
        }
        return $this->db->query(vsprintf(str_replace('?', '%d', $sql), $values));
    }

    public function rows(string $sql, int ...$values): array
    {
        $found = $this->run($sql, $values);
        return ($found instanceof mysqli_stmt ? $found->get_result() : $found)->fetch_all();
    }

    public function changed(string $sql, int ...$values): int
    {
        $found = $this->run($sql, $values);
        return (int) ($found instanceof mysqli_stmt ? $found->affected_rows : $this->db->affected_rows);
    }

    public function made(string $sql, int ...$values): int
    {
        $found = $this->run($sql, $values);
        return (int) ($found instanceof mysqli_stmt ? $found->insert_id : $this->db->insert_id);
    }

    public function begin(): void
    {
        $this->db->begin_transaction();
    }
}

final class OverPdo
{
    public PDO $db;

    public function __construct(bool $prepared, int $port, string $user, string $password, string $database, bool $tls)
    {
        $options = [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::ATTR_EMULATE_PREPARES => !$prepared];
        if ($tls) {
            $options[PDO::MYSQL_ATTR_SSL_CIPHER] = 'DEFAULT';
            $options[PDO::MYSQL_ATTR_SSL_VERIFY_SERVER_CERT] = false;
        }
        $this->db = new PDO("mysql:host=127.0.0.1;port=$port;dbname=$database", $user, $password, $options);
    }

    private function run(string $sql, array $values): PDOStatement
    {
        $statement = $this->db->prepare($sql);
        foreach ($values as $place => $value) {
            $statement->bindValue($place + 1, $value, PDO::PARAM_INT);
        }
        $statement->execute();
        return $statement;
    }

    public function rows(string $sql, int ...$values): array
    {
        return $this->run($sql, $values)->fetchAll(PDO::FETCH_NUM);
    }

    public function changed(string $sql, int ...$values): int
    {
        return $this->run($sql, $values)->rowCount();
    }

    public function made(string $sql, int ...$values): int
    {
        $this->run($sql, $values);
        return (int) $this->db->lastInsertId();
    }

    public function begin(): void
    {
        $this->db->beginTransaction();
    }
}

$arguments = [$prepared === '1', (int) $port, $user, $password, $database, $tls === '1'];
$db = $driver === 'mysqli' ? new OverMysqli(...$arguments) : new OverPdo(...$arguments);

function taken(OverMysqli|OverPdo $db, int $limit, int $wait_s, string $queue = 'my_message'): array
{
    $ids = array_map(
        fn(array $row): int => (int) $row[0],
        $db->rows("STREAM id FROM $queue LIMIT ? WAIT ?", $limit, $wait_s),
    );
    sort($ids);
    return $ids;
}

const ACK = 'UPDATE my_message SET time_acked = NOW() WHERE id = ? AND time_acked IS NULL';

expect('an empty queue', taken($db, 5, 0), []);
foreach (range(1, 8) as $id) {
    expect('inserted', $db->changed("INSERT INTO my_message (id, message) VALUES (?, 'ä🎉')", $id), 1);
}
$all = [];
while (count($all) < 6) {
    $ids = taken($db, 6 - count($all), 60);
    foreach ($ids as $id) {
        expect('acked', $db->changed(ACK, $id), 1);
        expect('acked again', $db->changed(ACK, $id), 0);
    }
    $all = [...$all, ...$ids];
}
$db->begin();
$rest = [];
while (count($rest) < 2) {
    $rest = [...$rest, ...taken($db, 5, 60)];
}
foreach ($rest as $id) {
    expect('acked in a transaction', $db->changed(ACK, $id), 1);
}
$db->db->rollback();
expect('held by their leases', taken($db, 5, 0), []);
$db->begin();
foreach ($rest as $id) {
    expect('acked in a transaction', $db->changed(ACK, $id), 1);
}
$db->db->commit();
$all = [...$all, ...$rest];
sort($all);
expect('messages', $all, range(1, 8));
$first = $db->made('INSERT INTO job (number) VALUES (?), (?)', 1, 2);
$made = [$first, $first + 1];
if (str_contains((string) $db->rows('SELECT VERSION()')[0][0], 'MariaDB')) {
    foreach ($db->rows('INSERT INTO job (number) VALUES (?), (?), (?) RETURNING number, id', 3, 4, 5) as $place => $row) {
        expect('returned in order', (int) $row[0], 3 + $place);
        $made[] = (int) $row[1];
    }
}
$jobs = [];
while (count($jobs) < count($made)) {
    $jobs = [...$jobs, ...taken($db, 5, 60, 'job')];
}
sort($jobs);
expect('ids that the proxy made', $jobs, $made);
foreach ($jobs as $id) {
    expect('a job acked', $db->changed("UPDATE job SET state = 'acked' WHERE id = ?", $id), 1);
}
$left = $db->rows('SELECT COUNT(*) FROM my_message WHERE time_acked IS NULL');
expect('left', (int) $left[0][0], 0);
try {
    $db->rows('STREAM id FROM my_message ORDER BY id LIMIT 5');
    throw new Exception('ORDER BY was taken');
} catch (mysqli_sql_exception | PDOException $refused) {
    expect('the way is told', str_contains($refused->getMessage(), 'ORDER BY'), true);
}
echo "ok\n";
