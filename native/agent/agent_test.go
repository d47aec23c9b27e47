package agent

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"nhooyr.io/websocket"

	"tideline/native/agent/record"
	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/protocol/synthetic"
	"tideline/protocol/timeline"
	"tideline/shared/launch"
)

const smallRun = "model: mlp\ntrain: {}\nbatch: 16\nsteps: 3\ndevices: [{preset: t4-16g, growth: true}]\n"

// generator is a job that emits n made-up events; between them it calls pause.
func generator(n int, pause func(k int)) Job {
	return func(o launch.Options) (launch.Result, error) {
		k, res := 0, launch.Result{}
		synthetic.Generate(synthetic.Options{Events: n, Seed: 3}, o.Strings, event.SinkFunc(func(e *event.Event) {
			if k++; k%1000 == 0 {
				if o.Stop() {
					res.Reason = event.EndStopped
				}
				if pause != nil {
					pause(k)
				}
			}
			if res.Reason == event.EndDone {
				o.Sink.Emit(e)
			}
		}))
		return res, nil
	}
}

func made(n int) []event.Event {
	var all []event.Event
	synthetic.Generate(synthetic.Options{Events: n, Seed: 3}, new(event.Strings), event.SinkFunc(func(e *event.Event) { all = append(all, *e) }))
	return all
}

