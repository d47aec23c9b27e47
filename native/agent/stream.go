package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"nhooyr.io/websocket"

	"tideline/native/agent/record"
	"tideline/protocol/api"
)

// Limits of a stream.
const (
	maxMessage = 512 << 10 // bytes of blocks in one message, unless one block is larger
	maxControl = 4096      // bytes of a client's message
	maxCredit  = 1 << 30   // bytes a client may be ahead
)

// patience is how long a stream waits for its client.
type patience struct {
	start   time.Duration // for the first message
	write   time.Duration // for a message to be taken
	ping    time.Duration // between pings
	pong    time.Duration // for the answer to one
	goodbye time.Duration // for the client to close after the end
}

var usual = patience{start: 10 * time.Second, write: 30 * time.Second, ping: 20 * time.Second, pong: 20 * time.Second, goodbye: 5 * time.Second}

// stream follows a run over a WebSocket. Everything comes from the recording,
// so a client that is slow, or gone, is nothing to the run.
func (a *Agent) stream(w http.ResponseWriter, r *http.Request, x *run) {
	select {
	case a.viewers <- struct{}{}:
		defer func() { <-a.viewers }()
	default:
		w.Header().Set("Retry-After", "5")
		fail(w, http.StatusServiceUnavailable, fmt.Sprintf("%d streams are open, which is the limit: close a tab", a.opts.MaxViewers))
		return
	}
	if !offers(r, api.Subprotocol) {
		fail(w, http.StatusBadRequest, "this is a WebSocket that speaks "+api.Subprotocol+": ask for that subprotocol")
		return
	}
	// The guard has compared the whole origin; the library compares its host
	// with the request's once more.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{api.Subprotocol}})
	if err != nil {
		return // Accept has answered
	}
	defer func() { _ = c.CloseNow() }() // does nothing after the client has closed
	c.SetReadLimit(maxControl)
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	v := viewer{conn: c, run: x, version: a.opts.Version, patience: a.patience, inbox: make(chan api.Message, 16), gone: make(chan struct{})}
	go v.listen(ctx)
	go v.keepAlive(ctx, cancel)
	if err := v.serve(ctx); err != nil {
		v.end(ctx, api.Message{Type: "error", Reason: err.Error()})
	}
}

func offers(r *http.Request, protocol string) bool {
	return slices.ContainsFunc(r.Header.Values("Sec-WebSocket-Protocol"), func(line string) bool {
		return slices.Contains(splitTokens(line), protocol)
	})
}

// viewer is one open stream.
type viewer struct {
	patience
	conn    *websocket.Conn
	run     *run
	version string
	inbox   chan api.Message // what the client says; a bad message has Type ""
	gone    chan struct{}    // closed when nothing more can be read
	credit  int64
	buf     []byte
}

var errBye = errors.New("the client says bye")

// listen reads the client's messages until there are no more.
func (v *viewer) listen(ctx context.Context) {
	defer close(v.gone)
	for {
		kind, b, err := v.conn.Read(ctx)
		if err != nil {
			return
		}
		var m api.Message
		if kind != websocket.MessageText || json.Unmarshal(b, &m) != nil {
			m = api.Message{Reason: "the message is not JSON text of the form {\"type\": …}"}
		}
		select {
		case v.inbox <- m:
		case <-ctx.Done():
			return
		}
	}
}

// keepAlive notices clients whose machine has gone to sleep or off the network.
func (v *viewer) keepAlive(ctx context.Context, cancel func()) {
	t := time.NewTicker(v.ping)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		answered, stop := context.WithTimeout(ctx, v.pong)
		err := v.conn.Ping(answered)
		stop()
		if err != nil {
			cancel()
			return
		}
	}
}

// serve sends blocks as they come until all is sent. An error is for the
// client to read.
func (v *viewer) serve(ctx context.Context) error {
	start, err := v.hello(ctx)
	if err != nil {
		return silence(err)
	}
	s := v.run.source.State()
	at := s.Find(start.From)
	hello := api.Message{Type: "hello", Version: v.version, From: s.Events}
	if at < len(s.Blocks) {
		hello.From = s.Blocks[at].First
	}
	info := v.run.info()
	hello.Run = &info
	if err := v.say(ctx, hello); err != nil {
		return silence(err)
	}
	if v.buf, err = v.run.source.Catchup(v.buf[:0], at); err != nil {
		return err
	}
	if err := v.send(ctx, v.buf); err != nil {
		return silence(err)
	}
	for {
		if at, err = v.sendBlocks(ctx, s, at); err != nil {
			return silence(err)
		}
		if end := v.run.end.Load(); s.Finished && end != nil {
			reason := end.state
			if s.Failure != nil {
				reason = v.run.info().Error
			}
			v.end(ctx, api.Message{Type: "end", Seq: s.Events, Reason: reason})
			return nil
		}
		if err := v.wait(ctx, s.Changed); err != nil {
			return silence(err)
		}
		s = v.run.source.State()
	}
}

