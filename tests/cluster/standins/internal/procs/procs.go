// Package procs starts and reaps processes. As process 1 of a container execd also inherits every orphan, so
// one place waits for all children: os/exec's own waiting would compete with it.
package procs

import (
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const pollEvery = 20 * time.Millisecond

// Spec says what to start. Every process leads a group of its own.
type Spec struct {
	Argv       []string
	Dir        string
	Env        []string
	Credential *syscall.Credential
	Stdin      *os.File
	Stdout     *os.File
	Stderr     *os.File
}

// Process is a started child.
type Process struct {
	pid    int
	table  *Table
	done   chan struct{}
	status syscall.WaitStatus
}

// Table holds the children that are not reaped yet.
type Table struct {
	// Held while a process is started, reaped or signalled: a number is never signalled after its process
	// was reaped, when it may already be another's.
	mutex sync.Mutex
	alive map[int]*Process
}

// NewTable starts reaping the children of this process.
func NewTable() *Table {
	table := &Table{alive: map[int]*Process{}}
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	go func() {
		for range children {
			table.reap()
		}
	}()
	return table
}

// Start runs a program.
func (t *Table) Start(spec Spec) (*Process, error) {
	path, err := exec.LookPath(spec.Argv[0])
	if err != nil {
		return nil, err
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	pid, err := syscall.ForkExec(path, spec.Argv, &syscall.ProcAttr{
		Dir:   spec.Dir,
		Env:   spec.Env,
		Files: []uintptr{spec.Stdin.Fd(), spec.Stdout.Fd(), spec.Stderr.Fd()},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Credential: spec.Credential},
	})
	if err != nil {
		return nil, &os.PathError{Op: "fork/exec", Path: path, Err: err}
	}
	process := &Process{pid: pid, table: t, done: make(chan struct{})}
	t.alive[pid] = process
	return process, nil
}

// StopAll asks everything to end and returns when all is gone, at the latest after the grace. As a container's
// first process that is every process of the container, else the children and their groups.
func (t *Table) StopAll(grace time.Duration) {
	t.mutex.Lock()
	if first() {
		_ = syscall.Kill(-1, syscall.SIGTERM)
	}
	for pid := range t.alive {
		_ = syscall.Kill(-pid, syscall.SIGTERM)
	}
	t.mutex.Unlock()
	for end := time.Now().Add(grace); time.Now().Before(end) && !t.gone(); {
		time.Sleep(pollEvery)
	}
}

func (t *Table) gone() bool {
	if first() {
		return syscall.Kill(-1, 0) == syscall.ESRCH
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return len(t.alive) == 0
}

func first() bool { return os.Getpid() == 1 }

func (t *Table) reap() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if process := t.alive[pid]; process != nil {
			delete(t.alive, pid)
			process.status = status
			close(process.done)
		}
	}
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal to the process's group; false, and nothing is sent, once the process has ended.
func (p *Process) Signal(number syscall.Signal) bool {
	p.table.mutex.Lock()
	defer p.table.mutex.Unlock()
	if p.table.alive[p.pid] != p {
		return false
	}
	_ = syscall.Kill(-p.pid, number)
	return true
}

// Stop asks the group to end and kills what is left of it after the grace.
func (p *Process) Stop(grace time.Duration) {
	if !p.Signal(syscall.SIGTERM) {
		return
	}
	deadline := time.After(grace)
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		select {
		case <-poll.C:
			// A group outlives its leader; while any member is left its number is not given away.
			if syscall.Kill(-p.pid, 0) == syscall.ESRCH {
				return
			}
		case <-deadline:
			_ = syscall.Kill(-p.pid, syscall.SIGKILL)
			return
		}
	}
}

// ExitCode is the exit status, or -1 for a process that a signal ended.
func (p *Process) ExitCode() int {
	if p.status.Exited() {
		return p.status.ExitStatus()
	}
	return -1
}

// ShellCode is the exit status as a shell or container runtime tells it: 128 + n for signal n.
func (p *Process) ShellCode() int {
	if p.status.Signaled() {
		return 128 + int(p.status.Signal())
	}
	return p.status.ExitStatus()
}

// Outcome is the end in Go's words: "exit status 3", "signal: killed".
func (p *Process) Outcome() string {
	if p.status.Signaled() {
		return "signal: " + p.status.Signal().String()
	}
	return "exit status " + strconv.Itoa(p.status.ExitStatus())
}
