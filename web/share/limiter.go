//go:build !js

package share

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Limiter holds addresses to a rate: Allow is its Options.Allow. It is meant
// for a host that clients reach directly; behind a proxy all of them look like
// one, and the proxy has limits of its own.
type Limiter struct {
	now func() time.Time

	mu    sync.Mutex
	seats map[seat]bucket
}

type seat struct {
	addr   netip.Addr
	create bool
}

// A bucket holds tokens as the time at which it will be full again: no timer
// refills it.
type bucket struct{ full time.Time }

// rate is one token per period, up to burst saved up.
type rate struct {
	period time.Duration
	burst  int
}

// 20 requests a second carry 80 MB/s of chunks: who waits is no honest client.
var (
	anyRequest = rate{50 * time.Millisecond, 200}
	newShare   = rate{10 * time.Second, 30}
)

const maxSeats = 20_000

// NewLimiter makes a limiter; now is time.Now in earnest.
func NewLimiter(now func() time.Time) *Limiter {
	return &Limiter{now: now, seats: map[seat]bucket{}}
}

// Allow says how long the request must wait.
func (l *Limiter) Allow(r *http.Request, create bool) time.Duration {
	limit := anyRequest
	if create {
		limit = newShare
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.seats) >= maxSeats {
		l.forget(now)
	}
	s := seat{clientOf(r), create}
	full := l.seats[s].full
	if full.Before(now) {
		full = now
	}
	full = full.Add(limit.period)
	if wait := full.Sub(now) - time.Duration(limit.burst)*limit.period; wait > 0 {
		return wait
	}
	l.seats[s] = bucket{full}
	return 0
}

// forget drops those who have their whole burst again; if that does not help,
// everybody, which errs on the side of letting people in.
func (l *Limiter) forget(now time.Time) {
	for s, b := range l.seats {
		if b.full.Before(now) {
			delete(l.seats, s)
		}
	}
	if len(l.seats) >= maxSeats {
		clear(l.seats)
	}
}

// clientOf is the address of the peer; of IPv6 the network, since a customer
// has 2^64 addresses.
func clientOf(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return addr
}
