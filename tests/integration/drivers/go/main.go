// What a Go program does with go-sql-driver, which prepares whatever has parameters unless it is
// told to interpolate them.
//
// Usage: driver DRIVER PORT DATABASE USER TLS PREPARED, the last two 0 or 1; DRIVER is go-sql-driver.
// Prints "ok", or what went wrong, and exits with 1.
package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

const rowsOfLargeResult = 20_000

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func expect(what string, got, wanted any) {
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		panic(fmt.Sprintf("%s: got %v, wanted %v", what, got, wanted))
	}
}

func main() {
	defer func() {
		if fault := recover(); fault != nil {
			fmt.Println(fault)
			os.Exit(1)
		}
	}()
	db, err := sql.Open("mysql", address(os.Args[2], os.Args[3], os.Args[4], os.Args[5], os.Args[6]))
	check(err)
	defer db.Close()
	types(db)
	repeated(db)
	transactions(db)
	faults(db)
	large(db)
	stream(db)
	killed(db)
	fmt.Println("ok")
}

func address(port, database, user, tls, prepared string) string {
	login := user
	if user != "root" {
		login += ":secret"
	}
	options := "parseTime=true"
	if tls == "1" {
		options += "&tls=skip-verify"
	}
	if prepared == "0" {
		options += "&interpolateParams=true"
	}
	return fmt.Sprintf("%s@tcp(127.0.0.1:%s)/%s?%s", login, port, database, options)
}

func types(db *sql.DB) {
	moment := time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC)
	big := bytes.Repeat([]byte{0, 255, '\'', '\\'}, 300_000)
	_, err := db.Exec(
		"INSERT INTO item (id, unsigned_value, name, price, ratio, moment, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
		1, uint64(math.MaxUint64), "hällo 🎉", "123.45000", 0.1, moment, big)
	check(err)
	_, err = db.Exec("INSERT INTO item (id, name) VALUES (?, ?), (?, ?)", 4, nil, 7, "")
	check(err)
	row := db.QueryRow(
		"SELECT unsigned_value, name, price, ratio, moment, body FROM item WHERE id = ?", 1)
	var number uint64
	var name, price string
	var ratio float64
	var when time.Time
	var body []byte
	check(row.Scan(&number, &name, &price, &ratio, &when, &body))
	expect("unsigned", number, uint64(math.MaxUint64))
	expect("name", name, "hällo 🎉")
	expect("price", price, "123.45000")
	expect("ratio", ratio, 0.1)
	expect("moment", when, moment)
	expect("body", bytes.Equal(body, big), true)
	var nothing sql.NullString
	check(db.QueryRow("SELECT name FROM item WHERE id = ?", 4).Scan(&nothing))
	expect("NULL", nothing.Valid, false)
	expect("no row", db.QueryRow("SELECT id FROM item WHERE id = ?", 5).Scan(&number), sql.ErrNoRows)
}

func repeated(db *sql.DB) {
	statement, err := db.Prepare("SELECT id FROM item WHERE id >= ? AND id < ?")
	check(err)
	defer statement.Close()
	var group sync.WaitGroup
	for worker := 0; worker < 8; worker++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for turn := 0; turn < 50; turn++ {
				rows, err := statement.Query(1, 5-turn%2)
				check(err)
				count := 0
				for rows.Next() {
					count++
				}
				check(rows.Err())
				expect("rows", count, 2-turn%2)
			}
		}()
	}
	group.Wait()
}

func transactions(db *sql.DB) {
	for _, commits := range []bool{false, true} {
		tx, err := db.Begin()
		check(err)
		_, err = tx.Exec("UPDATE item SET name = ? WHERE id = ?", "changed", 7)
		check(err)
		var name string
		check(tx.QueryRow("SELECT name FROM item WHERE id = ?", 7).Scan(&name))
		expect("inside", name, "changed")
		wanted := ""
		if commits {
			check(tx.Commit())
			wanted = "changed"
		} else {
			check(tx.Rollback())
		}
		check(db.QueryRow("SELECT name FROM item WHERE id = ?", 7).Scan(&name))
		expect("after", name, wanted)
	}
}

func faults(db *sql.DB) {
	var refusal *mysql.MySQLError
	_, err := db.Exec("INSERT INTO item (id, name) VALUES (?, ?)", 1, "again")
	expect("an error", errors.As(err, &refusal), true)
	expect("duplicate", refusal.Number, 1062)
	_, err = db.Prepare("SELECT nothing FROM item")
	expect("an error", errors.As(err, &refusal), true)
	expect("unknown column", refusal.Number, 1054)
	_, err = db.Exec("FROBNICATE 1")
	expect("an error", errors.As(err, &refusal), true)
	expect("no statement", refusal.Number, 1064)
}

func large(db *sql.DB) {
	values := make([]string, rowsOfLargeResult)
	for number := range values {
		values[number] = fmt.Sprintf("(%d, '%s')", number+100, strings.Repeat("x", 90))
	}
	_, err := db.Exec("INSERT INTO item (id, name) VALUES " + strings.Join(values, ", "))
	check(err)
	rows, err := db.Query("SELECT id, name FROM item WHERE id >= ?", 100)
	check(err)
	defer rows.Close()
	count := 0
	for rows.Next() {
		var id int64
		var name string
		check(rows.Scan(&id, &name))
		count++
	}
	check(rows.Err())
	expect("rows", count, rowsOfLargeResult)
}

func stream(db *sql.DB) {
	_, err := db.Exec("INSERT INTO my_message (id, message) VALUES (?, ?), (?, ?)", 1, "one", 4, "four")
	check(err)
	watch, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	statement, err := db.PrepareContext(watch, "STREAM id, message FROM my_message")
	check(err)
	rows, err := statement.QueryContext(watch)
	check(err)
	seen := map[int64]string{}
	for len(seen) < 2 && rows.Next() {
		var id int64
		var message string
		check(rows.Scan(&id, &message))
		seen[id] = message
		acked, err := db.Exec(
			"UPDATE my_message SET time_acked = ?, time_next = NULL WHERE id IN (?) AND time_acked IS NULL",
			time.Now().UnixNano(), id)
		check(err)
		count, err := acked.RowsAffected()
		check(err)
		expect("acked", count, 1)
	}
	expect("messages", seen, map[int64]string{1: "one", 4: "four"})
	stop()
	rows.Close()
}

func killed(db *sql.DB) {
	ctx := context.Background()
	one, err := db.Conn(ctx)
	check(err)
	var id, count int64
	check(one.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id))
	_, err = db.Exec(fmt.Sprintf("KILL %d", id))
	check(err)
	expect("the killed one works", one.QueryRowContext(ctx, "SELECT 1").Scan(&count) == nil, false)
	one.Close()
	check(db.QueryRow("SELECT COUNT(*) FROM item").Scan(&count))
	expect("rows", count, rowsOfLargeResult+3)
}
