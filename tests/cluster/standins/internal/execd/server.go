// Package execd serves OpenSandbox's execd interface: commands and files of the container that it runs in.
package execd

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"time"

	"argo-harbor.test/standins/internal/procs"
)

const tokenHeader = "X-EXECD-ACCESS-TOKEN"

// Codes of errors, as the published interface has them.
const (
	invalidRequest  = "INVALID_REQUEST_BODY"
	missingQuery    = "MISSING_QUERY"
	runtimeError    = "RUNTIME_ERROR"
	invalidFile     = "INVALID_FILE"
	invalidContent  = "INVALID_FILE_CONTENT"
	invalidMetadata = "INVALID_FILE_METADATA"
	fileNotFound    = "FILE_NOT_FOUND"
)

// Settings of a server.
type Settings struct {
	// Token that every request must carry; empty: none.
	Token string
	// Grace is how long a finished command's answer stays open.
	Grace time.Duration
}

// Handler serves the interface. It fails when there is no place for the output of commands.
func Handler(settings Settings, children *procs.Table, log *slog.Logger) (http.Handler, error) {
	commands, err := newCommands(children, settings.Grace)
	if err != nil {
		return nil, err
	}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /ping", func(http.ResponseWriter, *http.Request) {})
	routes.HandleFunc("POST /command", commands.run)
	routes.HandleFunc("DELETE /command", commands.interrupt)
	// The paths are status/{id} and {id}/logs, which one set of patterns cannot tell apart.
	routes.HandleFunc("GET /command/{first}/{second}", commands.ask)
	routes.HandleFunc("POST /files/upload", upload)
	routes.HandleFunc("GET /files/download", download)
	routes.HandleFunc("GET /files/info", info)
	routes.HandleFunc("GET /files/search", search)
	routes.HandleFunc("POST /files/mv", move)
	routes.HandleFunc("POST /files/permissions", permissions)
	routes.HandleFunc("POST /files/replace", replace)
	routes.HandleFunc("DELETE /files", removeFiles)
	routes.HandleFunc("POST /directories", makeDirectories)
	routes.HandleFunc("GET /directories/list", listDirectory)
	routes.HandleFunc("DELETE /directories", removeDirectories)
	return logged(guarded(routes, settings.Token), log), nil
}

func guarded(next http.Handler, token string) http.Handler {
	if token == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get(tokenHeader)), []byte(token)) != 1 {
			answer(w, http.StatusUnauthorized, map[string]string{
				"error": "Unauthorized: invalid or missing header " + tokenHeader,
			})
			return
		}
		next.ServeHTTP(w, r)
	})
}

func logged(next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		log.Debug("request", "method", r.Method, "path", r.URL.Path)
		next.ServeHTTP(w, r)
	})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func fail(w http.ResponseWriter, status int, code, message string) {
	answer(w, status, map[string]string{"code": code, "message": message})
}

func failFile(w http.ResponseWriter, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		fail(w, http.StatusNotFound, fileNotFound, "file not found. "+err.Error())
		return
	}
	fail(w, http.StatusInternalServerError, runtimeError, "error accessing file: "+err.Error())
}

// decode reads a JSON body, and answers itself when there is none.
func decode(w http.ResponseWriter, r *http.Request, target any) bool {
	if err := json.NewDecoder(r.Body).Decode(target); err != nil {
		fail(w, http.StatusBadRequest, invalidRequest, "error parsing request. "+err.Error())
		return false
	}
	return true
}
