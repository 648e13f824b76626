package execd

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"argo-harbor.test/standins/internal/procs"
)

const (
	cursorHeader   = "EXECD-COMMANDS-TAIL-CURSOR"
	interruptGrace = 3 * time.Second
)

// request is the body of POST /command.
type request struct {
	Command    string            `json:"command"`
	Argv       []string          `json:"argv"`
	Cwd        string            `json:"cwd"`
	Background bool              `json:"background"`
	Timeout    *int64            `json:"timeout"`
	Uid        *uint32           `json:"uid"`
	Gid        *uint32           `json:"gid"`
	Envs       map[string]string `json:"envs"`
}

// command is one that was started, or could not be.
type command struct {
	id        string
	text      string
	output    string // path of the combined output; empty for one in the foreground
	process   *procs.Process
	failure   error
	startedAt time.Time
	endedAt   time.Time
}

type commands struct {
	children *procs.Table
	grace    time.Duration
	mutex    sync.Mutex
	known    map[string]*command
}

func newCommands(children *procs.Table, grace time.Duration) (*commands, error) {
	// Made before anything else runs in the container, so that no one else can own it.
	if _, err := outputFolder(); err != nil {
		return nil, err
	}
	return &commands{children: children, grace: grace, known: map[string]*command{}}, nil
}

func (c *commands) run(w http.ResponseWriter, r *http.Request) {
	var wanted request
	if !decode(w, r, &wanted) {
		return
	}
	spec, err := c.spec(wanted)
	if err != nil {
		fail(w, http.StatusBadRequest, invalidRequest, "invalid request, validation error "+err.Error())
		return
	}
	started := &command{id: newID(), text: wanted.Command, startedAt: time.Now()}
	if wanted.Background {
		c.runInBackground(w, wanted, spec, started)
	} else {
		c.runInForeground(w, wanted, spec, started)
	}
	time.Sleep(c.grace)
}

func (c *commands) spec(wanted request) (procs.Spec, error) {
	variables := environment(wanted.Envs)
	spec := procs.Spec{Argv: wanted.Argv, Env: asList(variables), Credential: credential(wanted.Uid, wanted.Gid)}
	if (wanted.Command == "") == (len(wanted.Argv) == 0) {
		return spec, errors.New("exactly one of command and argv is required")
	}
	if wanted.Timeout != nil && *wanted.Timeout < 1 {
		return spec, errors.New("timeout must be at least 1")
	}
	if wanted.Gid != nil && wanted.Uid == nil {
		return spec, errors.New("uid is required when gid is provided")
	}
	if wanted.Command != "" {
		spec.Argv = []string{shell(), "-c", wanted.Command}
	}
	if wanted.Cwd == "" {
		return spec, nil
	}
	folder, err := expand(wanted.Cwd, variables)
	if err != nil {
		return spec, err
	}
	found, err := os.Stat(folder)
	if err != nil {
		return spec, fmt.Errorf("working directory: %w", err)
	}
	if !found.IsDir() {
		return spec, fmt.Errorf("working directory path is not a directory: %s", folder)
	}
	spec.Dir = folder
	return spec, nil
}

func (c *commands) runInForeground(w http.ResponseWriter, wanted request, spec procs.Spec, started *command) {
	stdout, stderr, err := bothOutputs(started.id)
	if err != nil {
		fail(w, http.StatusInternalServerError, runtimeError, "error running commands "+err.Error())
		return
	}
	defer discard(stdout)
	defer discard(stderr)
	c.start(started, spec, wanted.Timeout, stdout, stderr)
	events := openStream(w)
	defer events.close()
	events.send(event{Type: "init", Text: started.id})
	if started.failure == nil {
		var followers sync.WaitGroup
		for kind, file := range map[string]*os.File{"stdout": stdout, "stderr": stderr} {
			followers.Go(func() {
				follow(file, started.process.Done(), func(text string) { events.send(event{Type: kind, Text: text}) })
			})
		}
		followers.Wait()
	}
	events.send(last(started))
}

// runInBackground tells the id and ends the stream at once; the command goes on.
func (c *commands) runInBackground(w http.ResponseWriter, wanted request, spec procs.Spec, started *command) {
	output, err := createOutput(started.id + ".output")
	if err != nil {
		fail(w, http.StatusInternalServerError, runtimeError, "error running commands "+err.Error())
		return
	}
	defer output.Close()
	started.output = output.Name()
	c.start(started, spec, wanted.Timeout, output, output)
	events := openStream(w)
	defer events.close()
	events.send(event{Type: "init", Text: started.id})
	if started.failure != nil {
		events.send(last(started))
		return
	}
	events.send(event{Type: "execution_complete", ExecutionTime: time.Since(started.startedAt).Milliseconds()})
}

