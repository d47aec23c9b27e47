package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// DefaultAddress is where an agent listens when nothing else is said.
const DefaultAddress = "127.0.0.1:7420"

// Listen opens the agent's port. An error says what to do.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err == nil {
		return l, nil
	}
	host, port, splitErr := net.SplitHostPort(address)
	switch {
	case splitErr != nil:
		return nil, fmt.Errorf("listen on %q: expected HOST:PORT, such as %s: %w", address, DefaultAddress, err)
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("port %s is in use, perhaps by another tideline: %s: %w", port, tryInstead(ctx, host), err)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("port %s may not be opened by this user: take one above 1024, such as --addr %s: %w", port, DefaultAddress, err)
	}
	return nil, fmt.Errorf("listen on %s: %w", address, err)
}

// tryInstead names a port that is free at this moment.
func tryInstead(ctx context.Context, host string) string {
	hint := "take any free port with --addr " + net.JoinHostPort(host, "0")
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return hint
	}
	defer func() { _ = l.Close() }() // it was only to learn a number
	return "try --addr " + l.Addr().String() + ", or " + hint
}

// URL is what to open to see the page: the address and the token.
func (a *Agent) URL(l net.Listener) string {
	host, port, _ := net.SplitHostPort(l.Addr().String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port) + "/?token=" + a.opts.Token
}

// ServeOn serves until ctx ends, then lets running answers finish.
func (a *Agent) ServeOn(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           a.Handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	a.cancel() // streams first: they would hold the server open
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	if err := server.Shutdown(last); err != nil {
		return server.Close()
	}
	return nil
}

func splitTokens(line string) []string {
	parts := strings.Split(line, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}
