package execd

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"
)

const (
	pollEvery = 50 * time.Millisecond
	chunkSize = 64 << 10
)

// outputFolder makes the folder for what commands print. Output goes through files, not pipes: a process that
// a command leaves behind keeps its output open and must hold up nothing.
func outputFolder() (string, error) {
	folder := filepath.Join(os.TempDir(), "opensandbox-execd")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	return folder, os.Chmod(folder, 0o700)
}

func createOutput(name string) (*os.File, error) {
	folder, err := outputFolder()
	if err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(folder, name), os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
}

// follow reports what is written to the file until `ended`, then the rest of it. Texts are whole lines with
// their ends, except for the last one and for lines longer than a chunk.
func follow(file *os.File, ended <-chan struct{}, report func(string)) {
	tail := tail{file: file, report: report}
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			tail.read()
			tail.flush()
			return
		case <-ticker.C:
			tail.read()
		}
	}
}

type tail struct {
	file    *os.File
	offset  int64
	pending []byte
	report  func(string)
}

func (t *tail) read() {
	chunk := make([]byte, chunkSize)
	for {
		count, err := t.file.ReadAt(chunk, t.offset)
		t.offset += int64(count)
		t.pending = append(t.pending, chunk[:count]...)
		t.pass(wholeLines(t.pending))
		if len(t.pending) >= chunkSize {
			t.pass(wholeRunes(t.pending))
		}
		if err == io.EOF || err != nil || count == 0 {
			return
		}
	}
}

func (t *tail) flush() { t.pass(len(t.pending)) }

func (t *tail) pass(length int) {
	if length > 0 {
		t.report(string(t.pending[:length]))
		t.pending = append([]byte(nil), t.pending[length:]...)
	}
}

func wholeLines(text []byte) int { return bytes.LastIndexByte(text, '\n') + 1 }

// wholeRunes leaves out a character whose bytes have not all come yet.
func wholeRunes(text []byte) int {
	for cut := 1; cut < utf8.UTFMax && cut <= len(text); cut++ {
		last := len(text) - cut
		if utf8.RuneStart(text[last]) {
			if !utf8.FullRune(text[last:]) {
				return last
			}
			break
		}
	}
	return len(text)
}
