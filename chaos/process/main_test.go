package process

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain also plays the parts of processes: "idle" does nothing, "parent" has
// an idle child of its own, and "owner" has a kennel with both.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "idle":
			fmt.Println("idle", os.Getpid())
			rest()
		case "parent":
			c := exec.Command(os.Args[0], "idle")
			c.Stdout = os.Stdout
			if err := c.Start(); err != nil {
				panic(err)
			}
			rest()
		case "owner":
			own(os.Args[2], os.Args[3])
			rest()
		}
	}
	goleak.VerifyTestMain(m)
}

// rest does nothing until somebody ends the process. Without cgo Go would take
// an empty select for a deadlock and end it itself.
func rest() { time.Sleep(time.Hour) }

// own keeps a kennel in dir, with a promise to make a file, and tells the pids.
func own(dir, file string) {
	k, err := Open(Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	if _, err := k.Promise("/bin/sh", "-c", `echo "$1" > "$2"`, "sh", "it's $HOME", file); err != nil {
		panic(err)
	}
	idle, err := k.Start(Command{Name: "idle", Program: os.Args[0], Args: []string{"idle"}})
	if err != nil {
		panic(err)
	}
	stopped, err := k.Start(Command{Name: "stopped", Program: os.Args[0], Args: []string{"idle"}})
	if err != nil {
		panic(err)
	}
	stopped.Stop()
	fmt.Println(idle.PID(), stopped.PID(), k.watchdog.Process.Pid)
}
