// A producer for Go with go-sql-driver: go run producer.go < messages, one message per line.
//
// Each message is sent once, even if the connection breaks. The program chooses the id, so it can repeat an INSERT whose
// outcome is unknown: if the first one took effect, the second one is a duplicate.
package main

import (
	"bufio"
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	silence   = 30 * time.Second // then a connection is replaced
	patience  = 60 * time.Second // then a message fails with the error
	duplicate = 1062
	insert    = "INSERT INTO my_message (id, message) VALUES (?, ?)"
)

// Temporary errors: a full or stopping proxy, an unavailable shard, a lock, a deadlock, a lost connection.
var passing = []uint16{1040, 1053, 1105, 1205, 1213, 2013, 4031}

// send sends a message, commits it and returns its id.
func send(db *sql.DB, message string) (int64, error) {
	id := 1 + rand.Int64N(1<<53-1) // every driver keeps 53 bits
	end := time.Now().Add(patience)
	for pause := 100 * time.Millisecond; ; pause = min(pause*2, 10*time.Second) {
		_, err := db.Exec(insert, id, message)
		if err == nil {
			return id, nil
		}
		var refused *mysql.MySQLError
		if errors.As(err, &refused) {
			if refused.Number == duplicate && pause > 100*time.Millisecond {
				return id, nil
			}
			if !slices.Contains(passing, refused.Number) {
				return 0, err
			}
		}
		if time.Now().After(end) {
			return 0, err
		}
		fmt.Fprintln(os.Stderr, "again in a moment:", err)
		time.Sleep(pause/2 + rand.N(pause/2))
	}
}

func main() {
	config := mysql.NewConfig()
	config.Net, config.DBName, config.ReadTimeout = "tcp", "commerce", silence
	config.Addr = net.JoinHostPort(cmp.Or(os.Getenv("HOST"), "127.0.0.1"), cmp.Or(os.Getenv("PORT"), "15306"))
	config.User, config.Passwd = cmp.Or(os.Getenv("USER_NAME"), "app"), "app-password"
	if password, found := os.LookupEnv("PASSWORD"); found {
		config.Passwd = password
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		panic(err)
	}
	db := sql.OpenDB(connector)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		id, err := send(db, lines.Text())
		if err != nil {
			panic(err)
		}
		fmt.Println("sent", id)
	}
	if lines.Err() != nil {
		panic(lines.Err())
	}
}
