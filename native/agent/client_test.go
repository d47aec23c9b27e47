package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"nhooyr.io/websocket"

	"tideline/protocol/api"
	"tideline/protocol/block"
	"tideline/protocol/event"
)

const testToken = "the-token"

// serve starts an agent on a real port.
func serve(t *testing.T, o Options) (*Agent, *client) {
	t.Helper()
	if o.Data == "" {
		o.Data = t.TempDir()
	}
	o.Token = testToken
	o.Version = "test"
	if o.Models == nil {
		o.Models = []string{"mlp", "lenet5"}
		o.Presets = []api.Preset{{Name: "t4-16g"}, {Name: "lab-256m"}}
	}
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l, err := Listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- a.ServeOn(ctx, l) }()
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return a, &client{t: t, host: l.Addr().String()}
}

// client speaks the agent's interface as a tool would.
type client struct {
	t    *testing.T
	host string
}

// do sends a request with the token and what edit changes of it.
func (c *client) do(method, path, body string, edit func(*http.Request)) (int, http.Header, string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, "http://"+c.host+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testToken)
	if edit != nil {
		edit(req)
	}
	hc := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := hc.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

func decodeJSON[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func (c *client) info(id string) api.RunInfo {
	c.t.Helper()
	status, _, body := c.do("GET", strings.Replace(api.PathRun, "{id}", id, 1), "", nil)
	if status != http.StatusOK {
		c.t.Fatalf("%d %s", status, body)
	}
	return decodeJSON[api.RunInfo](c.t, body)
}

// until asks for a run until it is as wanted.
func (c *client) until(id string, ok func(api.RunInfo) bool) api.RunInfo {
	c.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		info := c.info(id)
		if ok(info) {
			return info
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("still %+v", info)
		}
	}
}

func over(i api.RunInfo) bool { return i.State != api.StateRunning }

// follower is a test client of the stream.
type follower struct {
	t      *testing.T
	conn   *websocket.Conn
	dec    *block.Decoder
	events []event.Event
	next   uint64 // sequence number of the next event
	hello  api.Message
	last   api.Message // "end" or "error"
	bytes  int64
}

func (c *client) dial(id string, edit func(http.Header, *websocket.DialOptions)) (*websocket.Conn, int, error) {
	o := &websocket.DialOptions{Subprotocols: []string{api.Subprotocol}, HTTPHeader: http.Header{"Authorization": {"Bearer " + testToken}}}
	if edit != nil {
		edit(o.HTTPHeader, o)
	}
	conn, resp, err := websocket.Dial(c.t.Context(), "ws://"+c.host+strings.Replace(api.PathStream, "{id}", id, 1), o)
	if conn != nil {
		conn.SetReadLimit(1 << 26)
		c.t.Cleanup(func() { conn.CloseNow() })
	}
	if resp == nil {
		return conn, 0, err
	}
	if resp.Body != nil && conn == nil {
		resp.Body.Close()
	}
	return conn, resp.StatusCode, err
}

// follow opens a stream and says start.
func (c *client) follow(id string, from uint64, credit int64) *follower {
	c.t.Helper()
	conn, _, err := c.dial(id, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	f := &follower{t: c.t, conn: conn, dec: block.NewDecoder(), next: from}
	f.say(api.Message{Type: "start", From: from, Credit: credit})
	return f
}

func (f *follower) say(m api.Message) {
	f.t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := f.conn.Write(f.t.Context(), websocket.MessageText, b); err != nil {
		f.t.Fatal(err)
	}
}

// read takes one message; false is the end of the stream.
func (f *follower) read() (bool, error) {
	kind, b, err := f.conn.Read(f.t.Context())
	if err != nil {
		return false, err
	}
	if kind == websocket.MessageBinary {
		f.bytes += int64(len(b))
		return true, f.blocks(b)
	}
	m := decodeJSON[api.Message](f.t, string(b))
	switch m.Type {
	case "hello":
		f.hello = m
		if f.next > m.From+block.MaxEvents || f.next < m.From {
			return false, fmt.Errorf("asked for %d, got %d", f.next, m.From)
		}
	case "end", "error":
		f.last = m
		return false, nil
	default:
		return false, fmt.Errorf("unknown message %+v", m)
	}
	return true, nil
}

// blocks decodes whole blocks and checks that none is missing.
func (f *follower) blocks(b []byte) error {
	for len(b) > 0 {
		frame, n, err := block.Next(b)
		if err != nil {
			return err
		}
		h, err := block.ParseHeader(frame)
		if err != nil {
			return err
		}
		before := len(f.events)
		if f.events, err = f.dec.Decode(frame, f.events); err != nil {
			return err
		}
		if h.Kind == block.Events && h.Events > 0 {
			if h.First > f.next {
				return fmt.Errorf("events %d to %d are missing", f.next, h.First)
			}
			skip := min(f.next-h.First, uint64(h.Events)) // had them before the break
			f.events = append(f.events[:before], f.events[before+int(skip):]...)
			f.next = max(f.next, h.Next())
		}
		b = b[n:]
	}
	return nil
}

// finish reads to the end, giving credit, and closes as a page does.
func (f *follower) finish() {
	f.t.Helper()
	given := f.bytes
	for {
		more, err := f.read()
		if err != nil {
			f.t.Fatal(err)
		}
		if !more {
			break
		}
		if f.bytes > given {
			f.say(api.Message{Type: "credit", Credit: f.bytes - given})
			given = f.bytes
		}
	}
	f.say(api.Message{Type: "bye"})
	if err := f.conn.Close(websocket.StatusNormalClosure, ""); err != nil && !errors.Is(err, net.ErrClosed) {
		f.t.Logf("close: %v", err) // the library's own quirk, see stream.go
	}
}

func sameEvents(t *testing.T, got, want []event.Event) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("event %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}
