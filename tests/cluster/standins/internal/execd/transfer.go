package execd

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// permission is owner, group and mode of a file; the mode's decimal digits are read as octal ones.
type permission struct {
	Owner string `json:"owner"`
	Group string `json:"group"`
	Mode  int    `json:"mode"`
}

type metadata struct {
	Path string `json:"path"`
	permission
}

// problem is an error together with how it is answered.
type problem struct {
	status  int
	code    string
	message string
}

// upload takes pairs of a `metadata` and a `file` part and writes each file while it arrives.
func upload(w http.ResponseWriter, r *http.Request) {
	if failure := receive(r); failure != nil {
		fail(w, failure.status, failure.code, failure.message)
	}
}

func receive(r *http.Request) *problem {
	parts, err := r.MultipartReader()
	if err != nil {
		return &problem{http.StatusBadRequest, invalidFile, "multipart form is empty"}
	}
	var waiting []metadata
	described, written := 0, 0
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return &problem{http.StatusBadRequest, invalidFile, "multipart form is broken: " + err.Error()}
		}
		switch {
		case part.FileName() == "":
			// A plain value of a form is not a part of an upload.
		case part.FormName() == "metadata":
			var told metadata
			if err := json.NewDecoder(part).Decode(&told); err != nil || told.Path == "" {
				return &problem{http.StatusBadRequest, invalidMetadata, "metadata is no JSON with a path"}
			}
			waiting = append(waiting, told)
			described++
		case part.FormName() == "file":
			if len(waiting) == 0 {
				return &problem{http.StatusBadRequest, invalidMetadata, "a file comes before its metadata"}
			}
			if err := store(waiting[0], part); err != nil {
				return &problem{http.StatusInternalServerError, runtimeError, "error writing file. " + err.Error()}
			}
			waiting = waiting[1:]
			written++
		}
	}
	switch {
	case described == 0:
		return &problem{http.StatusBadRequest, invalidMetadata, "metadata file is missing"}
	case written == 0:
		return &problem{http.StatusBadRequest, invalidContent, "file is missing"}
	case len(waiting) > 0:
		return &problem{http.StatusBadRequest, invalidFile, "metadata and file count mismatch"}
	}
	return nil
}

func store(told metadata, content io.Reader) error {
	path, err := absolute(told.Path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o777)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return apply(path, told.permission)
}

// apply sets what the permission names.
func apply(path string, wanted permission) error {
	if wanted.Mode != 0 {
		mode, err := strconv.ParseUint(strconv.Itoa(wanted.Mode), 8, 32)
		if err != nil {
			return err
		}
		if err := os.Chmod(path, os.FileMode(mode)); err != nil {
			return err
		}
	}
	uid, gid, err := owners(wanted.Owner, wanted.Group)
	if err != nil || (uid < 0 && gid < 0) {
		return err
	}
	return os.Chown(path, uid, gid)
}

// download sends a file, a byte range of it, or lines of it.
func download(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Get("path") == "" {
		fail(w, http.StatusBadRequest, missingQuery, "missing query parameter 'path'")
		return
	}
	lines := query.Get("offset") != "" || query.Get("limit") != ""
	if lines && r.Header.Get("Range") != "" {
		fail(w, http.StatusBadRequest, invalidRequest, "offset/limit and a Range header exclude each other")
		return
	}
	path, err := absolute(query.Get("path"))
	if err != nil {
		failFile(w, err)
		return
	}
	// Without the flag, opening a pipe would wait for its other end.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		failFile(w, err)
		return
	}
	defer file.Close()
	found, err := file.Stat()
	if err == nil && !found.Mode().IsRegular() {
		err = errors.New("not a regular file: " + path)
	}
	if err != nil {
		failFile(w, err)
		return
	}
	if lines {
		sendLines(w, file, query.Get("offset"), query.Get("limit"))
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": filepath.Base(path)}))
	http.ServeContent(w, r, "", found.ModTime(), file)
}

// sendLines sends `limit` lines from line `offset` on, which counts from 1.
func sendLines(w http.ResponseWriter, file io.Reader, rawOffset, rawLimit string) {
	offset, offsetOK := positive(rawOffset, 1)
	limit, limitOK := positive(rawLimit, -1)
	if !offsetOK || !limitOK {
		fail(w, http.StatusBadRequest, invalidRequest, "offset and limit are numbers from 1 on")
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	reader := bufio.NewReader(file)
	for number, sent := 1, 0; limit < 0 || sent < limit; number++ {
		line, err := reader.ReadString('\n')
		if number >= offset && line != "" {
			if sent > 0 {
				_, _ = io.WriteString(w, "\n")
			}
			_, _ = io.WriteString(w, trimEnd(line))
			sent++
		}
		if err != nil {
			return
		}
	}
}

func positive(text string, otherwise int) (int, bool) {
	if text == "" {
		return otherwise, true
	}
	value, err := strconv.Atoi(text)
	return value, err == nil && value >= 1
}

func trimEnd(line string) string {
	for len(line) > 0 && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
		line = line[:len(line)-1]
	}
	return line
}
