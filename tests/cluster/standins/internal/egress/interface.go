package egress

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
)

const (
	tokenHeader = "OPENSANDBOX-EGRESS-AUTH"
	largestBody = 1 << 20
)

// policyStatus is the answer about the policy.
type policyStatus struct {
	Status          string  `json:"status"`
	Mode            string  `json:"mode"`
	EnforcementMode string  `json:"enforcementMode,omitempty"`
	Reason          string  `json:"reason,omitempty"`
	Policy          *Policy `json:"policy,omitempty"`
}

type server struct {
	settings Settings
	gate     *Gate
	reporter *Reporter
	log      *slog.Logger
	// Held for a whole request, so that two merges do not lose each other's rules.
	mutex sync.Mutex
}

// Handler serves the interface that changes the policy.
func Handler(settings Settings, gate *Gate, reporter *Reporter, log *slog.Logger) http.Handler {
	s := &server{settings: settings, gate: gate, reporter: reporter, log: log}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	routes.HandleFunc("/policy", s.policy)
	return routes
}

func (s *server) policy(w http.ResponseWriter, r *http.Request) {
	token := r.Header.Get(tokenHeader)
	if s.settings.Token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(s.settings.Token)) != 1 {
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}
	change := map[string]func(string) (Policy, error){
		http.MethodPost:   s.replaced,
		http.MethodPut:    s.replaced,
		http.MethodPatch:  s.patched,
		http.MethodDelete: s.reduced,
	}[r.Method]
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch {
	case r.Method == http.MethodGet:
		policy := s.gate.Policy()
		answer(w, policyStatus{Status: "ok", Mode: policy.Mode(), EnforcementMode: s.settings.ModeName(), Policy: &policy})
	case change == nil:
		w.Header().Set("Allow", "GET, POST, PUT, PATCH, DELETE")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	default:
		s.apply(w, r, change)
	}
}

func (s *server) apply(w http.ResponseWriter, r *http.Request, change func(string) (Policy, error)) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestBody))
	if err != nil {
		http.Error(w, "failed to read body: "+err.Error(), http.StatusBadRequest)
		return
	}
	policy, err := change(strings.TrimSpace(string(body)))
	if err != nil {
		http.Error(w, "invalid policy: "+err.Error(), http.StatusBadRequest)
		return
	}
	if limit := s.settings.MaxRules; limit > 0 && len(policy.Egress) > limit {
		http.Error(w, fmt.Sprintf("%d egress rules, more than %d", len(policy.Egress), limit), http.StatusRequestEntityTooLarge)
		return
	}
	// What the old policy refused is reported before the new one is in force.
	s.reporter.Flush()
	if err := s.gate.Replace(policy); err != nil {
		s.log.Error("the policy stays as it was", "error", err)
		http.Error(w, "failed to apply policy: "+err.Error(), http.StatusInternalServerError)
		return
	}
	s.log.Info("policy in force", "mode", policy.Mode(), "default", policy.DefaultAction, "rules", policy.Egress)
	told := policyStatus{Status: "ok", Mode: policy.Mode(), EnforcementMode: s.settings.ModeName()}
	if len(body) == 0 {
		told.EnforcementMode, told.Reason = "", "policy reset to default deny-all"
	}
	answer(w, told)
}

func (s *server) replaced(body string) (Policy, error) { return ParsePolicy(body) }

func (s *server) patched(body string) (Policy, error) {
	var rules []Rule
	if err := json.Unmarshal([]byte(body), &rules); err != nil {
		return Policy{}, err
	}
	if len(rules) == 0 {
		return Policy{}, fmt.Errorf("empty array")
	}
	return s.gate.Policy().Merged(rules)
}

func (s *server) reduced(body string) (Policy, error) {
	var targets []string
	if err := json.Unmarshal([]byte(body), &targets); err != nil {
		return Policy{}, err
	}
	if len(targets) == 0 {
		return Policy{}, fmt.Errorf("empty array")
	}
	return s.gate.Policy().Without(targets), nil
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}
