package egress

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/miekg/dns"
)

// Resolver is the DNS proxy that all lookups of the pod are redirected to.
type Resolver struct {
	gate      *Gate
	reporter  *Reporter
	upstreams []netip.AddrPort
	timeout   time.Duration
	log       *slog.Logger
}

// NewResolver makes a proxy; Start starts it.
func NewResolver(settings Settings, gate *Gate, reporter *Reporter, log *slog.Logger) *Resolver {
	return &Resolver{gate, reporter, settings.Upstreams, settings.Timeout, log}
}

// Start listens, and returns once lookups are answered. Where the pod has no IPv6, only IPv4 is served.
func (r *Resolver) Start() error {
	if err := r.listen("127.0.0.1"); err != nil {
		return err
	}
	if err := r.listen("::1"); err != nil {
		r.log.Info("lookups over IPv6 are not served", "reason", err.Error())
	}
	return r.selfTest()
}

func (r *Resolver) listen(host string) error {
	address := net.JoinHostPort(host, fmt.Sprint(proxyPort))
	packets, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	connections, err := net.Listen("tcp", address)
	if err != nil {
		return errors.Join(err, packets.Close())
	}
	for _, server := range []*dns.Server{{PacketConn: packets}, {Listener: connections}} {
		server.Handler = r
		go func() {
			if err := server.ActivateAndServe(); err != nil {
				r.log.Error("the DNS proxy stopped", "error", err)
			}
		}()
	}
	return nil
}

// selfTest finds out that the kernel does not redirect lookups before anything relies on it.
func (r *Resolver) selfTest() error {
	query := new(dns.Msg).SetQuestion("egress-self-test.invalid.", dns.TypeTXT)
	answer, _, err := new(dns.Client).Exchange(query, "127.0.0.1:53")
	if err != nil {
		return fmt.Errorf("lookups are not redirected to the proxy: %w", err)
	}
	if len(answer.Answer) != 1 {
		return errors.New("lookups are not redirected to the proxy: another resolver answered")
	}
	return nil
}

// ServeDNS answers one query. Addresses are open before the client learns them.
func (r *Resolver) ServeDNS(w dns.ResponseWriter, query *dns.Msg) {
	if len(query.Question) != 1 {
		_ = w.WriteMsg(new(dns.Msg).SetRcode(query, dns.RcodeFormatError))
		return
	}
	question := query.Question[0]
	if question.Name == "egress-self-test.invalid." && question.Qtype == dns.TypeTXT {
		answer := new(dns.Msg).SetReply(query)
		answer.Answer = []dns.RR{&dns.TXT{
			Hdr: dns.RR_Header{Name: question.Name, Rrtype: dns.TypeTXT, Class: dns.ClassINET},
			Txt: []string{"ok"},
		}}
		_ = w.WriteMsg(answer)
		return
	}
	name := strings.ToLower(strings.TrimSuffix(question.Name, "."))
	if !r.gate.Policy().Allows(name) {
		r.refuse(w, query, name)
		return
	}
	answer, err := r.forward(query, w.LocalAddr().Network())
	if err != nil {
		r.log.Warn("a lookup failed", "host", name, "error", err)
		_ = w.WriteMsg(new(dns.Msg).SetRcode(query, dns.RcodeServerFailure))
		return
	}
	// The policy may have changed while the upstream was asked.
	admitted, err := r.gate.Admit(name, leases(answer))
	switch {
	case err != nil:
		r.log.Error("addresses were not opened", "host", name, "error", err)
		_ = w.WriteMsg(new(dns.Msg).SetRcode(query, dns.RcodeServerFailure))
	case !admitted:
		r.refuse(w, query, name)
	default:
		_ = w.WriteMsg(answer)
	}
}

func (r *Resolver) refuse(w dns.ResponseWriter, query *dns.Msg, name string) {
	r.reporter.Name(name, dns.TypeToString[query.Question[0].Qtype])
	_ = w.WriteMsg(new(dns.Msg).SetRcode(query, dns.RcodeNameError))
}

// forward asks the upstreams in turn until one knows that there are records or that there are none.
func (r *Resolver) forward(query *dns.Msg, network string) (*dns.Msg, error) {
	client := &dns.Client{
		Net:     network,
		Timeout: r.timeout,
		UDPSize: dns.MaxMsgSize,
		Dialer:  &net.Dialer{Timeout: r.timeout, Control: mark},
	}
	var failures []error
	for _, upstream := range r.upstreams {
		answer, _, err := client.Exchange(query, upstream.String())
		if err == nil && answer.Rcode != dns.RcodeSuccess && answer.Rcode != dns.RcodeNameError {
			err = errors.New(dns.RcodeToString[answer.Rcode])
		}
		if err == nil {
			return answer, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", upstream, err))
	}
	return nil, errors.Join(failures...)
}

// mark makes the proxy's own queries the ones that are not redirected.
func mark(_, _ string, connection syscall.RawConn) error {
	var failure error
	err := connection.Control(func(descriptor uintptr) {
		failure = syscall.SetsockoptInt(int(descriptor), syscall.SOL_SOCKET, syscall.SO_MARK, ownMark)
	})
	return errors.Join(err, failure)
}

func leases(answer *dns.Msg) []Lease {
	var found []Lease
	for _, record := range answer.Answer {
		var raw net.IP
		switch record := record.(type) {
		case *dns.A:
			raw = record.A
		case *dns.AAAA:
			raw = record.AAAA
		}
		if address, ok := netip.AddrFromSlice(raw); ok {
			ttl := time.Duration(record.Header().Ttl) * time.Second
			found = append(found, Lease{Address: address.Unmap(), TTL: ttl})
		}
	}
	return found
}
