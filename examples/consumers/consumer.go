// A consumer for Go with go-sql-driver: go run consumer.go, stopped by SIGTERM or Ctrl-C.
//
// Each worker takes a message, does the work and acknowledges. Running work is finished and acknowledged, also after the
// signal and while the proxy restarts. A heartbeat extends the lease of long work. Failed work is retried, each time later.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	workers   = 4
	beat      = 10 * time.Second // well below the lease, vt_ack_wait
	silence   = 30 * time.Second // then a connection is replaced; well above WAIT
	take      = "STREAM id, message FROM my_message LIMIT 1 WAIT 5"
	mine      = " WHERE id = ? AND time_acked IS NULL"
	heartbeat = "UPDATE my_message SET time_next = time_next + INTERVAL ? SECOND" + mine
	ack       = "UPDATE my_message SET time_acked = NOW()" + mine
)

// Permanent errors: a wrong password, a missing right, database, table or column, wrong or unsupported SQL.
var permanent = []uint16{1044, 1045, 1049, 1054, 1064, 1142, 1146, 1235}

var db *sql.DB

func work(message string) error {
	fmt.Println("working on", message) // your work; a message may come twice
	return nil
}

// keepTrying repeats the action until it succeeds, or until ends.
func keepTrying(until context.Context, action func() error) {
	for pause := 100 * time.Millisecond; ; pause = min(pause*2, 10*time.Second) {
		err := action()
		var refused *mysql.MySQLError
		if errors.As(err, &refused) && slices.Contains(permanent, refused.Number) {
			panic(err)
		}
		if err == nil || until.Err() != nil {
			return
		}
		fmt.Println("again in a moment:", err)
		time.Sleep(pause/2 + rand.N(pause/2))
	}
}

func write(query string, values ...any) (affected int64) {
	keepTrying(context.Background(), func() error {
		done, err := db.Exec(query, values...)
		if err == nil {
			affected, err = done.RowsAffected()
		}
		return err
	})
	return affected
}

func handle(id int64, message string) {
	ended := make(chan error, 1)
	go func() { ended <- work(message) }()
	for {
		select {
		case <-time.After(beat):
			write(heartbeat, int(beat.Seconds()), id)
		case err := <-ended:
			if err != nil {
				fmt.Println(id, "failed:", err)
			} else if write(ack, id) == 0 {
				fmt.Println(id, "was acknowledged before")
			}
			return
		}
	}
}

func consume(running context.Context) {
	for running.Err() == nil {
		var id int64
		var message string
		var found bool
		keepTrying(running, func() error {
			err := db.QueryRow(take).Scan(&id, &message)
			found = err == nil
			if errors.Is(err, sql.ErrNoRows) {
				return nil
			}
			return err
		})
		if found {
			handle(id, message)
		}
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
	db = sql.OpenDB(connector)
	db.SetMaxIdleConns(workers)
	running, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var all sync.WaitGroup
	for range workers {
		all.Add(1)
		go func() {
			defer all.Done()
			consume(running)
		}()
	}
	all.Wait()
}
