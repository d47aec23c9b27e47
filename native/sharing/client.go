package sharing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	wire "tideline/protocol/share"
)

// Client speaks to share services.
type Client struct {
	// Folder keeps unfinished uploads and the receipts of finished ones; it is
	// made when needed, readable to its owner alone. See DefaultFolder.
	Folder string

	UploadKey string // for services that ask for one

	// Progress is told how many bytes of how many have passed; may be nil.
	Progress func(done, total int64)

	HTTP *http.Client // nil: one that gives up on a peer that falls silent

	// Wait pauses between attempts; nil sleeps. Tests make it short.
	Wait func(ctx context.Context, d time.Duration) error
}

const (
	attempts  = 8                // without progress
	firstWait = time.Second / 4  // doubled after each failure
	longest   = 15 * time.Second // of a wait
	patience  = 3 * time.Minute  // for one request, at most a chunk of 8 MiB
)

var silent = &http.Client{
	// A redirect would repeat tokens to somebody else.
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: time.Minute,
		TLSHandshakeTimeout: 20 * time.Second, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
	},
}

// request is one that may be repeated.
type request struct {
	method, url string
	body        []byte
	header      map[string]string
	first       bool // nothing was heard of the service yet: if it cannot be reached at all, say so at once
}

// do repeats a request until it is answered; accept reads the answer of a
// success and may refuse it, which counts as a failed attempt.
func (c *Client) do(ctx context.Context, r request, accept func(body []byte) error) error {
	for n := 1; ; n++ {
		err := c.once(ctx, r, accept)
		if err == nil || ctx.Err() != nil {
			return err
		}
		pause, may := mayPass(err)
		if r.first && unreachable(err) {
			return &UnreachableError{err}
		}
		if !may {
			return err
		}
		if n == attempts {
			return fmt.Errorf("given up after %d attempts: %w", n, err)
		}
		if pause == 0 {
			pause = min(firstWait<<(n-1), longest)
		}
		if err := c.pause(ctx, pause); err != nil {
			return err
		}
	}
}

// mayPass says whether another attempt may do better, and how long the service
// asked to wait.
func mayPass(err error) (time.Duration, bool) {
	if _, local := errors.AsType[*localError](err); local {
		return 0, false
	}
	if busy, ok := errors.AsType[*busyError](err); ok {
		return min(busy.wait, longest), true
	}
	if p, ok := errors.AsType[*wire.Problem](err); ok {
		return 0, p.Status >= 500 && p.Code != wire.Full || p.Code == wire.BadRequest && strings.Contains(p.Message, "broke off")
	}
	return 0, true
}

// UnreachableError says that nothing was begun, for nobody could be reached.
type UnreachableError struct{ Why error }

func (e *UnreachableError) Error() string { return e.Why.Error() + ": look at the address" }
func (e *UnreachableError) Unwrap() error { return e.Why }

// unreachable says that no connection was made: nobody listens there, or the host
// is not known.
func unreachable(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// localError is trouble on this machine, which no repetition cures.
type localError struct{ error }

func (e *localError) Unwrap() error { return e.error }

// busyError is a Problem with the time that the service asks to wait.
type busyError struct {
	wait time.Duration
	*wire.Problem
}

func (e *busyError) Unwrap() error { return e.Problem }

func (c *Client) once(ctx context.Context, r request, accept func([]byte) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, bytes.NewReader(r.body))
	if err != nil {
		return fmt.Errorf("make the request: %w", err)
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	client := c.HTTP
	if client == nil {
		client = silent
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("reach the share service: %w", withoutQuery(err))
	}
	defer func() { _ = resp.Body.Close() }() // it was read, or will not be
	body, err := io.ReadAll(io.LimitReader(resp.Body, wire.MaxChunk+1))
	if err != nil {
		return fmt.Errorf("read the share service's answer: %w", err)
	}
	if resp.StatusCode/100 == 2 {
		return accept(body)
	}
	return problemOf(resp, body)
}

// withoutQuery keeps the cause of an error of http.Client and drops its URL,
// which is long and says nothing to people.
func withoutQuery(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

func problemOf(resp *http.Response, body []byte) error {
	var f wire.Failure
	if json.Unmarshal(body, &f) != nil || f.Error == nil || f.Error.Code == "" {
		p := &wire.Problem{Code: wire.Unknown, Status: resp.StatusCode, Message: "this is no share service: it answers " + resp.Status, Do: "look at the address"}
		return p
	}
	f.Error.Status = resp.StatusCode
	if f.Error.Code == wire.TooMany {
		seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err != nil || seconds < 1 {
			seconds = 1
		}
		return &busyError{time.Duration(seconds) * time.Second, f.Error}
	}
	return f.Error
}

func (c *Client) pause(ctx context.Context, d time.Duration) error {
	if c.Wait != nil {
		return c.Wait(ctx, d)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func (c *Client) tell(done, total int64) {
	if c.Progress != nil {
		c.Progress(done, total)
	}
}

// into makes an accept that decodes JSON.
func into(v any) func([]byte) error {
	return func(body []byte) error {
		if err := json.Unmarshal(body, v); err != nil {
			return fmt.Errorf("the share service's answer is not what it should be: %w", err)
		}
		return nil
	}
}

func nothing([]byte) error { return nil }

// Service checks an address and brings it into the form of Link.Base.
func Service(address string) (string, error) {
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return "", fmt.Errorf("%q is not the address of a share service: one looks like https://HOST", address)
	}
	return u.Scheme + "://" + u.Host + strings.TrimSuffix(u.EscapedPath(), "/"), nil
}
