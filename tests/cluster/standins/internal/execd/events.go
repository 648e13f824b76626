package execd

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

const pingEvery = 3 * time.Second

// event is one message of a command's stream.
type event struct {
	Type          string     `json:"type"`
	Text          string     `json:"text,omitempty"`
	ExecutionTime int64      `json:"execution_time,omitempty"`
	Timestamp     int64      `json:"timestamp"`
	Error         *execError `json:"error,omitempty"`
}

type execError struct {
	Name      string   `json:"ename"`
	Value     string   `json:"evalue"`
	Traceback []string `json:"traceback"`
}

// stream writes events in execd's own framing: a JSON object and an empty line, without `data:`.
type stream struct {
	mutex    sync.Mutex
	response http.ResponseWriter
	closed   chan struct{}
}

func openStream(w http.ResponseWriter) *stream {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache")
	header.Set("X-Accel-Buffering", "no")
	opened := &stream{response: w, closed: make(chan struct{})}
	go opened.ping()
	return opened
}

// send writes one event. A client that has gone is no reason to stop the command, so failures are passed over.
func (s *stream) send(message event) {
	message.Timestamp = time.Now().UnixMilli()
	text, err := json.Marshal(message)
	if err != nil {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	_, _ = s.response.Write(append(text, '\n', '\n'))
	_ = http.NewResponseController(s.response).Flush()
}

func (s *stream) close() { close(s.closed) }

func (s *stream) ping() {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.closed:
			return
		case <-ticker.C:
			s.send(event{Type: "ping", Text: "pong"})
		}
	}
}
