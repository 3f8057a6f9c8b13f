// A consumer by the files that Vitess published: it takes COUNT messages of ks.my_message and acks them.
// Usage: vitess_go ADDRESS USER PASSWORD COUNT
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"gopkg.in/src-d/go-vitess.v1/vt/proto/query"
	"gopkg.in/src-d/go-vitess.v1/vt/proto/vtgate"
	"gopkg.in/src-d/go-vitess.v1/vt/proto/vtgateservice"
)

func main() {
	address, user, password := os.Args[1], os.Args[2], os.Args[3]
	count, err := strconv.Atoi(os.Args[4])
	check(err)
	connection, err := grpc.Dial(address, grpc.WithInsecure())
	check(err)
	client := vtgateservice.NewVitessClient(connection)
	ctx := metadata.AppendToOutgoingContext(context.Background(), "username", user, "password", password)

	stream, err := client.MessageStream(ctx, &vtgate.MessageStreamRequest{Keyspace: "ks", Name: "my_message"})
	check(err)
	head, err := stream.Recv()
	check(err)
	fields := head.Result.Fields
	told := []string{}
	for _, field := range fields {
		told = append(told, field.Name+":"+field.Type.String())
	}
	fmt.Println(strings.Join(told, " "))
	ids := []*query.Value{}
	for len(ids) < count {
		answer, err := stream.Recv()
		check(err)
		for _, row := range answer.Result.Rows {
			values := map[string]string{}
			place := int64(0)
			for at, length := range row.Lengths {
				if length < 0 {
					values[fields[at].Name] = "NULL"
					continue
				}
				values[fields[at].Name] = string(row.Values[place : place+length])
				place += length
			}
			fmt.Println(values["id"], values["tenant_id"], values["message"])
			ids = append(ids, &query.Value{Type: fields[0].Type, Value: []byte(values["id"])})
		}
	}
	done, err := client.MessageAck(ctx, &vtgate.MessageAckRequest{Keyspace: "ks", Name: "my_message", Ids: ids})
	check(err)
	fmt.Println("acked", done.Result.RowsAffected)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
