package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
)

// Holdings are what lies within a sandbox's reach without any network.
type Holdings struct {
	// Present are those of the paths where other containers of the pod, or of Kubernetes, keep things.
	Present []string `json:"present"`
	// Mounts is the whole table of mounts.
	Mounts string `json:"mounts"`
	// Variables are the environments of all processes to be seen, a line each.
	Variables []string `json:"variables"`
	// Processes are the names of these.
	Processes []string `json:"processes"`
	// Capabilities are the lines of /proc/self/status that begin with Cap, and those on privileges and seccomp.
	Capabilities map[string]string `json:"capabilities"`
	Addresses    []string          `json:"addresses"`
}

var forbidden = []string{
	"/run/argo-harbor", "/etc/argo-harbor", "/var/run/argo", "/run/argo", "/argo", "/trial", "/state", "/mainctrfs",
	"/var/run/secrets", "/run/secrets", "/run/containerd", "/var/run/docker.sock", "/run/docker.sock", "/run/crio",
	"/run/buildkit", "/opt/opensandbox/token", "/opt/opensandbox-egress", "/var/lib/kubelet", "/etc/kubernetes",
	"/dev/mem", "/dev/kmem", "/dev/kmsg", "/dev/sda", "/dev/vda", "/dev/fuse", "/dev/kvm", "/dev/net/tun",
}

func holdings() Holdings {
	found := Holdings{Present: []string{}, Capabilities: map[string]string{}}
	for _, path := range forbidden {
		if _, err := os.Lstat(path); err == nil {
			found.Present = append(found.Present, path)
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	found.Mounts = string(mounts)
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environments {
		text, _ := os.ReadFile(path)
		found.Variables = append(found.Variables, strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")...)
	}
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, path := range names {
		text, _ := os.ReadFile(path)
		found.Processes = append(found.Processes, strings.TrimSpace(string(text)))
	}
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if strings.HasPrefix(name, "Cap") || name == "Seccomp" || name == "NoNewPrivs" || name == "Uid" {
			found.Capabilities[name] = strings.TrimSpace(value)
		}
	}
	own, _ := net.InterfaceAddrs()
	for _, each := range own {
		found.Addresses = append(found.Addresses, each.String())
	}
	return found
}
