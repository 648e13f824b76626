package egress

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"text/template"
	"time"
)

const (
	table     = "opensandbox"
	proxyPort = 15353
	// ownMark is on the proxy's own queries; setting it takes NET_ADMIN or NET_RAW, which no sandbox may have.
	ownMark = 1
)

// Lease is an address that an allowed name resolved to.
type Lease struct {
	Address netip.Addr
	TTL     time.Duration
}

// Filter is the kernel's side: one table of nftables, changed in whole transactions, so that no packet ever
// meets half a policy. It stays when this process ends.
type Filter struct {
	// enforce is whether addresses are judged; otherwise only name lookups are redirected.
	enforce   bool
	upstreams []netip.AddrPort
}

// The rules of the table. What was accepted once under the policy in force stays accepted: its connection carries
// the policy's number, so that an expired lease cuts nothing. The next policy has another number, and every open
// connection is judged again. Only packets of connections from outside pass as replies: `ct state established`
// would let what the pod itself has opened live on.
//
// The inbound chain keeps a cut connection from coming back: when the kernel has forgotten it, a late packet of the
// other side would count as a new connection from outside, and what the pod sends as its replies.
var ruleset = template.Must(template.New("ruleset").Parse(`
add table inet {{.Table}}
{{- range .Families}}
add set inet {{$.Table}} allow_{{.Name}} { type {{.Type}}; flags interval; auto-merge; }
add set inet {{$.Table}} deny_{{.Name}} { type {{.Type}}; flags interval; auto-merge; }
add set inet {{$.Table}} dyn_allow_{{.Name}} { type {{.Type}}; size 65535; flags timeout; }
add set inet {{$.Table}} refused_{{.Name}} { typeof meta l4proto . {{.Match}} daddr . th dport . th sport; size 2048; flags dynamic,timeout; timeout 2m; }
flush set inet {{$.Table}} allow_{{.Name}}
flush set inet {{$.Table}} deny_{{.Name}}
flush set inet {{$.Table}} dyn_allow_{{.Name}}
{{- if .Allowed}}
add element inet {{$.Table}} allow_{{.Name}} { {{.Allowed}} }
{{- end}}
{{- if .Denied}}
add element inet {{$.Table}} deny_{{.Name}} { {{.Denied}} }
{{- end}}
{{- if .Leased}}
add element inet {{$.Table}} dyn_allow_{{.Name}} { {{.Leased}} }
{{- end}}
{{- end}}
add chain inet {{.Table}} lookups { type nat hook output priority -100; policy accept; }
add chain inet {{.Table}} egress { type filter hook output priority 0; policy {{if .Enforce}}drop{{else}}accept{{end}}; }
add chain inet {{.Table}} inbound { type filter hook input priority 0; policy accept; }
add chain inet {{.Table}} refuse
flush chain inet {{.Table}} lookups
flush chain inet {{.Table}} egress
flush chain inet {{.Table}} inbound
flush chain inet {{.Table}} refuse
add rule inet {{.Table}} lookups meta mark {{.Mark}} return
add rule inet {{.Table}} lookups meta l4proto { tcp, udp } th dport 53 redirect to :{{.Port}}
{{- if .Enforce}}
add rule inet {{.Table}} inbound iifname != "lo" meta l4proto tcp ct state new tcp flags & (fin | syn | rst | ack) != syn drop
add rule inet {{.Table}} inbound iifname != "lo" meta l4proto udp ct state new drop
add rule inet {{.Table}} egress oifname "lo" accept
add rule inet {{.Table}} egress ip daddr 127.0.0.1 meta l4proto { tcp, udp } th dport {{.Port}} accept
add rule inet {{.Table}} egress ip6 daddr ::1 meta l4proto { tcp, udp } th dport {{.Port}} accept
add rule inet {{.Table}} egress ct direction reply accept
{{- range .Upstreams}}
add rule inet {{$.Table}} egress meta mark {{$.Mark}} {{.Match}} daddr {{.Address}} meta l4proto { tcp, udp } th dport {{.Port}} accept
{{- end}}
add rule inet {{.Table}} egress icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit } accept
add rule inet {{.Table}} egress meta l4proto { tcp, udp } th dport 853 goto refuse
add rule inet {{.Table}} egress ct mark {{.Number}} accept
{{- range .Families}}
add rule inet {{$.Table}} egress {{.Match}} daddr @deny_{{.Name}} goto refuse
{{- end}}
{{- range .Families}}
add rule inet {{$.Table}} egress {{.Match}} daddr @dyn_allow_{{.Name}} ct mark set {{$.Number}} accept
add rule inet {{$.Table}} egress {{.Match}} daddr @allow_{{.Name}} ct mark set {{$.Number}} accept
{{- end}}
{{- if .AllowRest}}
add rule inet {{.Table}} egress ct mark set {{.Number}} accept
{{- else}}
add rule inet {{.Table}} egress goto refuse
{{- end}}
{{- range .Families}}
add rule inet {{$.Table}} refuse meta l4proto { tcp, udp } {{.Match}} daddr != {{.Nowhere}} update @refused_{{.Name}} { meta l4proto . {{.Match}} daddr . th dport . th sport }
{{- end}}
add rule inet {{.Table}} refuse drop
{{- end}}
`))

type family struct {
	Name, Type, Match, Nowhere string
	Allowed, Denied, Leased    string
}

type upstreamRule struct {
	Match   string
	Address netip.Addr
	Port    uint16
}

