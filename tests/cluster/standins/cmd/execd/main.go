// execd stands in for OpenSandbox's execd in tests: see ../../README.md.
package main

import (
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"argo-harbor.test/standins/internal/execd"
	"argo-harbor.test/standins/internal/procs"
)

// A container that is told to stop must not keep its pod waiting.
const stopGrace = time.Second

func main() {
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "execd:", err)
	}
	os.Exit(code)
}

func run() (int, error) {
	grace, err := environmentDuration("EXECD_API_GRACE_SHUTDOWN")
	if err != nil {
		return 2, err
	}
	port := flag.Int("port", 44772, "port to listen on")
	token := flag.String("access-token", os.Getenv("EXECD_ACCESS_TOKEN"), "token that requests must carry")
	verbosity := flag.Int("log-level", 6, "7 also logs requests")
	flag.DurationVar(&grace, "graceful-shutdown-timeout", grace, "how long a finished command's answer stays open")
	initMode := flag.Bool("init", false, "be the container's first process and run the program after --")
	flag.Parse()

	level := slog.LevelInfo
	if *verbosity >= 7 {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewJSONHandler(os.Stdout, &slog.HandlerOptions{Level: level}))
	// Before the first child starts: an early signal would otherwise end execd and leave the child.
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	children := procs.NewTable()
	handler, err := execd.Handler(execd.Settings{Token: *token, Grace: grace}, children, log)
	if err != nil {
		return 1, err
	}
	listener, err := net.Listen("tcp4", fmt.Sprintf(":%d", *port))
	if err != nil {
		return 1, err
	}
	var entrypoint *procs.Process
	ended := make(<-chan struct{})
	if *initMode && flag.NArg() > 0 {
		entrypoint, err = children.Start(procs.Spec{
			Argv: flag.Args(), Env: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		})
		if err != nil {
			return 127, err
		}
		ended = entrypoint.Done()
	}
	served := make(chan error, 1)
	go func() { served <- http.Serve(listener, handler) }()
	log.Info("execd listening", "address", listener.Addr().String(), "init", *initMode)

	select {
	case err := <-served:
		return 1, err
	case <-ended:
		return entrypoint.ShellCode(), nil
	case number := <-stop:
		log.Info("execd ends", "signal", number.String())
		children.StopAll(stopGrace)
		if entrypoint == nil {
			return 0, nil
		}
		select {
		case <-ended:
			return entrypoint.ShellCode(), nil
		default:
			return 128 + int(number.(syscall.Signal)), nil
		}
	}
}

func environmentDuration(name string) (time.Duration, error) {
	text := os.Getenv(name)
	if text == "" {
		return 0, nil
	}
	value, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return value, nil
}
