package main

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	patience = 3 * time.Second
	// A name takes several lookups, one for each search domain, and a busy machine takes its time for each.
	lookup = 15 * time.Second
)

// Targets are what the test wants to be tried, each under a name of its choice.
type Targets struct {
	// Dials are addresses with a port, or names with one; a name may begin with "udp:".
	Dials   map[string]string `json:"dials"`
	Lookups map[string]string `json:"lookups"`
	Calls   map[string]Call   `json:"calls"`
}

// Call is one HTTP request. Certificates are not looked at.
type Call struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// Answer is what came back, its body cut to what a person would read.
type Answer struct {
	Status int    `json:"status"`
	Body   string `json:"body"`
	Error  string `json:"error"`
}

func dials(targets map[string]string) map[string]string {
	return each(targets, func(target string) string {
		network := "tcp"
		if rest, found := strings.CutPrefix(target, "udp:"); found {
			network, target = "udp", rest
		}
		connection, err := dial(network, target, patience)
		if err != nil {
			return err.Error()
		}
		defer connection.Close()
		if network == "udp" {
			// A datagram that a rule drops is refused to its sender.
			if _, err := connection.Write([]byte("?")); err != nil {
				return err.Error()
			}
		}
		return "open"
	})
}

// dial connects to an address or a name; how long the lookup takes counts for nothing.
func dial(network, target string, patience time.Duration) (net.Conn, error) {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return nil, err
	}
	found, err := resolve(host)
	if err != nil {
		return nil, err
	}
	return net.DialTimeout(network, net.JoinHostPort(found[0], port), patience)
}

func resolve(name string) ([]string, error) {
	limited, cancel := context.WithTimeout(context.Background(), lookup)
	defer cancel()
	return net.DefaultResolver.LookupHost(limited, name)
}

func lookups(names map[string]string) map[string]string {
	return each(names, func(name string) string {
		found, err := resolve(name)
		if err != nil {
			return err.Error()
		}
		return strings.Join(found, " ")
	})
}

func calls(wanted map[string]Call) map[string]Answer {
	client := http.Client{
		Timeout: 2 * patience,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
			DisableKeepAlives: true,
		},
	}
	return each(wanted, func(call Call) Answer {
		request, err := http.NewRequest(call.Method, call.URL, strings.NewReader(call.Body))
		if err != nil {
			return Answer{Error: err.Error()}
		}
		for name, value := range call.Headers {
			request.Header.Set(name, value)
		}
		response, err := client.Do(request)
		if err != nil {
			return Answer{Error: err.Error()}
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(response.Body, 2000))
		return Answer{Status: response.StatusCode, Body: string(body)}
	})
}

// each does the same for all targets at once, so that many refusals take no longer than one.
func each[T, R any](targets map[string]T, do func(T) R) map[string]R {
	results := make(map[string]R, len(targets))
	var mutex sync.Mutex
	var all sync.WaitGroup
	for name, target := range targets {
		all.Go(func() {
			result := do(target)
			mutex.Lock()
			defer mutex.Unlock()
			results[name] = result
		})
	}
	all.Wait()
	return results
}
