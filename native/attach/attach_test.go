package attach

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tideline/native/attach/answer"
	"tideline/native/attach/testserver"
)

func target(t *testing.T, addr string) Target {
	t.Helper()
	x, err := ParseTarget("tf://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// space stands for a profile: what is in it is not read here.
var space = bytes.Repeat([]byte("a profile of a program "), 40_000)

// quick are options of a short recording.
var quick = Options{Duration: 20 * time.Millisecond, Grace: 5 * time.Second}

func TestAProfileComesFromServersOfEveryAge(t *testing.T) {
	for _, tc := range []struct {
		name    string
		age     testserver.Age
		file    string
		written bool
	}{
		{"answers", testserver.Answers, ".xplane.pb", false},
		{"writes", testserver.Writes, ".xplane.pb", true},
		{"tools", testserver.Tools, "memory_profile.json.gz", false},
		{"writes tools", testserver.WritesTool, ".memory_profile.json.gz", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := testserver.Start(t, testserver.Behaviour{Space: space, Age: tc.age})
			c, err := Profile(t.Context(), target(t, s.Addr), quick)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(c.Data, space) || !strings.HasSuffix(c.Name, tc.file) || (c.From != "") != tc.written || c.Took < quick.Duration {
				t.Errorf("%d bytes, name %q, from %q, took %v", len(c.Data), c.Name, c.From, c.Took)
			}
			if _, err := os.Stat(c.From); c.From != "" && err == nil {
				t.Errorf("%s was left behind", c.From)
			}
		})
	}
}

func TestWhatTheServerIsAsked(t *testing.T) {
	s := testserver.Start(t, testserver.Behaviour{Space: space})
	o := quick
	o.Levels, o.Folder = Levels{Host: 3, Device: 1, Python: 1}, t.TempDir()
	if _, err := Profile(t.Context(), target(t, s.Addr), o); err != nil {
		t.Fatal(err)
	}
	q := s.Asked()[0]
	if q.Duration != o.Duration || q.OptionDuration != o.Duration || !q.InAnswer || q.Repository != o.Folder || q.Session == "" ||
		strings.ContainsAny(q.Host, ":/") || q.HostLevel != 3 || q.DeviceLevel != 1 || q.PythonLevel != 1 || q.OptionsVersion == 0 ||
		!slices.Contains(q.Tools, "memory_profile") {
		t.Errorf("asked %+v", q)
	}
	o.Levels = Levels{}
	if _, err := Profile(t.Context(), target(t, s.Addr), o); err != nil {
		t.Fatal(err)
	}
	// Level 2 of the host is where the allocators tell of themselves.
	if q = s.Asked()[1]; q.HostLevel != 2 || q.DeviceLevel != 1 || q.PythonLevel != 0 {
		t.Errorf("by default asked %+v", q)
	}
}

func TestAFolderThatWasGivenIsKept(t *testing.T) {
	s := testserver.Start(t, testserver.Behaviour{Space: space, Age: testserver.Writes})
	o := quick
	o.Folder = t.TempDir()
	c, err := Profile(t.Context(), target(t, s.Addr), o)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(c.From); err != nil || !bytes.Equal(b, space) || !strings.HasPrefix(c.From, o.Folder) {
		t.Errorf("%s: %v", c.From, err)
	}
}

// closed is an address where nobody listens.
func closed(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// silent accepts and says nothing.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// cutting passes on what a server says up to a number of bytes, and hangs up.
func cutting(t *testing.T, to string, after int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer out.Close()
				go func() { _, _ = io.Copy(out, in) }() // it ends with in
				_, _ = io.CopyN(in, out, after)         // as does this
			}()
		}
	}()
	return l.Addr().String()
}

func http1(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// serving is the address of a server.
func serving(do testserver.Behaviour) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		return testserver.Start(t, do).Addr
	}
}

func failing(code codes.Code, said string) func(*testing.T) string {
	return serving(testserver.Behaviour{Err: status.Error(code, said)})
}

func other(t *testing.T) string {
	t.Helper()
	return testserver.StartOther(t)
}

func cut(t *testing.T) string {
	t.Helper()
	return cutting(t, testserver.Start(t, testserver.Behaviour{Space: space}).Addr, 100_000)
}