// Apply puts a policy in force, with leases that are open under it from the start.
func (f Filter) Apply(policy Policy, leases []Lease) error {
	number := make([]byte, 4)
	if _, err := rand.Read(number); err != nil {
		return err
	}
	var rules []upstreamRule
	for _, each := range f.upstreams {
		rules = append(rules, upstreamRule{matchOf(each.Addr()), each.Addr().Unmap().WithZone(""), each.Port()})
	}
	var script strings.Builder
	err := ruleset.Execute(&script, map[string]any{
		"Table":     table,
		"Port":      proxyPort,
		"Mark":      ownMark,
		"Enforce":   f.enforce,
		"AllowRest": policy.DefaultAction == allow,
		"Upstreams": rules,
		// Never zero, which is what a connection without a mark has.
		"Number": binary.BigEndian.Uint32(number) | 1,
		"Families": []family{
			newFamily("v4", "ipv4_addr", "ip", "0.0.0.0", policy, leases),
			newFamily("v6", "ipv6_addr", "ip6", "::", policy, leases),
		},
	})
	if err != nil {
		return err
	}
	_, err = nft(script.String(), "-f", "-")
	return err
}

func newFamily(name, kind, match, nowhere string, policy Policy, leases []Lease) family {
	var leased []string
	for _, each := range leases {
		if matchOf(each.Address) == match {
			leased = append(leased, element(each))
		}
	}
	return family{
		Name: name, Type: kind, Match: match, Nowhere: nowhere,
		Allowed: elements(policy.Addresses(allow), match),
		Denied:  elements(policy.Addresses(deny), match),
		Leased:  strings.Join(leased, ", "),
	}
}

// Admit opens addresses for as long as their names were said to be valid.
func (f Filter) Admit(leases []Lease) error {
	if !f.enforce || len(leases) == 0 {
		return nil
	}
	var script strings.Builder
	for _, each := range leases {
		set := "dyn_allow_v4"
		if matchOf(each.Address) == "ip6" {
			set = "dyn_allow_v6"
		}
		// Adding alone would leave the time of an element that is there; removing alone fails when none is.
		fmt.Fprintf(&script, "add element inet %s %s { %s }\n", table, set, each.Address)
		fmt.Fprintf(&script, "delete element inet %s %s { %s }\n", table, set, each.Address)
		fmt.Fprintf(&script, "add element inet %s %s { %s }\n", table, set, element(each))
	}
	_, err := nft(script.String(), "-f", "-")
	return err
}

// Attempt is a connection that was refused, told apart from its own retries by the port it comes from.
type Attempt struct {
	Protocol string
	Address  netip.Addr
	Port     int
	From     int
}

var protocols = map[string]string{"6": "tcp", "17": "udp"}

// Refused lists the connections that were refused lately.
func (f Filter) Refused() ([]Attempt, error) {
	if !f.enforce {
		return nil, nil
	}
	var found []Attempt
	for _, name := range []string{"refused_v4", "refused_v6"} {
		text, err := nft("", "-j", "list", "set", "inet", table, name)
		if err != nil {
			return nil, err
		}
		attempts, err := parseAttempts(text)
		if err != nil {
			return nil, err
		}
		found = append(found, attempts...)
	}
	return found, nil
}

func parseAttempts(text []byte) ([]Attempt, error) {
	var answer struct {
		Nftables []struct {
			Set struct {
				Elem []struct {
					Elem struct {
						Val struct {
							Concat [4]any `json:"concat"`
						} `json:"val"`
					} `json:"elem"`
				} `json:"elem"`
			} `json:"set"`
		} `json:"nftables"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, err
	}
	var found []Attempt
	for _, object := range answer.Nftables {
		for _, each := range object.Set.Elem {
			parts := each.Elem.Val.Concat
			// An image without the table of protocols' names has their numbers here.
			protocol := fmt.Sprint(parts[0])
			if name, known := protocols[protocol]; known {
				protocol = name
			}
			literal, _ := parts[1].(string)
			port, _ := parts[2].(float64)
			from, _ := parts[3].(float64)
			if address, err := netip.ParseAddr(literal); err == nil {
				found = append(found, Attempt{protocol, address, int(port), int(from)})
			}
		}
	}
	return found, nil
}

func nft(input string, arguments ...string) ([]byte, error) {
	command := exec.Command("nft", arguments...)
	command.Stdin = strings.NewReader(input)
	var output, problems bytes.Buffer
	command.Stdout, command.Stderr = &output, &problems
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("nft: %w: %s", err, strings.TrimSpace(problems.String()))
	}
	return output.Bytes(), nil
}

// Times of an open address: a little longer than the answer's, as clients resolve late and keep answers.
const (
	leaseSlack    = 60 * time.Second
	longestAnswer = 300 * time.Second
)

func element(lease Lease) string {
	seconds := int((min(max(lease.TTL, 0), longestAnswer) + leaseSlack).Seconds())
	return fmt.Sprintf("%s timeout %ds", lease.Address, seconds)
}

func elements(prefixes []netip.Prefix, match string) string {
	var texts []string
	for _, each := range prefixes {
		if matchOf(each.Addr()) == match {
			texts = append(texts, each.String())
		}
	}
	return strings.Join(texts, ", ")
}

func matchOf(address netip.Addr) string {
	if address.Unmap().Is4() {
		return "ip"
	}
	return "ip6"
}
