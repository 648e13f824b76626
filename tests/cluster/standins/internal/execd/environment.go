package execd

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// environment is what a command sees: execd's own variables, then those of the file EXECD_ENVS, which is read
// again each time, then the request's.
func environment(requested map[string]string) map[string]string {
	variables := map[string]string{}
	for _, each := range os.Environ() {
		if name, value, found := strings.Cut(each, "="); found {
			variables[name] = value
		}
	}
	maps.Copy(variables, fileVariables(os.Getenv("EXECD_ENVS")))
	maps.Copy(variables, requested)
	return variables
}

func fileVariables(path string) map[string]string {
	variables := map[string]string{}
	content, err := os.ReadFile(path)
	if err != nil {
		return variables
	}
	for line := range strings.Lines(string(content)) {
		name, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if found && !strings.HasPrefix(name, "#") {
			variables[name] = os.ExpandEnv(value)
		}
	}
	return variables
}

func asList(variables map[string]string) []string {
	list := make([]string, 0, len(variables))
	for name, value := range variables {
		list = append(list, name+"="+value)
	}
	return list
}

// expand resolves variables and a leading ~ in a path.
func expand(path string, variables map[string]string) (string, error) {
	var missing []string
	expanded := os.Expand(path, func(name string) string {
		value, found := variables[name]
		if !found {
			missing = append(missing, name)
		}
		return value
	})
	if len(missing) > 0 {
		return "", errors.New("path references undefined environment variables: " + strings.Join(missing, ","))
	}
	if expanded == "~" || strings.HasPrefix(expanded, "~/") {
		return filepath.Join(variables["HOME"], expanded[1:]), nil
	}
	return expanded, nil
}

// absolute resolves a path of a request.
func absolute(path string) (string, error) {
	expanded, err := expand(path, environment(nil))
	if err != nil {
		return "", err
	}
	return filepath.Abs(expanded)
}