func TestWhyThereIsNoProfile(t *testing.T) {
	big := bytes.Repeat(space, 2)
	for _, tc := range []struct {
		name string
		addr func(*testing.T) string
		o    Options
		kind Kind
		says string
	}{
		{"nobody listens", closed, quick, Unreachable, "tf.profiler.experimental.server.start("},
		{"nobody answers", silent, Options{connect: 50 * time.Millisecond}, Unreachable, "no answer"},
		{"a web server", http1, quick, NotProfiler, "does not speak gRPC"},
		{"another service", other, quick, NotProfiler, "no profiler service"},
		{"nothing recorded", serving(testserver.Behaviour{}), quick, Empty, "--for"},
		{"slow", serving(testserver.Behaviour{Space: space, Late: time.Hour}), Options{Duration: 10 * time.Millisecond, Grace: 50 * time.Millisecond}, TooSlow, "--grace"},
		{"large", serving(testserver.Behaviour{Space: big}), Options{Duration: 10 * time.Millisecond, Limit: 1 << 20}, TooLarge, "larger than 1.00 MiB"},
		{"large in a file", serving(testserver.Behaviour{Space: big, Age: testserver.Writes}), Options{Duration: 10 * time.Millisecond, Limit: 1 << 20}, TooLarge, "larger than 1.00 MiB"},
		{"cut", cut, quick, Broken, "broke before the profile was whole"},
		{"no message", serving(testserver.Behaviour{Garbage: []byte("\x42\xff\xff\xff\x7fshort")}), quick, Broken, "beyond the message"},
		{"busy", failing(codes.Internal, "Another profiling session active."), quick, Failed, "being profiled already"},
		{"cannot write", failing(codes.Internal, "/x; Permission denied"), quick, Failed, "--folder"},
		{"its own words", failing(codes.Internal, "no CUPTI"), quick, Failed, "could not make a profile: no CUPTI"},
		{"exhausted", failing(codes.ResourceExhausted, "too many sessions"), quick, Failed, "too many sessions"},
		{"written elsewhere", serving(testserver.Behaviour{Space: space, Age: testserver.Nowhere}), quick, Elsewhere, "--folder"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := target(t, tc.addr(t))
			c, err := Profile(t.Context(), x, tc.o)
			var e *Error
			if !errors.As(err, &e) || c != nil {
				t.Fatalf("%v, %v", c, err)
			}
			if e.Kind != tc.kind || !strings.Contains(err.Error(), tc.says) || !strings.HasPrefix(err.Error(), x.String()+": ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("kind %d: %v", e.Kind, err)
			}
		})
	}
}

// TestAServerElsewhereThatOnlyWrites: where the file lies is said.
func TestAServerElsewhereThatOnlyWrites(t *testing.T) {
	f, err := makeFolder(Target{"gpu7.example", 6009}, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = capture(new(answer.Profile), Target{"gpu7.example", 6009}, &Options{}, f, &profileRequest{session: "now"})
	if err == nil || !strings.Contains(err.Error(), remoteFolder+"/now on its own machine") {
		t.Error(err)
	}
	if f, err = makeFolder(Target{"gpu7.example", 6009}, "gs://bucket/x"); err != nil || f.near || f.made {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestStoppingKeepsWhatWasRecorded: the end of the context ends the recording.
func TestStoppingKeepsWhatWasRecorded(t *testing.T) {
	s := testserver.Start(t, testserver.Behaviour{Space: space})
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		for len(s.Asked()) == 0 {
			time.Sleep(time.Millisecond)
		}
		stop()
	}()
	c, err := Profile(ctx, target(t, s.Addr), Options{Duration: time.Hour})
	if err != nil || !bytes.Equal(c.Data, space) {
		t.Errorf("%v, %v", c, err)
	}
	// Before there is a server there is nothing to keep.
	ctx, stop = context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, stop)
	_, err = Profile(ctx, target(t, silent(t)), Options{connect: 100 * time.Millisecond})
	if e := new(Error); !errors.As(err, &e) || e.Kind != Stopped {
		t.Errorf("%v", err)
	}
}

func TestMonitor(t *testing.T) {
	s := testserver.Start(t, testserver.Behaviour{Monitor: "TPU type: TPU v4\nUtilization of TPU Matrix Units is: 10%"})
	text, err := Monitor(t.Context(), target(t, s.Addr), 10*time.Millisecond, 2)
	if err != nil || !strings.HasPrefix(text, "TPU type") {
		t.Errorf("%q, %v", text, err)
	}
	s = testserver.Start(t, testserver.Behaviour{})
	if _, err = Monitor(t.Context(), target(t, s.Addr), 10*time.Millisecond, 2); err == nil || !strings.Contains(err.Error(), "tells nothing of its devices") {
		t.Errorf("%v", err)
	}
}

func TestTargets(t *testing.T) {
	for text, want := range map[string]string{
		"tf://127.0.0.1:6009": "127.0.0.1:6009", "jax://localhost:9999": "localhost:9999", "TF://[::1]:6009": "[::1]:6009", "tf://gpu7:1/": "gpu7:1",
	} {
		if x, err := ParseTarget(text); err != nil || x.String() != want {
			t.Errorf("%s: %v, %v", text, x, err)
		}
	}
	for text, says := range map[string]string{
		"127.0.0.1:6009": "tf://HOST:PORT", "": "tf://HOST:PORT", "http://x:1": "tf://HOST:PORT is", "nvml://0": "tideline watch",
		"tf://host": "6009", "tf://:6009": "6009", "tf://host:0": "not a port", "tf://host:70000": "not a port", "tf://host:abc": "not a port",
		"pid://123": "http", "tf://host:6009/x": "not a port",
	} {
		if says == "http" {
			says = "is not supported"
		}
		if x, err := ParseTarget(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, %v", text, x, err)
		}
	}
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "127.9.9.9"} {
		if !(Target{host, 1}).local() {
			t.Errorf("%s is not local", host)
		}
	}
	if (Target{"gpu7.example", 1}).local() || (Target{"10.0.0.1", 1}).local() {
		t.Error("another machine is local")
	}
}

func TestNoFolderCanBeMade(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	if _, err := Profile(t.Context(), Target{"127.0.0.1", 1}, quick); err == nil || !strings.Contains(err.Error(), "--folder") {
		t.Error(err)
	}
}
