package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	beat     = 50 * time.Millisecond
	pause    = 300 * time.Millisecond // each knock is two lookups, and each of these may be reported
	answered = 500 * time.Millisecond
)

// note is one line of the log.
type note struct {
	At    float64 `json:"at"` // seconds since the epoch
	Name  string  `json:"name"`
	Event string  `json:"event"`
}

type notebook struct {
	mutex sync.Mutex
	file  *os.File
}

func (n *notebook) write(name, event string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	json.NewEncoder(n.file).Encode(note{float64(time.Now().UnixMicro()) / 1e6, name, event})
}

// stay knocks at every server again and again, and holds on to the first connection that each of them gives. Every
// word that it says begins with the label. It only ends when it is killed.
func stay(path, label string, servers []string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	notes := &notebook{file: file}
	for _, each := range servers {
		name, target, found := strings.Cut(each, "=")
		if !found {
			return fmt.Errorf("%s is not NAME=HOST:PORT", each)
		}
		go knock(notes, label, name, target)
	}
	select {}
}

func knock(notes *notebook, label, name, target string) {
	held := false
	open := false
	for ; ; time.Sleep(pause) {
		connection, err := dial("tcp", target, answered)
		if err == nil {
			if !held {
				held = true
				go hold(notes, label, name, connection)
				continue
			}
			err = exchange(connection, label+" knock")
			connection.Close()
		}
		if open != (err == nil) {
			open = err == nil
			notes.write(name, map[bool]string{true: "opens", false: "closes"}[open])
		}
	}
}

// hold talks on one connection and never gives it up, so that only the network can end it.
func hold(notes *notebook, label, name string, connection net.Conn) {
	notes.write(name, "held")
	alive := true
	for ; ; time.Sleep(beat) {
		err := exchange(connection, label+" held")
		if alive != (err == nil) {
			alive = err == nil
			notes.write(name, map[bool]string{true: "held again", false: "held no more"}[alive])
		}
	}
}

// exchange says one line and waits for the answer.
func exchange(connection net.Conn, line string) error {
	connection.SetDeadline(time.Now().Add(answered))
	if _, err := connection.Write([]byte(line + "\n")); err != nil {
		return err
	}
	answer := make([]byte, 64)
	_, err := connection.Read(answer)
	return err
}