func begin(t *testing.T, a *Agent, job Job) api.RunInfo {
	t.Helper()
	info, err := a.Go("made up", "", 0, job)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestARunOfAWorkloadFromStartToFile(t *testing.T) {
	_, c := serve(t, Options{})
	status, _, body := c.do("POST", api.PathRuns, smallRun, nil)
	if status != http.StatusCreated {
		t.Fatalf("%d %s", status, body)
	}
	run := decodeJSON[api.RunInfo](t, body)
	f := c.follow(run.ID, 0, 1<<20)
	f.finish()
	info := c.until(run.ID, over)
	if info.State != api.StateDone || info.Step != 3 || f.last.Reason != "done" || f.last.Seq != info.Events || uint64(len(f.events)) != info.Events {
		t.Errorf("run %+v, stream ended with %+v after %d events", info, f.last, len(f.events))
	}
	if f.events[len(f.events)-1].Kind != event.End {
		t.Errorf("the last event is %v", f.events[len(f.events)-1].Kind)
	}
	if !strings.Contains(info.YAML, "optimizer: adam") || f.hello.Run == nil || f.hello.Version != "test" {
		t.Errorf("workload as it ran: %q, hello %+v", info.YAML, f.hello)
	}
	status, header, file := c.do("GET", strings.Replace(api.PathFile, "{id}", run.ID, 1), "", nil)
	if status != http.StatusOK || !strings.Contains(header.Get("Content-Disposition"), ".tideline") {
		t.Errorf("%d %v", status, header)
	}
	s, err := timeline.NewStream(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var all []event.Event
	for err == nil {
		all, err = s.Next(all)
	}
	if !errors.Is(err, io.EOF) || !s.Complete() || len(s.Damage()) > 0 {
		t.Errorf("%v, complete %v, damage %v", err, s.Complete(), s.Damage())
	}
	sameEvents(t, all, f.events)
	_, _, body = c.do("GET", api.PathRuns, "", nil)
	if list := decodeJSON[[]api.RunInfo](t, body); len(list) != 1 || list[0].ID != run.ID {
		t.Errorf("list %s", body)
	}
}

func TestStoppedWorkloadHasAWholeFile(t *testing.T) {
	_, c := serve(t, Options{})
	_, _, body := c.do("POST", api.PathRuns, strings.Replace(smallRun, "steps: 3", "steps: 1000000", 1), nil)
	run := decodeJSON[api.RunInfo](t, body)
	c.until(run.ID, func(i api.RunInfo) bool { return i.Step > 1 })
	c.do("POST", strings.Replace(api.PathStop, "{id}", run.ID, 1), "", nil)
	info := c.until(run.ID, over)
	f := c.follow(run.ID, 0, 1<<30)
	f.finish()
	end := f.events[len(f.events)-1]
	if info.State != api.StateStopped || end.Kind != event.End || event.EndReason(end.Cause) != event.EndStopped {
		t.Errorf("state %q, last event %+v", info.State, end)
	}
}

// TestARunAloneHasItsCardToItself: runs share the agent's cards, those that are
// started alone do not.
func TestARunAloneHasItsCardToItself(t *testing.T) {
	_, c := serve(t, Options{})
	small := strings.Replace(smallRun, "t4-16g, growth: true", "lab-256m", 1)
	start := func(query, workload string) api.RunInfo {
		t.Helper()
		status, _, body := c.do("POST", api.PathRuns+query, workload, nil)
		if status != http.StatusCreated {
			t.Fatal(status, body)
		}
		return decodeJSON[api.RunInfo](t, body)
	}
	long := start("", strings.Replace(small, "steps: 3", "steps: 1000000", 1))
	c.until(long.ID, func(i api.RunInfo) bool { return i.Step > 1 })
	if shared := c.until(start("?alone=false", small).ID, over); shared.State == api.StateDone {
		t.Errorf("a second run on a full card: %+v", shared)
	}
	for range 2 {
		if alone := c.until(start("?alone=true", small).ID, over); alone.State != api.StateDone {
			t.Errorf("a run alone: %+v", alone)
		}
	}
	c.do("POST", strings.Replace(api.PathStop, "{id}", long.ID, 1), "", nil)
	c.until(long.ID, over)
	if status, _, body := c.do("POST", api.PathRuns+"?alone=perhaps", small, nil); status != http.StatusBadRequest || !strings.Contains(body, "true or false") {
		t.Error(status, body)
	}
}

func TestASlowReaderDoesNotSlowTheRun(t *testing.T) {
	a, c := serve(t, Options{})
	hold := make(chan struct{})
	run := begin(t, a, generator(60_000, func(k int) {
		if k == 1000 {
			<-hold // until the reader is there
		}
	}))
	f := c.follow(run.ID, 0, 1) // one message, then no credit at all
	if _, err := f.read(); err != nil {
		t.Fatal(err)
	}
	close(hold)
	// The run ends although nobody takes its events.
	info := c.until(run.ID, over)
	if info.State != api.StateDone || f.bytes > 0 {
		t.Fatalf("%+v, %d bytes taken", info, f.bytes)
	}
	// And the reader gets everything once it wants it.
	f.say(api.Message{Type: "credit", Credit: 1 << 20})
	f.finish()
	sameEvents(t, f.events, made(60_000))
}

func TestCreditHoldsTheStreamBack(t *testing.T) {
	a, c := serve(t, Options{})
	run := begin(t, a, generator(400_000, nil))
	c.until(run.ID, over)
	f := c.follow(run.ID, 0, 10_000)
	for range 2 { // hello and the one message that overdraws
		if _, err := f.read(); err != nil {
			t.Fatal(err)
		}
	}
	first := f.bytes
	// What covers less than the debt releases nothing; the rest releases one message.
	f.say(api.Message{Type: "credit", Credit: 5})
	f.say(api.Message{Type: "credit", Credit: first - 10_000})
	if _, err := f.read(); err != nil {
		t.Fatal(err)
	}
	if f.bytes == first || f.bytes > first+maxMessage+(300<<10) {
		t.Errorf("%d bytes after %d", f.bytes, first)
	}
	f.say(api.Message{Type: "credit", Credit: 1 << 20})
	f.finish()
	sameEvents(t, f.events, made(400_000))
}

func TestResumeAfterABreak(t *testing.T) {
	a, c := serve(t, Options{})
	run := begin(t, a, generator(300_000, func(int) { time.Sleep(200 * time.Microsecond) }))
	first := c.follow(run.ID, 0, 1<<30)
	for len(first.events) < 20_000 {
		if more, err := first.read(); err != nil || !more {
			t.Fatal(more, err)
		}
	}
	first.conn.CloseNow() // the network breaks
	second := c.follow(run.ID, first.next, 1<<30)
	second.finish()
	want := made(300_000)
	sameEvents(t, append(first.events, second.events...), want)
	// A point in the middle of a block works as well.
	third := c.follow(run.ID, first.next-7, 1<<30)
	third.finish()
	sameEvents(t, third.events, want[first.next-7:])
	// The strings of a late joiner are those of the run.
	whole := c.follow(run.ID, 0, 1<<30)
	whole.finish()
	for i := range whole.dec.Strings().Len() {
		if got, want := third.dec.Strings().At(event.StringID(i)), whole.dec.Strings().At(event.StringID(i)); got != want {
			t.Fatalf("string %d is %q, want %q", i, got, want)
		}
	}
	// Beyond the end there is only the end.
	late := c.follow(run.ID, uint64(len(want)), 1<<20)
	late.finish()
	if len(late.events) > 0 || late.last.Type != "end" {
		t.Errorf("%d events, %+v", len(late.events), late.last)
	}
}

func TestFastLiveStreamArrivesWithoutLoss(t *testing.T) {
	const rate = 200_000
	seconds := 2
	if long := os.Getenv("TIDELINE_LIVE_SECONDS"); long != "" {
		seconds, _ = strconv.Atoi(long)
	}
	a, c := serve(t, Options{})
	began := time.Now()
	run := begin(t, a, generator(rate*seconds, func(k int) {
		time.Sleep(time.Until(began.Add(time.Duration(k) * time.Second / rate)))
	}))
	f := c.follow(run.ID, 0, 8<<20)
	f.finish()
	took := time.Since(began)
	sameEvents(t, f.events, made(rate*seconds))
	t.Logf("%d events live in %v, %.2f bytes each", len(f.events), took.Round(time.Millisecond), float64(f.bytes)/float64(len(f.events)))
}

func TestStrangersAreTurnedAway(t *testing.T) {
	a, c := serve(t, Options{Hosts: []string{"box.lan"}})
	run := begin(t, a, generator(1000, nil))
	c.until(run.ID, over)
	cookie := "tideline-" + c.host[strings.LastIndexByte(c.host, ':')+1:] + "=" + testToken
	withCookie := func(r *http.Request) {
		r.Header.Del("Authorization")
		r.Header.Set("Cookie", cookie)
	}
	tests := []struct {
		name, method, path string
		edit               func(*http.Request)
		want               int
	}{
		{"no token", "GET", api.PathInfo, func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		{"no token for the page", "GET", "/", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		{"wrong token", "GET", api.PathInfo, func(r *http.Request) { r.Header.Set("Authorization", "Bearer no") }, 401},
		{"empty token", "GET", api.PathInfo + "?token=", func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }, 401},
		{"bearer", "GET", api.PathInfo, nil, 200},
		{"query", "GET", api.PathInfo + "?token=" + testToken, func(r *http.Request) { r.Header.Del("Authorization") }, 200},
		{"cookie", "GET", api.PathInfo, withCookie, 200},
		{"another host", "GET", api.PathInfo, func(r *http.Request) { r.Host = "evil.example" }, 403},
		{"another host, our port", "GET", api.PathInfo, func(r *http.Request) { r.Host = "evil.example:80" }, 403},
		{"another address", "GET", api.PathInfo, func(r *http.Request) { r.Host = "10.1.2.3" }, 403},
		{"localhost", "GET", api.PathInfo, func(r *http.Request) { r.Host = "localhost:1" }, 200},
		{"IPv6 loopback", "GET", api.PathInfo, func(r *http.Request) { r.Host = "[::1]:1" }, 200},
		{"an allowed name", "GET", api.PathInfo, func(r *http.Request) { r.Host = "box.lan" }, 200},
		{"another origin", "POST", api.PathCheck, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		{"no origin at all", "POST", api.PathCheck, func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		{"another origin with the cookie", "POST", api.PathCheck, func(r *http.Request) { withCookie(r); r.Header.Set("Origin", "http://evil.example") }, 403},
		{"another port's origin", "POST", api.PathCheck, func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }, 403},
		{"the cookie without an origin", "POST", api.PathCheck, withCookie, 403},
		{"a page of ours", "POST", api.PathCheck, func(r *http.Request) { withCookie(r); r.Header.Set("Origin", "http://"+r.URL.Host) }, 200},
		{"a tool", "POST", api.PathCheck, nil, 200},
		{"another origin stops a run", "POST", strings.Replace(api.PathStop, "{id}", run.ID, 1), func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403},
		{"nothing there", "GET", "/api/v1/nothing", nil, 404},
		{"wrong method", "DELETE", api.PathRuns, nil, 404},
		{"no such run", "GET", "/api/v1/runs/r99", nil, 404},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, header, body := c.do(tt.method, tt.path, "model: mlp\n", tt.edit)
			if status != tt.want {
				t.Errorf("%d %s, want %d", status, body, tt.want)
			}
			if status >= 400 && decodeJSON[api.Failure](t, body).Error == "" {
				t.Errorf("no explanation in %q", body)
			}
			if !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") || strings.Contains(header.Get("Content-Security-Policy"), "unsafe-inline") {
				t.Errorf("policy %q", header.Get("Content-Security-Policy"))
			}
		})
	}
}

func TestStrangersGetNoStream(t *testing.T) {
	a, c := serve(t, Options{})
	run := begin(t, a, generator(1000, nil))
	cookie := "tideline-" + c.host[strings.LastIndexByte(c.host, ':')+1:] + "=" + testToken
	tests := []struct {
		name string
		edit func(http.Header, *websocket.DialOptions)
		want int
	}{
		{"no token", func(h http.Header, _ *websocket.DialOptions) { h.Del("Authorization") }, 401},
		{"another origin", func(h http.Header, _ *websocket.DialOptions) { h.Set("Origin", "http://evil.example") }, 403},
		{"another scheme", func(h http.Header, _ *websocket.DialOptions) { h.Set("Origin", "file://"+c.host) }, 403},
		{"another host", func(_ http.Header, o *websocket.DialOptions) { o.Host = "evil.example" }, 403},
		{"the cookie without an origin", func(h http.Header, _ *websocket.DialOptions) { h.Del("Authorization"); h.Set("Cookie", cookie) }, 403},
		{"no subprotocol", func(_ http.Header, o *websocket.DialOptions) { o.Subprotocols = nil }, 400},
		{"the page", func(h http.Header, _ *websocket.DialOptions) {
			h.Del("Authorization")
			h.Set("Cookie", cookie)
			h.Set("Origin", "http://"+c.host)
		}, 101},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, status, err := c.dial(run.ID, tt.edit); status != tt.want {
				t.Errorf("%d (%v), want %d", status, err, tt.want)
			}
		})
	}
}

