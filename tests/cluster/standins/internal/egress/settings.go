package egress

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	variablePrefix = "OPENSANDBOX_EGRESS_"
	resolverFile   = "/etc/resolv.conf"
)

// Settings come from the environment, under the names that OpenSandbox documents.
type Settings struct {
	// Filter is whether addresses are judged too (mode dns+nft), not only names (mode dns).
	Filter     bool
	Rules      string
	PolicyFile string
	Address    string
	Token      string
	MaxRules   int // 0: no limit
	Upstreams  []netip.AddrPort
	Timeout    time.Duration
	Webhook    string
	SandboxID  string
	LogLevel   string
}

// ReadSettings reads the environment.
func ReadSettings() (Settings, error) {
	settings := Settings{
		Rules:      variable("RULES", ""),
		PolicyFile: variable("POLICY_FILE", ""),
		Address:    variable("HTTP_ADDR", ":18080"),
		Token:      variable("TOKEN", ""),
		Webhook:    variable("DENY_WEBHOOK", ""),
		SandboxID:  variable("SANDBOX_ID", ""),
		LogLevel:   variable("LOG_LEVEL", "info"),
	}
	switch mode := variable("MODE", "dns"); mode {
	case "dns":
	case "dns+nft":
		settings.Filter = true
	default:
		return settings, fmt.Errorf("%sMODE is %q, neither dns nor dns+nft", variablePrefix, mode)
	}
	var err error
	if settings.MaxRules, err = count("MAX_RULES", 4096); err != nil {
		return settings, err
	}
	seconds, err := count("DNS_UPSTREAM_TIMEOUT", 5)
	if err != nil {
		return settings, err
	}
	settings.Timeout = time.Duration(seconds) * time.Second
	settings.Upstreams, err = upstreams(variable("DNS_UPSTREAM", ""))
	return settings, err
}

// ModeName is the mode as the interface tells it.
func (s Settings) ModeName() string {
	if s.Filter {
		return "dns+nft"
	}
	return "dns"
}

func variable(name, otherwise string) string {
	if value := strings.TrimSpace(os.Getenv(variablePrefix + name)); value != "" {
		return value
	}
	return otherwise
}

func count(name string, otherwise int) (int, error) {
	text := variable(name, strconv.Itoa(otherwise))
	value, err := strconv.Atoi(text)
	if err != nil || value < 0 {
		return 0, fmt.Errorf("%s%s is %q, not a number from 0 on", variablePrefix, name, text)
	}
	return value, nil
}

// upstreams are the resolvers to ask: those of the setting, as addresses with or without a port, else the pod's.
func upstreams(setting string) ([]netip.AddrPort, error) {
	var names []string
	if setting != "" {
		names = strings.Split(setting, ",")
	} else {
		content, err := os.ReadFile(resolverFile)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(content)) {
			if words := strings.Fields(line); len(words) > 1 && words[0] == "nameserver" {
				names = append(names, words[1])
			}
		}
	}
	var found []netip.AddrPort
	for _, name := range names {
		name = strings.TrimSpace(name)
		address, err := netip.ParseAddrPort(name)
		if err != nil {
			bare, err := netip.ParseAddr(strings.Trim(name, "[]"))
			if err != nil {
				return nil, fmt.Errorf("resolver %q is no literal address", name)
			}
			address = netip.AddrPortFrom(bare, 53)
		}
		found = append(found, address)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no resolver: neither %sDNS_UPSTREAM nor %s names one", variablePrefix, resolverFile)
	}
	return found, nil
}
