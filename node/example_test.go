package node_test

import (
	"context"
	"fmt"
	"log"
	"os/signal"
	"syscall"
	"time"

	"github.com/kelpiehq/kelpie/node"
	"github.com/kelpiehq/kelpie/queue"
)

type Mail struct{ To, Subject string }

var sendMail = queue.Define[Mail]("mail.send", queue.JobOptions{MaxAttempts: 5})

// A program that enqueues a job and runs it.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	rdb, err := queue.Connect("redis://127.0.0.1:6379")
	if err != nil {
		log.Fatal(err)
	}
	client, err := queue.New(rdb, queue.Options{})
	if err != nil {
		log.Fatal(err)
	}
	id, err := sendMail.Enqueue(ctx, client, Mail{"ada@example.org", "hello"}, queue.JobOptions{Delay: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("enqueued", id)

	n, err := node.New(node.Config{Redis: "redis://127.0.0.1:6379", Workers: 20})
	if err != nil {
		log.Fatal(err)
	}
	node.Handle(n, sendMail, func(ctx context.Context, j *queue.Job[Mail]) error {
		fmt.Println("to", j.In.To, "attempt", j.Attempt, "fence", j.Fence)
		return nil // an error runs it again after 1, 4, 9, 16 s
	})
	if err := n.Run(ctx); err != nil { // until a signal; then it drains
		log.Fatal(err)
	}
}
