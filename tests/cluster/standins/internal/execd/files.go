package execd

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// fileInfo describes one file; a link describes itself, not its target.
type fileInfo struct {
	Path       string    `json:"path"`
	Type       string    `json:"type"`
	Size       int64     `json:"size"`
	ModifiedAt time.Time `json:"modified_at"`
	CreatedAt  time.Time `json:"created_at"`
	permission
}

func describe(path string, found fs.FileInfo) fileInfo {
	told := fileInfo{Path: path, Type: kind(found.Mode()), Size: found.Size(), ModifiedAt: found.ModTime()}
	told.Mode, _ = strconv.Atoi(strconv.FormatUint(uint64(found.Mode().Perm()), 8))
	if raw, ok := found.Sys().(*syscall.Stat_t); ok {
		told.Owner, told.Group = userName(raw.Uid), groupName(raw.Gid)
		told.CreatedAt = time.Unix(raw.Ctim.Unix())
	}
	return told
}

func kind(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "symlink"
	case mode.IsDir():
		return "directory"
	case mode.IsRegular():
		return "file"
	}
	return "other"
}

func info(w http.ResponseWriter, r *http.Request) {
	told := map[string]fileInfo{}
	for _, asked := range r.URL.Query()["path"] {
		path, err := absolute(asked)
		if err != nil {
			failFile(w, err)
			return
		}
		found, err := os.Lstat(path)
		if err != nil {
			failFile(w, err)
			return
		}
		told[asked] = describe(path, found)
	}
	answer(w, http.StatusOK, told)
}

// search finds files below a folder by the pattern of their name; `**` is every name.
func search(w http.ResponseWriter, r *http.Request) {
	root, ok := queryPath(w, r)
	if !ok {
		return
	}
	pattern := strings.ReplaceAll(r.URL.Query().Get("pattern"), "**", "*")
	if pattern == "" {
		pattern = "*"
	}
	if _, err := os.Stat(root); err != nil {
		failFile(w, err)
		return
	}
	told := []fileInfo{}
	err := filepath.Walk(root, func(path string, found fs.FileInfo, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || found.IsDir() {
			return err
		}
		matched, err := filepath.Match(pattern, found.Name())
		if matched {
			told = append(told, describe(path, found))
		}
		return err
	})
	if err != nil {
		fail(w, http.StatusInternalServerError, runtimeError, "error searching files. "+err.Error())
		return
	}
	answer(w, http.StatusOK, told)
}

func listDirectory(w http.ResponseWriter, r *http.Request) {
	root, ok := queryPath(w, r)
	if !ok {
		return
	}
	depth := 1
	if raw := r.URL.Query().Get("depth"); raw != "" {
		asked, err := strconv.Atoi(raw)
		if err != nil || asked < 0 {
			fail(w, http.StatusBadRequest, invalidRequest, "invalid query parameter 'depth': "+raw)
			return
		}
		depth = asked
	}
	found, err := os.Lstat(root)
	if err != nil {
		failFile(w, err)
		return
	}
	if !found.IsDir() {
		fail(w, http.StatusBadRequest, invalidRequest, "path is not a directory: "+root)
		return
	}
	told, err := entries(root, depth)
	if err != nil {
		failFile(w, err)
		return
	}
	answer(w, http.StatusOK, told)
}

func entries(folder string, depth int) ([]fileInfo, error) {
	told := []fileInfo{}
	if depth == 0 {
		return told, nil
	}
	members, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, member := range members {
		found, err := member.Info()
		if err != nil {
			return nil, err
		}
		path := filepath.Join(folder, member.Name())
		told = append(told, describe(path, found))
		if member.IsDir() {
			below, err := entries(path, depth-1)
			if err != nil {
				return nil, err
			}
			told = append(told, below...)
		}
	}
	return told, nil
}

