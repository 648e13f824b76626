package egress

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"time"
)

const (
	queueSize     = 256
	webhookRetry  = 3
	webhookPause  = time.Second
	webhookLimit  = 5 * time.Second
	watchEvery    = time.Second
	flushPatience = time.Second
)

// refusal is the body that the webhook gets, one for each refused lookup and each refused connection; the
// published egress sends it for lookups only.
type refusal struct {
	Hostname  string `json:"hostname"`
	Timestamp string `json:"timestamp"`
	Source    string `json:"source"`
	SandboxID string `json:"sandboxId"`
}

// Reporter tells what was refused: as lines of the log and, where one is set, to a webhook.
type Reporter struct {
	webhook   string
	sandboxID string
	log       *slog.Logger
	client    *http.Client
	queue     chan any
	harvest   chan chan struct{}
}

// NewReporter makes a reporter.
func NewReporter(settings Settings, log *slog.Logger) *Reporter {
	return &Reporter{
		webhook:   settings.Webhook,
		sandboxID: settings.SandboxID,
		log:       log,
		client:    &http.Client{Timeout: webhookLimit},
		queue:     make(chan any, queueSize),
		harvest:   make(chan chan struct{}),
	}
}

// Start reports until the process ends; `list` lists the connections that were refused lately.
func (r *Reporter) Start(list func() ([]Attempt, error)) {
	go r.deliver()
	go r.watch(list)
}

// Name reports a refused lookup.
func (r *Reporter) Name(host, kind string) {
	r.log.Info("refused", "host", host, "qtype", kind)
	r.send(host)
}

// Flush waits, within limits, until everything that was refused so far is reported.
func (r *Reporter) Flush() {
	patience := time.After(flushPatience)
	harvested, delivered := make(chan struct{}), make(chan struct{})
	select {
	case r.harvest <- harvested:
	case <-patience:
		return
	}
	select {
	case <-harvested:
	case <-patience:
		return
	}
	select {
	case r.queue <- delivered:
	case <-patience:
		return
	}
	select {
	case <-delivered:
	case <-patience:
	}
}

func (r *Reporter) send(host string) {
	if r.webhook == "" {
		return
	}
	event := refusal{host, time.Now().UTC().Format(time.RFC3339), "opensandbox-egress", r.sandboxID}
	select {
	case r.queue <- event:
	default:
		r.log.Warn("too many refusals at once, one is not reported", "host", host)
	}
}

// watch reports each refused connection once, however often its packets are sent again.
func (r *Reporter) watch(list func() ([]Attempt, error)) {
	known := map[Attempt]bool{}
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		var waiting chan struct{}
		select {
		case <-ticker.C:
		case waiting = <-r.harvest:
		}
		attempts, err := list()
		if err != nil {
			r.log.Error("refused connections are not listed", "error", err)
		} else {
			current := map[Attempt]bool{}
			for _, each := range attempts {
				current[each] = true
				if !known[each] {
					r.log.Info("refused", "address", each.Address, "port", each.Port, "proto", each.Protocol)
					r.send(each.Address.String())
				}
			}
			known = current
		}
		if waiting != nil {
			close(waiting)
		}
	}
}

func (r *Reporter) deliver() {
	for each := range r.queue {
		switch each := each.(type) {
		case refusal:
			r.post(each)
		case chan struct{}:
			close(each)
		}
	}
}

// post delivers one event: a broken connection and an error of the other side are tried again, nothing else.
func (r *Reporter) post(event refusal) {
	body, err := json.Marshal(event)
	if err != nil {
		r.log.Error("a refusal is no JSON", "error", err)
		return
	}
	for try := range webhookRetry + 1 {
		time.Sleep(time.Duration(try) * webhookPause)
		response, err := r.client.Post(r.webhook, "application/json", bytes.NewReader(body))
		if err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			if response.StatusCode < http.StatusInternalServerError {
				return
			}
		}
	}
	r.log.Warn("a refusal was not delivered", "host", event.Hostname)
}