// errGone: there is nobody left to tell anything.
var errGone = errors.New("the client is gone")

// silence drops errors that nobody is there to read.
func silence(err error) error {
	if errors.Is(err, errGone) || errors.Is(err, errBye) {
		return nil
	}
	return err
}

func (v *viewer) hello(ctx context.Context) (api.Message, error) {
	t := time.NewTimer(v.start)
	defer t.Stop()
	select {
	case m := <-v.inbox:
		if m.Type != "start" {
			return m, complaint(m, "expected \"start\" first")
		}
		return m, v.grant(m.Credit)
	case <-v.gone:
		return api.Message{}, errGone
	case <-ctx.Done():
		return api.Message{}, errGone
	case <-t.C:
		return api.Message{}, fmt.Errorf("no \"start\" within %v", v.start)
	}
}

func complaint(m api.Message, expected string) error {
	if m.Type == "" && m.Reason != "" {
		return errors.New(m.Reason)
	}
	return fmt.Errorf("unexpected message of type %q: %s", m.Type, expected)
}

func (v *viewer) grant(bytes int64) error {
	if bytes < 0 || bytes > maxCredit || v.credit > maxCredit-bytes {
		return fmt.Errorf("impossible credit of %d bytes: at most %d may be outstanding", bytes, maxCredit)
	}
	v.credit += bytes
	return nil
}

// hear acts on a client's message.
func (v *viewer) hear(m api.Message) error {
	switch m.Type {
	case "credit":
		return v.grant(m.Credit)
	case "bye":
		return errBye
	}
	return complaint(m, "expected \"credit\" or \"bye\"")
}

// wait returns when there may be more to send.
func (v *viewer) wait(ctx context.Context, changed <-chan struct{}) error {
	select {
	case <-changed: // nil, and silent, for a finished source
		return nil
	case m := <-v.inbox:
		return v.hear(m)
	case <-v.gone:
		return errGone
	case <-ctx.Done():
		return errGone
	}
}

// sendBlocks sends what there is from block at on, as credit allows.
func (v *viewer) sendBlocks(ctx context.Context, s record.State, at int) (int, error) {
	for at < len(s.Blocks) {
		v.buf = v.buf[:0]
		for at < len(s.Blocks) && (len(v.buf) == 0 || int64(len(v.buf))+s.Blocks[at].Size <= maxMessage) {
			n := len(v.buf)
			size := int(s.Blocks[at].Size)
			v.buf = slices.Grow(v.buf, size)
			frame, err := v.run.source.Frame(at, v.buf[n:n:n+size])
			if err != nil {
				return at, err
			}
			v.buf = append(v.buf[:n], frame...)
			at++
		}
		if err := v.send(ctx, v.buf); err != nil {
			return at, err
		}
	}
	return at, nil
}

// send sends one message of blocks once there is credit.
func (v *viewer) send(ctx context.Context, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	for {
		// Whatever the client has said comes first: a bye ends the sending.
		select {
		case m := <-v.inbox:
			if err := v.hear(m); err != nil {
				return err
			}
			continue
		default:
		}
		if v.credit > 0 {
			break
		}
		if err := v.wait(ctx, nil); err != nil {
			return err
		}
	}
	v.credit -= int64(len(b))
	wctx, cancel := context.WithTimeout(ctx, v.write)
	defer cancel()
	if err := v.conn.Write(wctx, websocket.MessageBinary, b); err != nil {
		return errGone
	}
	return nil
}

// say sends a control message.
func (v *viewer) say(ctx context.Context, m api.Message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	wctx, cancel := context.WithTimeout(ctx, v.write)
	defer cancel()
	if err := v.conn.Write(wctx, websocket.MessageText, b); err != nil {
		return errGone
	}
	return nil
}

// end says the last word and waits for the client to close: a close that
// begins on our side reaches browsers as a broken connection.
func (v *viewer) end(ctx context.Context, m api.Message) {
	if v.say(ctx, m) != nil {
		return
	}
	t := time.NewTimer(v.goodbye)
	defer t.Stop()
	for {
		select {
		case <-v.inbox: // credit that crossed our end, bye
		case <-v.gone:
			return
		case <-ctx.Done():
			return
		case <-t.C:
			return
		}
	}
}
