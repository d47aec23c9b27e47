package attach

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// Target is where a profiler server listens.
type Target struct {
	Host string
	Port uint16
}

// String is HOST:PORT.
func (t Target) String() string { return net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port))) }

// ParseTarget reads tf://HOST:PORT. The error says what is wrong with it and
// what is supported.
func ParseTarget(text string) (Target, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return Target{}, fmt.Errorf("%q has no scheme: say tf://HOST:PORT for the profiler server of TensorFlow or JAX", text)
	}
	switch strings.ToLower(scheme) {
	case "tf", "jax":
	case "nvml", "nvidia", "nvidia-smi", "smi", "cuda", "gpu":
		return Target{}, fmt.Errorf("%s:// is not attached to: tideline watch shows the cards of this machine live", scheme)
	default:
		return Target{}, fmt.Errorf("%s:// is not supported: tf://HOST:PORT is, for the profiler server of TensorFlow or JAX; tideline watch shows this machine's cards", scheme)
	}
	host, port, err := net.SplitHostPort(strings.TrimSuffix(rest, "/"))
	if err != nil || host == "" {
		return Target{}, fmt.Errorf("%q is not tf://HOST:PORT: TensorFlow's documents start the server on port 6009, JAX's on 9999", text)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return Target{}, fmt.Errorf("%q: %q is not a port: take the number that the program gave to its profiler server", text, port)
	}
	return Target{host, uint16(n)}, nil
}

// local says whether the server runs on this machine, or at least behind its
// loopback address, so that a folder of ours may be one of its own.
func (t Target) local() bool {
	if strings.EqualFold(t.Host, "localhost") {
		return true
	}
	if a, err := netip.ParseAddr(t.Host); err == nil {
		return a.IsLoopback()
	}
	name, err := os.Hostname()
	return err == nil && strings.EqualFold(name, t.Host)
}
