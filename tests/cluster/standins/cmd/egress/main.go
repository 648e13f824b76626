// egress stands in for OpenSandbox's egress in tests: see ../../README.md.
package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"argo-harbor.test/standins/internal/egress"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "egress:", err)
		os.Exit(1)
	}
}

func run() error {
	settings, err := egress.ReadSettings()
	if err != nil {
		return err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(settings.LogLevel)); err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stdout, &slog.HandlerOptions{Level: level}))
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)

	// The order matters: the rules are in force before anything is served, and nothing takes them away.
	gate, err := egress.NewGate(settings, log)
	if err != nil {
		return err
	}
	reporter := egress.NewReporter(settings, log)
	if err := egress.NewResolver(settings, gate, reporter, log).Start(); err != nil {
		return err
	}
	reporter.Start(gate.Refused)
	listener, err := net.Listen("tcp", settings.Address)
	if err != nil {
		return err
	}
	policy := gate.Policy()
	log.Info("egress in force", "mode", policy.Mode(), "default", policy.DefaultAction, "rules", policy.Egress)
	served := make(chan error, 1)
	go func() { served <- http.Serve(listener, egress.Handler(settings, gate, reporter, log)) }()
	select {
	case err := <-served:
		return err
	case number := <-stop:
		log.Info("egress ends, its rules stay", "signal", number.String())
		return nil
	}
}
