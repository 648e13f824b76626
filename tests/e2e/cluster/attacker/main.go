// The attacker is what the attack tests run inside a sandbox, as root: it tries what a sandbox must not be able to do,
// and says what came of it. It uses nothing of the sandbox's image.
//
//	attacker try TARGETS   tries everything once; TARGETS is JSON, the findings are JSON on stdout
//	attacker stay FILE LABEL NAME=HOST:PORT…   knocks at servers for ever, says LABEL to them, notes in FILE when they answer
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "attacker:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	switch {
	case len(arguments) == 2 && arguments[0] == "try":
		text, err := os.ReadFile(arguments[1])
		if err != nil {
			return err
		}
		var targets Targets
		if err := json.Unmarshal(text, &targets); err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(attack(targets))
	case len(arguments) >= 4 && arguments[0] == "stay":
		return stay(arguments[1], arguments[2], arguments[3:])
	}
	return fmt.Errorf("usage: attacker try TARGETS | attacker stay FILE LABEL NAME=HOST:PORT…")
}

// Findings are what one sandbox could do.
type Findings struct {
	// Dials: "open", or why not.
	Dials map[string]string `json:"dials"`
	// Lookups: the addresses of a name, or why there are none.
	Lookups map[string]string `json:"lookups"`
	// Calls: the HTTP status, or why there is none.
	Calls map[string]Answer `json:"calls"`
	// Kernel: "allowed", or the kernel's refusal.
	Kernel map[string]string `json:"kernel"`
	Holds  Holdings          `json:"holds"`
}

func attack(targets Targets) Findings {
	return Findings{
		Dials:   dials(targets.Dials),
		Lookups: lookups(targets.Lookups),
		Calls:   calls(targets.Calls),
		Kernel:  kernel(),
		Holds:   holdings(),
	}
}
