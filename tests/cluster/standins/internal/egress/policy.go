// Package egress keeps a pod's connections to the hosts that a policy names, as OpenSandbox's egress does: a DNS
// proxy decides about names, nftables about addresses, and an HTTP interface changes the policy.
package egress

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

const (
	allow = "allow"
	deny  = "deny"
)

// Rule allows or denies one target: a host name, `*.` and a suffix, an address, or a range of addresses.
type Rule struct {
	Action string `json:"action"`
	Target string `json:"target"`
}

// Policy is what a client sets. For names the first rule that matches counts; of addresses the denied ones count
// before the allowed ones.
type Policy struct {
	Egress        []Rule `json:"egress"`
	DefaultAction string `json:"defaultAction"`
}

// ParsePolicy reads a policy; nothing, `null` and `{}` deny everything.
func ParsePolicy(text string) (Policy, error) {
	policy := Policy{}
	if trimmed := strings.TrimSpace(text); trimmed != "" && trimmed != "null" {
		if err := json.Unmarshal([]byte(trimmed), &policy); err != nil {
			return Policy{}, err
		}
	}
	return policy, policy.normalize()
}

func (p *Policy) normalize() error {
	if p.Egress == nil {
		// A client of OpenSandbox's own does not understand `null` here.
		p.Egress = []Rule{}
	}
	p.DefaultAction = strings.ToLower(strings.TrimSpace(p.DefaultAction))
	if p.DefaultAction == "" {
		p.DefaultAction = deny
	}
	if p.DefaultAction != allow && p.DefaultAction != deny {
		return fmt.Errorf("unsupported defaultAction %q", p.DefaultAction)
	}
	for index := range p.Egress {
		rule := &p.Egress[index]
		rule.Action = strings.ToLower(strings.TrimSpace(rule.Action))
		if rule.Action == "" {
			rule.Action = deny
		}
		if rule.Action != allow && rule.Action != deny {
			return fmt.Errorf("unsupported action %q", rule.Action)
		}
		rule.Target = strings.TrimSpace(rule.Target)
		if rule.Target == "" {
			return errors.New("egress target cannot be empty")
		}
	}
	return nil
}

// Mode is the policy in a word.
func (p Policy) Mode() string {
	switch {
	case len(p.Egress) > 0:
		return "enforcing"
	case p.DefaultAction == allow:
		return "allow_all"
	}
	return "deny_all"
}

// Allows tells whether a host name may be looked up; the name is in lower case, without the final dot.
func (p Policy) Allows(name string) bool {
	for _, rule := range p.Egress {
		if !rule.prefix().IsValid() && matches(strings.ToLower(rule.Target), name) {
			return rule.Action == allow
		}
	}
	return p.DefaultAction == allow
}

// matches a name against a pattern; `*.example.com` is every name below example.com, not that name itself.
func matches(pattern, name string) bool {
	if suffix, wildcard := strings.CutPrefix(pattern, "*"); wildcard && strings.HasPrefix(suffix, ".") {
		return len(name) > len(suffix) && strings.HasSuffix(name, suffix)
	}
	return pattern == name
}

// Addresses are the addresses and ranges of the rules with this action.
func (p Policy) Addresses(action string) []netip.Prefix {
	var found []netip.Prefix
	for _, rule := range p.Egress {
		if prefix := rule.prefix(); prefix.IsValid() && rule.Action == action {
			found = append(found, prefix)
		}
	}
	return found
}

// prefix is the rule's range of addresses; invalid for a rule about names.
func (r Rule) prefix() netip.Prefix {
	if address, err := netip.ParseAddr(r.Target); err == nil {
		address = address.Unmap()
		return netip.PrefixFrom(address, address.BitLen())
	}
	prefix, err := netip.ParsePrefix(r.Target)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix.Masked()
}

// Merged puts rules before the policy's own; of rules with the same target only the first stays.
func (p Policy) Merged(rules []Rule) (Policy, error) {
	merged := Policy{DefaultAction: p.DefaultAction}
	seen := map[string]bool{}
	for _, rule := range append(append([]Rule{}, rules...), p.Egress...) {
		key := strings.ToLower(strings.TrimSpace(rule.Target))
		if !seen[key] {
			seen[key] = true
			merged.Egress = append(merged.Egress, rule)
		}
	}
	return merged, merged.normalize()
}

// Without is the policy without the rules about these targets.
func (p Policy) Without(targets []string) Policy {
	gone := map[string]bool{}
	for _, target := range targets {
		gone[strings.ToLower(strings.TrimSpace(target))] = true
	}
	rest := Policy{DefaultAction: p.DefaultAction, Egress: []Rule{}}
	for _, rule := range p.Egress {
		if !gone[strings.ToLower(rule.Target)] {
			rest.Egress = append(rest.Egress, rule)
		}
	}
	return rest
}
