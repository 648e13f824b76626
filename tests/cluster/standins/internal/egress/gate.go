package egress

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
)

// What is remembered, which the sandbox can make many of; beyond this, names have to be looked up again after
// a change of policy.
const (
	mostAddresses = 4096
	mostNames     = 16 // of one address
)

// Gate is the policy in force. Names, addresses and the file change together: no lookup meets one policy's names
// and another's addresses.
type Gate struct {
	filter Filter
	file   string
	log    *slog.Logger

	// Held by readers while an answer's addresses are admitted, by a writer while the policy changes.
	mutex  sync.RWMutex
	policy Policy

	namesMutex sync.Mutex
	names      map[netip.Addr]map[string]bool
}

// NewGate puts the first policy in force: the file's if there is one, else that of the settings.
func NewGate(settings Settings, log *slog.Logger) (*Gate, error) {
	policy, err := firstPolicy(settings, log)
	if err != nil {
		return nil, err
	}
	gate := &Gate{
		filter: Filter{enforce: settings.Filter, upstreams: settings.Upstreams},
		file:   settings.PolicyFile,
		log:    log,
		policy: policy,
		names:  map[netip.Addr]map[string]bool{},
	}
	return gate, gate.filter.Apply(policy, nil)
}

func firstPolicy(settings Settings, log *slog.Logger) (Policy, error) {
	if settings.PolicyFile != "" {
		content, err := os.ReadFile(settings.PolicyFile)
		if err == nil {
			policy, err := ParsePolicy(string(content))
			if err == nil && len(content) > 0 {
				return policy, nil
			}
			log.Warn("the policy file is passed over", "file", settings.PolicyFile, "error", err)
		} else if !errors.Is(err, os.ErrNotExist) {
			return Policy{}, err
		}
	}
	return ParsePolicy(settings.Rules)
}

// Policy is the one in force.
func (g *Gate) Policy() Policy {
	g.mutex.RLock()
	defer g.mutex.RUnlock()
	return g.policy
}

// Replace puts a policy in force; on failure the old one stays. Addresses of names that are still allowed stay
// open, so that clients need not look them up again.
func (g *Gate) Replace(policy Policy) error {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if err := g.filter.Apply(policy, g.stillAllowed(policy)); err != nil {
		return err
	}
	if err := save(g.file, policy); err != nil {
		return errors.Join(err, g.filter.Apply(g.policy, g.stillAllowed(g.policy)))
	}
	g.policy = policy
	return nil
}

// Admit opens what a name resolved to; false when the name is no longer allowed.
func (g *Gate) Admit(name string, leases []Lease) (bool, error) {
	g.mutex.RLock()
	defer g.mutex.RUnlock()
	if !g.policy.Allows(name) {
		return false, nil
	}
	if err := g.filter.Admit(leases); err != nil {
		return false, err
	}
	g.remember(name, leases)
	return true, nil
}

// Refused lists the connections that were refused lately.
func (g *Gate) Refused() ([]Attempt, error) { return g.filter.Refused() }

func (g *Gate) remember(name string, leases []Lease) {
	g.namesMutex.Lock()
	defer g.namesMutex.Unlock()
	for _, each := range leases {
		if g.names[each.Address] == nil {
			if len(g.names) >= mostAddresses {
				return
			}
			g.names[each.Address] = map[string]bool{}
		}
		if len(g.names[each.Address]) < mostNames {
			g.names[each.Address][name] = true
		}
	}
}

func (g *Gate) stillAllowed(policy Policy) []Lease {
	g.namesMutex.Lock()
	defer g.namesMutex.Unlock()
	var leases []Lease
	for address, names := range g.names {
		for name := range names {
			if policy.Allows(name) {
				leases = append(leases, Lease{Address: address, TTL: longestAnswer})
				break
			}
		}
	}
	return leases
}

// save replaces the file whole, so that a crash leaves the old policy or the new one.
func save(path string, policy Policy) error {
	if path == "" {
		return nil
	}
	content, err := json.MarshalIndent(policy, "", "  ")
	if err != nil {
		return err
	}
	unfinished, err := os.CreateTemp(filepath.Dir(path), ".policy-*")
	if err != nil {
		return err
	}
	defer os.Remove(unfinished.Name())
	_, err = unfinished.Write(append(content, '\n'))
	if err := errors.Join(err, unfinished.Sync(), unfinished.Close()); err != nil {
		return err
	}
	return os.Rename(unfinished.Name(), path)
}
