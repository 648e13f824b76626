package main

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

const (
	soMark      = 36
	allFrames   = 0x0300 // ETH_P_ALL in network order
	bpfProgLoad = 5
	sysBpf      = 321 // of amd64
)

// kernel tries what capabilities and the filter for system calls keep from a sandbox.
func kernel() map[string]string {
	tried := map[string]func() error{
		"SO_MARK on TCP":        func() error { return mark(syscall.SOCK_STREAM, 0) },
		"SO_MARK on UDP":        func() error { return mark(syscall.SOCK_DGRAM, 0) },
		"AF_PACKET raw":         func() error { return socket(syscall.AF_PACKET, syscall.SOCK_RAW, allFrames) },
		"AF_PACKET datagram":    func() error { return socket(syscall.AF_PACKET, syscall.SOCK_DGRAM, allFrames) },
		"SOCK_RAW ICMP":         func() error { return socket(syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_ICMP) },
		"SOCK_RAW with headers": func() error { return socket(syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_RAW) },
		"unshare user":          func() error { return unshare(syscall.CLONE_NEWUSER) },
		"unshare net":           func() error { return unshare(syscall.CLONE_NEWNET) },
		"unshare mount":         func() error { return unshare(syscall.CLONE_NEWNS) },
		"clone into user namespace": func() error {
			return child(&syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET})
		},
		"mount tmpfs":     func() error { return syscall.Mount("none", "/mnt", "tmpfs", 0, "") },
		"mount proc":      func() error { return syscall.Mount("proc", "/mnt", "proc", 0, "") },
		"remount root":    func() error { return syscall.Mount("", "/", "", syscall.MS_REMOUNT|syscall.MS_BIND, "") },
		"umount":          func() error { return syscall.Unmount("/proc", syscall.MNT_DETACH) },
		"make a device":   func() error { return syscall.Mknod("/tmp/disk", syscall.S_IFBLK|0o600, 8<<8) },
		"load a module":   loadModule,
		"load BPF":        loadBPF,
		"set the clock":   func() error { return syscall.Settimeofday(&syscall.Timeval{Sec: time.Now().Unix()}) },
		"reboot":          func() error { return syscall.Reboot(syscall.LINUX_REBOOT_CMD_CAD_OFF) },
		"bring down eth0": interfaceDown,
		"write sysctl":    func() error { return write("/proc/sys/net/ipv4/ip_forward") },
		"write irq":       func() error { return write("/proc/irq/default_smp_affinity") },
		"write cgroup": func() error {
			return write(existing("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"))
		},
	}
	results := make(map[string]string, len(tried))
	for name, try := range tried {
		results[name] = attempt(try)
	}
	return results
}

// attempt runs one try on a thread that ends with it, since what it gains would be the thread's.
func attempt(try func() error) string {
	result := make(chan string)
	go func() {
		runtime.LockOSThread()
		if err := try(); err != nil {
			result <- err.Error()
			return
		}
		result <- "allowed"
	}()
	return <-result
}

func socket(domain, kind, protocol int) error {
	file, err := syscall.Socket(domain, kind, protocol)
	if err == nil {
		syscall.Close(file)
	}
	return err
}

func mark(kind, protocol int) error {
	file, err := syscall.Socket(syscall.AF_INET, kind, protocol)
	if err != nil {
		return nil // no socket at all would be a fault of the test, and must not look like a refusal
	}
	defer syscall.Close(file)
	return syscall.SetsockoptInt(file, syscall.SOL_SOCKET, soMark, 1)
}

func unshare(flags int) error {
	return child(&syscall.SysProcAttr{Unshareflags: uintptr(flags)})
}

// child starts a program with these attributes: a process of Go has too many threads to unshare all itself.
func child(attributes *syscall.SysProcAttr) error {
	command := exec.Command("/bin/true")
	command.SysProcAttr = attributes
	return command.Run()
}

func loadModule() error {
	image := []byte("no module")
	empty := []byte{0}
	return failure(syscall.Syscall(syscall.SYS_INIT_MODULE, address(image), uintptr(len(image)), address(empty)))
}

func loadBPF() error {
	attributes := make([]byte, 128)
	return failure(syscall.Syscall(sysBpf, bpfProgLoad, address(attributes), uintptr(len(attributes))))
}

func interfaceDown() error {
	file, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(file)
	request := make([]byte, 40)
	copy(request, "eth0")
	return failure(syscall.Syscall(syscall.SYS_IOCTL, uintptr(file), syscall.SIOCSIFFLAGS, address(request)))
}

func address(bytes []byte) uintptr { return uintptr(unsafe.Pointer(&bytes[0])) }

func failure(_, _ uintptr, code syscall.Errno) error {
	if code != 0 {
		return code
	}
	return nil
}

// existing is the first of the paths that is there.
func existing(paths ...string) string {
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return paths[0]
}

func write(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString("1")
	return err
}