// start makes the command known whether or not it starts. Nothing here depends on the client's connection.
func (c *commands) start(started *command, spec procs.Spec, timeout *int64, stdout, stderr *os.File) {
	nothing, err := os.Open(os.DevNull)
	if err == nil {
		defer nothing.Close()
		spec.Stdin, spec.Stdout, spec.Stderr = nothing, stdout, stderr
		started.process, err = c.children.Start(spec)
	}
	if err != nil {
		started.failure, started.endedAt = err, time.Now()
	}
	c.mutex.Lock()
	c.known[started.id] = started
	c.mutex.Unlock()
	if err != nil {
		return
	}
	go func() {
		<-started.process.Done()
		c.mutex.Lock()
		started.endedAt = time.Now()
		c.mutex.Unlock()
	}()
	if timeout != nil {
		go killAfter(started.process, time.Duration(*timeout)*time.Millisecond)
	}
}

func killAfter(process *procs.Process, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-process.Done():
	case <-timer.C:
		process.Signal(syscall.SIGKILL)
	}
}

// last is the event that ends a foreground command's stream.
func last(ended *command) event {
	if ended.failure != nil {
		return failed(ended.failure.Error(), ended.failure.Error())
	}
	if code := ended.process.ExitCode(); code != 0 {
		return failed(strconv.Itoa(code), ended.process.Outcome())
	}
	return event{Type: "execution_complete", ExecutionTime: time.Since(ended.startedAt).Milliseconds()}
}

func failed(value, trace string) event {
	return event{
		Type:  "error",
		Error: &execError{Name: "CommandExecError", Value: value, Traceback: []string{trace}},
	}
}

func (c *commands) interrupt(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	if id == "" {
		fail(w, http.StatusBadRequest, missingQuery, "missing query parameter 'id'")
		return
	}
	found := c.find(id)
	if found == nil || !running(found) {
		fail(w, http.StatusInternalServerError, runtimeError, "error interrupting: command "+id+" is not running")
		return
	}
	found.process.Stop(interruptGrace)
}

// commandStatus is the answer about one command.
type commandStatus struct {
	ID         string     `json:"id"`
	Content    string     `json:"content,omitempty"`
	Running    bool       `json:"running"`
	ExitCode   *int       `json:"exit_code,omitempty"`
	Error      string     `json:"error,omitempty"`
	StartedAt  time.Time  `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
}

func (c *commands) ask(w http.ResponseWriter, r *http.Request) {
	first, second := r.PathValue("first"), r.PathValue("second")
	switch {
	case first == "status":
		c.status(w, second)
	case second == "logs":
		c.logs(w, first, r.URL.Query().Get("cursor"))
	default:
		http.NotFound(w, r)
	}
}

func (c *commands) status(w http.ResponseWriter, id string) {
	found := c.find(id)
	if found == nil {
		fail(w, http.StatusNotFound, invalidRequest, "command not found: "+id)
		return
	}
	told := commandStatus{ID: found.id, Content: found.text, StartedAt: found.startedAt, Running: running(found)}
	if !told.Running {
		c.mutex.Lock()
		endedAt := found.endedAt
		c.mutex.Unlock()
		told.FinishedAt = &endedAt
		code := 255
		if found.failure != nil {
			told.Error = found.failure.Error()
		} else if code = found.process.ExitCode(); code != 0 {
			told.Error = found.process.Outcome()
		}
		told.ExitCode = &code
	}
	answer(w, http.StatusOK, told)
}

// logs answers with the output from byte `asked` on, and with the next cursor in a header.
func (c *commands) logs(w http.ResponseWriter, id, asked string) {
	found := c.find(id)
	if found == nil || found.output == "" {
		fail(w, http.StatusBadRequest, invalidRequest, "no background command "+id)
		return
	}
	cursor, err := strconv.ParseInt(asked, 10, 64)
	if err != nil || cursor < 0 {
		cursor = 0
	}
	file, err := os.Open(found.output)
	if err != nil {
		fail(w, http.StatusBadRequest, invalidRequest, "error opening output: "+err.Error())
		return
	}
	defer file.Close()
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		failFile(w, err)
		return
	}
	length := max(end-cursor, 0)
	w.Header().Set(cursorHeader, strconv.FormatInt(cursor+length, 10))
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.Copy(w, io.NewSectionReader(file, cursor, length))
}

func (c *commands) find(id string) *command {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.known[id]
}

func running(asked *command) bool {
	if asked.failure != nil {
		return false
	}
	select {
	case <-asked.process.Done():
		return false
	default:
		return true
	}
}

func bothOutputs(id string) (stdout, stderr *os.File, err error) {
	if stdout, err = createOutput(id + ".stdout"); err != nil {
		return nil, nil, err
	}
	if stderr, err = createOutput(id + ".stderr"); err != nil {
		discard(stdout)
		return nil, nil, err
	}
	return stdout, stderr, nil
}

func discard(file *os.File) {
	_ = file.Close()
	_ = os.Remove(file.Name())
}

func shell() string {
	if _, err := exec.LookPath("bash"); err == nil {
		return "bash"
	}
	return "sh"
}

func newID() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	return hex.EncodeToString(id)
}
