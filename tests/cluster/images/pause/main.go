// Command pause holds a pod's namespaces open: it waits until it is told to end, and does nothing else.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ended := make(chan os.Signal, 1)
	// A process 1 that does not ask for these signals never gets them, and each pod would take its whole grace period.
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	<-ended
}