func move(w http.ResponseWriter, r *http.Request) {
	var wanted []struct {
		Src  string `json:"src"`
		Dest string `json:"dest"`
	}
	if !decode(w, r, &wanted) {
		return
	}
	for _, each := range wanted {
		if err := rename(each.Src, each.Dest); err != nil {
			failFile(w, err)
			return
		}
	}
}

func rename(from, to string) error {
	source, err := absolute(from)
	if err != nil {
		return err
	}
	target, err := absolute(to)
	if err != nil {
		return err
	}
	if _, err := os.Stat(source); err != nil {
		return err
	}
	if _, err := os.Stat(target); err == nil {
		return fmt.Errorf("destination path already exists: %s", to)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return os.Rename(source, target)
}

func permissions(w http.ResponseWriter, r *http.Request) {
	var wanted map[string]permission
	if !decode(w, r, &wanted) {
		return
	}
	for asked, each := range wanted {
		path, err := absolute(asked)
		if err == nil {
			err = apply(path, each)
		}
		if err != nil {
			fail(w, http.StatusInternalServerError, runtimeError, "error changing permissions. "+err.Error())
			return
		}
	}
}

func replace(w http.ResponseWriter, r *http.Request) {
	var wanted map[string]struct {
		Old string `json:"old"`
		New string `json:"new"`
	}
	if !decode(w, r, &wanted) {
		return
	}
	counts := map[string]map[string]int{}
	for asked, each := range wanted {
		if each.Old == "" {
			fail(w, http.StatusBadRequest, invalidRequest, "old content must not be empty")
			return
		}
		path, err := absolute(asked)
		if err != nil {
			failFile(w, err)
			return
		}
		content, err := os.ReadFile(path)
		if err != nil {
			failFile(w, err)
			return
		}
		counts[asked] = map[string]int{"replacedCount": strings.Count(string(content), each.Old)}
		// The file exists, so its mode stays.
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(content), each.Old, each.New)), 0o600); err != nil {
			failFile(w, err)
			return
		}
	}
	if r.URL.Query().Get("verbose") == "true" {
		answer(w, http.StatusOK, counts)
	}
}

// removeFiles passes over files that are not there and refuses folders.
func removeFiles(w http.ResponseWriter, r *http.Request) {
	for _, asked := range r.URL.Query()["path"] {
		path, err := absolute(asked)
		if err == nil {
			var found fs.FileInfo
			if found, err = os.Lstat(path); err == nil && found.IsDir() {
				err = fmt.Errorf("path is a directory: %s", asked)
			}
		}
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			fail(w, http.StatusInternalServerError, runtimeError, "error removing file. "+err.Error())
			return
		}
	}
}

// makeDirectories gives the permissions only to folders that were not there.
func makeDirectories(w http.ResponseWriter, r *http.Request) {
	var wanted map[string]permission
	if !decode(w, r, &wanted) {
		return
	}
	for asked, each := range wanted {
		path, err := absolute(asked)
		if err != nil {
			failFile(w, err)
			return
		}
		_, missing := os.Stat(path)
		if err = os.MkdirAll(path, 0o777); err == nil && missing != nil {
			err = apply(path, each)
		}
		if err != nil {
			failFile(w, err)
			return
		}
	}
}

func removeDirectories(w http.ResponseWriter, r *http.Request) {
	for _, asked := range r.URL.Query()["path"] {
		path, err := absolute(asked)
		if err == nil {
			err = os.RemoveAll(path)
		}
		if err != nil {
			fail(w, http.StatusInternalServerError, runtimeError, "error removing directory. "+err.Error())
			return
		}
	}
}

// queryPath is the obligatory parameter `path`, and answers itself when it is missing.
func queryPath(w http.ResponseWriter, r *http.Request) (string, bool) {
	asked := r.URL.Query().Get("path")
	if asked == "" {
		fail(w, http.StatusBadRequest, missingQuery, "missing query parameter 'path'")
		return "", false
	}
	path, err := absolute(asked)
	if err != nil {
		failFile(w, err)
		return "", false
	}
	return path, true
}