func TestGarbageOnTheStreamEndsItWithAReason(t *testing.T) {
	a, c := serve(t, Options{})
	run := begin(t, a, generator(1000, nil))
	c.until(run.ID, over)
	text, binary := websocket.MessageText, websocket.MessageBinary
	tests := []struct {
		name string
		kind websocket.MessageType
		body string
		want string
	}{
		{"not JSON", text, "hello", "not JSON"},
		{"binary", binary, "\x00\x01", "not JSON"},
		{"JSON of another kind", text, `[1,2]`, "not JSON"},
		{"no type", text, `{}`, `expected "start"`},
		{"not start", text, `{"type":"credit","credit":5}`, `expected "start"`},
		{"negative credit", text, `{"type":"start","credit":-5}`, "impossible credit"},
		{"endless credit", text, `{"type":"start","credit":9000000000000000000}`, "impossible credit"},
		{"too long", text, `{"type":"` + strings.Repeat("x", maxControl) + `"}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			conn, _, err := c.dial(run.ID, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.Write(t.Context(), tt.kind, []byte(tt.body)); err != nil {
				t.Fatal(err)
			}
			_, b, err := conn.Read(t.Context())
			if tt.want == "" {
				if err == nil {
					t.Errorf("a message over the limit was answered: %s", b)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if m := decodeJSON[api.Message](t, string(b)); m.Type != "error" || !strings.Contains(m.Reason, tt.want) {
				t.Errorf("got %s", b)
			}
		})
	}
	// In the middle of a stream, too.
	f := c.follow(run.ID, 0, 0)
	if _, err := f.read(); err != nil {
		t.Fatal(err)
	}
	f.say(api.Message{Type: "what"})
	for {
		more, err := f.read()
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
	}
	if f.last.Type != "error" || !strings.Contains(f.last.Reason, "what") {
		t.Errorf("got %+v", f.last)
	}
}

func TestTheFirstVisitSetsACookie(t *testing.T) {
	_, c := serve(t, Options{Page: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the page") })})
	noHeader := func(r *http.Request) { r.Header.Del("Authorization") }
	status, header, _ := c.do("GET", "/?token="+testToken+"&run=r1", "", noHeader)
	cookie := header.Get("Set-Cookie")
	if status != http.StatusSeeOther || header.Get("Location") != "/?run=r1" {
		t.Errorf("%d to %q", status, header.Get("Location"))
	}
	for _, want := range []string{testToken, "HttpOnly", "SameSite=Strict", "Path=/"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("cookie %q lacks %s", cookie, want)
		}
	}
	status, header, body := c.do("GET", "/", "", func(r *http.Request) {
		noHeader(r)
		r.Header.Set("Cookie", strings.SplitN(cookie, ";", 2)[0])
	})
	if status != http.StatusOK || body != "the page" || header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("%d %q %v", status, body, header)
	}
}

func TestBadWorkloadsAreExplained(t *testing.T) {
	a, c := serve(t, Options{})
	tests := []struct {
		name, body string
		status     int
		path       string
		line       int
	}{
		{"unknown field", "model: mlp\nbatches: 3\n", 422, "batches", 2},
		{"growth and limit", "model: mlp\ndevices:\n- preset: t4-16g\n  growth: true\n  memory_limit: 1GiB\n", 422, "devices.0.growth", 4},
		{"device that does not exist", `{"model":"mlp","placement":{"rules":[{"match":"a","device":"/GPU:0"}]}}`, 422, "placement.rules.0.device", 1},
		{"not a workload", "\x00\x01", 422, "", 0},
		{"empty", "", 422, "", 0},
		{"too large", strings.Repeat("#", 300<<10), 413, "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, _, body := c.do("POST", api.PathRuns, tt.body, nil)
			if status != tt.status {
				t.Fatalf("%d %s", status, body)
			}
			f := decodeJSON[api.Failure](t, body)
			if tt.status == 422 && (len(f.Problems) != 1 || f.Problems[0].Path != tt.path || f.Problems[0].Line != tt.line && tt.line > 0) {
				t.Errorf("got %+v", f)
			}
			if status != 422 {
				return
			}
			status, _, body = c.do("POST", api.PathCheck, tt.body, nil)
			if list := decodeJSON[api.Problems](t, body); status != http.StatusOK || len(list) != 1 {
				t.Errorf("check: %d %s", status, body)
			}
		})
	}
	if _, _, body := c.do("POST", api.PathCheck, smallRun, nil); strings.TrimSpace(body) != "[]" {
		t.Errorf("a good workload: %s", body)
	}
	if n := len(a.list(&a.runs)); n != 0 {
		t.Errorf("%d runs began", n)
	}
}

func TestRunsAndViewersAreBounded(t *testing.T) {
	a, c := serve(t, Options{MaxRuns: 1, MaxViewers: 1})
	hold := make(chan struct{})
	run := begin(t, a, generator(2000, func(int) { <-hold }))
	status, header, body := c.do("POST", api.PathRuns, smallRun, nil)
	if status != http.StatusTooManyRequests || header.Get("Retry-After") == "" || !strings.Contains(body, "limit") {
		t.Errorf("%d %s", status, body)
	}
	f := c.follow(run.ID, 0, 1<<20)
	if _, err := f.read(); err != nil {
		t.Fatal(err)
	}
	if _, status, err := c.dial(run.ID, nil); status != http.StatusServiceUnavailable {
		t.Errorf("second viewer: %d (%v)", status, err)
	}
	close(hold)
	f.finish()
	c.until(run.ID, over)
	if status, _, body := c.do("POST", api.PathRuns, smallRun, nil); status != http.StatusCreated {
		t.Errorf("after the first run: %d %s", status, body)
	}
}

// full is a disk with room for so many bytes.
type full struct {
	record.Memory
	room int64
}

func (d *full) WriteAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > d.room {
		return 0, errors.New("no space left on device")
	}
	return d.Memory.WriteAt(p, off)
}

func TestAFullDiskIsSaidClearly(t *testing.T) {
	a, c := serve(t, Options{Create: func(string) (record.File, error) { return &full{room: 600_000}, nil }})
	run := begin(t, a, generator(300_000, nil))
	info := c.until(run.ID, over)
	if info.State != api.StateDone || !strings.Contains(info.Error, "no space left on device") || !strings.Contains(info.Error, "events are not in it") {
		t.Errorf("run %+v", info)
	}
	f := c.follow(run.ID, 0, 1<<30)
	f.finish()
	kinds := []event.Kind{event.Log, event.Lost, event.End}
	for i, k := range kinds {
		if got := f.events[len(f.events)-len(kinds)+i].Kind; got != k {
			t.Errorf("last words: %v, want %v", got, k)
		}
	}
	if !strings.Contains(f.last.Reason, "recording stopped") {
		t.Errorf("end %+v", f.last)
	}
	_, _, file := c.do("GET", strings.Replace(api.PathFile, "{id}", run.ID, 1), "", nil)
	o, err := record.Open(strings.NewReader(file), int64(len(file)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Check(); err != nil || o.State().Events == 0 {
		t.Errorf("the file: %v", err)
	}
}

func TestAFolderThatCannotBeWrittenIsSaid(t *testing.T) {
	_, c := serve(t, Options{Create: func(name string) (record.File, error) {
		return record.Create(filepath.Join(filepath.Dir(name), "missing", "x"), false)
	}})
	if status, _, body := c.do("POST", api.PathRuns, smallRun, nil); status != 500 || !strings.Contains(body, "no such file") {
		t.Errorf("%d %s", status, body)
	}
}

func TestABrokenRunDoesNotEndTheAgent(t *testing.T) {
	lines := make(chan string, 8)
	a, c := serve(t, Options{Log: func(l string) { lines <- l }})
	for name, job := range map[string]Job{
		"panic": func(launch.Options) (launch.Result, error) { panic("invariant broken") },
		"error": func(launch.Options) (launch.Result, error) { return launch.Result{}, errors.New("invariant broken") },
	} {
		run := begin(t, a, job)
		info := c.until(run.ID, over)
		if info.State != api.StateFailed || !strings.Contains(info.Error, "invariant broken") {
			t.Errorf("%s: %+v", name, info)
		}
		f := c.follow(run.ID, 0, 1<<20)
		f.finish()
		if n := len(f.events); n != 1 || f.events[0].Kind != event.End || event.EndReason(f.events[0].Cause) != event.EndFailed {
			t.Errorf("%s: events %+v", name, f.events)
		}
	}
}

func TestFilesStreamLikeRuns(t *testing.T) {
	a, c := serve(t, Options{})
	run := begin(t, a, generator(30_000, nil))
	c.until(run.ID, over)
	_, _, file := c.do("GET", strings.Replace(api.PathFile, "{id}", run.ID, 1), "", nil)
	o, err := record.Open(strings.NewReader(file), int64(len(file)), nil)
	if err != nil {
		t.Fatal(err)
	}
	a.Serve("old.tideline", o)
	_, _, body := c.do("GET", api.PathOpen, "", nil)
	list := decodeJSON[[]api.RunInfo](t, body)
	if len(list) != 1 || list[0].State != api.StateFile || list[0].Name != "old.tideline" {
		t.Fatalf("files %s", body)
	}
	f := c.follow(list[0].ID, 0, 1<<20)
	f.finish()
	sameEvents(t, f.events, made(30_000))
	half := c.follow(list[0].ID, 15_000, 1<<20)
	half.finish()
	sameEvents(t, half.events, made(30_000)[15_000:])
}

// TestTheFileThatATimelineWasMadeOf: a page that reads foreign files gets it.
func TestTheFileThatATimelineWasMadeOf(t *testing.T) {
	a, c := serve(t, Options{})
	gone := false
	src := func() record.Source {
		rec := record.New(new(record.Memory), new(event.Strings), false)
		if err := rec.Finish(); err != nil {
			t.Fatal(err)
		}
		return rec
	}
	a.Serve("own.tideline", src())
	a.ServeMade("snap.pickle", src(), Original{Kind: "pytorch-snapshot", Open: func() (io.ReadSeekCloser, error) {
		if gone {
			return nil, os.ErrNotExist
		}
		return kept{strings.NewReader("its own bytes")}, nil
	}})
	_, _, body := c.do("GET", api.PathOpen, "", nil)
	list := decodeJSON[[]api.RunInfo](t, body)
	if len(list) != 2 || list[0].Kind != "" || list[1].Kind != "pytorch-snapshot" {
		t.Fatalf("files %s", body)
	}
	get := func(id string) (int, string) {
		status, _, body := c.do("GET", strings.Replace(api.PathOriginal, "{id}", id, 1), "", nil)
		return status, body
	}
	if status, body := get("f2"); status != http.StatusOK || body != "its own bytes" {
		t.Errorf("%d %q", status, body)
	}
	if status, body := get("f1"); status != http.StatusNotFound || !strings.Contains(body, "/runs/f1/file") {
		t.Errorf("%d %q", status, body)
	}
	gone = true
	if status, body := get("f2"); status != http.StatusGone || !strings.Contains(body, "snap.pickle") {
		t.Errorf("%d %q", status, body)
	}
}

type kept struct{ *strings.Reader }

func (kept) Close() error { return nil }

func TestOldRecordingsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "run-20200101-000000.000-1-r1-x.tideline")
	foreign := filepath.Join(dir, "mine.tideline")
	for _, name := range []string{old, foreign} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ago := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(old, ago, ago); err != nil {
		t.Fatal(err)
	}
	a, c := serve(t, Options{Data: dir, Keep: 2})
	for range 4 {
		run := begin(t, a, generator(100, nil))
		c.until(run.ID, over)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "run-*"))
	if len(left) > 3 || len(a.list(&a.runs)) > 2 {
		t.Errorf("left: %v", left)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Error("a file of somebody else's is gone")
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("an old recording is still there")
	}
}

func TestAPortInUseSaysWhatToDo(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Listen(t.Context(), l.Addr().String())
	if err == nil || !strings.Contains(err.Error(), "in use") || !strings.Contains(err.Error(), "try --addr 127.0.0.1:") {
		t.Errorf("got %v", err)
	}
	if _, err := Listen(t.Context(), "nonsense"); err == nil || !strings.Contains(err.Error(), "HOST:PORT") {
		t.Errorf("got %v", err)
	}
}

func TestInfoTellsWhatThereIs(t *testing.T) {
	_, c := serve(t, Options{Demos: []api.Demo{{Name: "demo"}}})
	_, _, body := c.do("GET", api.PathInfo, "", nil)
	var info api.Info
	if err := json.Unmarshal([]byte(body), &info); err != nil || info.Version != "test" || len(info.Models) != 2 || len(info.Demos) != 1 {
		t.Errorf("%v in %s", err, body)
	}
}

func TestSilentClientsAreLetGo(t *testing.T) {
	a, c := serve(t, Options{MaxViewers: 1})
	a.patience = patience{start: time.Second, write: time.Second, ping: 20 * time.Millisecond, pong: time.Second, goodbye: 50 * time.Millisecond}
	hold := make(chan struct{})
	run := begin(t, a, generator(2000, func(int) { <-hold }))
	defer close(hold)
	free := func() {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); len(a.viewers) > 0; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the place is still taken")
			}
		}
	}
	// One who connects and says nothing is told why and then closed.
	conn, _, err := c.dial(run.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, b, err := conn.Read(t.Context())
	if err != nil || !strings.Contains(string(b), "no \\\"start\\\" within") {
		t.Errorf("%v, %s", err, b)
	}
	free()
	// One who does not answer pings, because it reads nothing any more.
	c.follow(run.ID, 0, 1<<20)
	free()
	// One who does may wait as long as it likes.
	f := c.follow(run.ID, 0, 1<<20)
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := f.read(); err != nil {
				ended <- err
				return
			}
		}
	}()
	select {
	case err := <-ended:
		t.Errorf("a client that answers was let go: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
}

func TestTwoRunsAtOnceShareACard(t *testing.T) {
	_, c := serve(t, Options{})
	text := strings.Replace(smallRun, "steps: 3", "steps: 200", 1)
	text = strings.Replace(text, "preset: t4-16g", "preset: lab-256m, card: one", 1)
	var ids []string
	for range 2 {
		status, _, body := c.do("POST", api.PathRuns, text, nil)
		if status != http.StatusCreated {
			t.Fatalf("%d %s", status, body)
		}
		ids = append(ids, decodeJSON[api.RunInfo](t, body).ID)
	}
	for _, id := range ids {
		if info := c.until(id, over); info.State != api.StateDone || info.Step != 200 {
			t.Errorf("run %+v", info)
		}
	}
}
