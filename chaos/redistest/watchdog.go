package redistest

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// watchScript reads process ids, the last one counts, until the pipe ends: then
// the test process is done or dead, however it died. It kills that process and
// cleans up by the command in its arguments.
const watchScript = `trap '' INT TERM HUP
pid=
while read -r line; do pid=$line; done
case $pid in '' | 0) ;; *) kill -9 "$pid" ;; esac
"$@"`

// What a watchdog does in the end; the argument follows.
var (
	removeDir       = []string{"rm", "-rf"}
	removeContainer = []string{"docker", "rm", "-f", "-v"}
)

// watchdog outlives the test process and cleans up after it. The kernel's
// parent-death signal would do it on Linux only, and there it fires when the
// thread that started the child ends, not the process.
type watchdog struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser // its end is the signal; only this process holds it
}

func startWatchdog(clean []string, what string) (*watchdog, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd := exec.Command("/bin/sh", append([]string{"-c", watchScript, "watchdog"}, append(clean, what)...)...)
	cmd.Stdin = r
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a signal to the test's group is not for it
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return &watchdog{cmd: cmd, pipe: w}, nil
}

// watch names the process to kill; 0 means none.
func (d *watchdog) watch(pid int) error {
	_, err := io.WriteString(d.pipe, strconv.Itoa(pid)+"\n")
	return err
}

// release lets the watchdog clean up now and waits until it has.
func (d *watchdog) release() error {
	return errors.Join(d.pipe.Close(), d.cmd.Wait())
}
