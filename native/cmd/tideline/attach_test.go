package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tideline/native/attach/testserver"
	"tideline/protocol/event"
	"tideline/shared/ingest"
)

// liveProfile is one that TensorFlow made.
func liveProfile(t *testing.T) []byte {
	t.Helper()
	f, err := os.Open("../../../shared/ingest/xspace/testdata/live/tensorflow-2.21-cpu-bfc.xplane.pb.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAttachWritesAndExplains(t *testing.T) {
	profile := liveProfile(t)
	s := testserver.Start(t, testserver.Behaviour{Space: profile})
	at, dir := "tf://"+s.Addr, t.TempDir()
	raw := filepath.Join(dir, "x.xplane.pb")
	code, stdout, stderr := tideline(t, "attach", at, "--for", "10ms", "-o", raw)
	if b, err := os.ReadFile(raw); code != exitDone || err != nil || !bytes.Equal(b, profile) {
		t.Fatalf("exit %d, %v: %s", code, err, stderr)
	}
	if !strings.Contains(stdout, raw+": 41.27 KiB") || !strings.Contains(stderr, s.Addr+": recording for 10ms") {
		t.Errorf("said %q and %q", stdout, stderr)
	}
	// The timeline by its ending, and the report beside it.
	line := filepath.Join(dir, "x.tideline")
	code, stdout, stderr = tideline(t, "attach", at, "--for", "10ms", "-o", line, "--explain")
	if code != exitDone || !strings.Contains(stdout, "bfc_cpu_allocator_for_gpu") {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	events, kept := readAll(t, line)
	if words, err := kept.Readings(); err != nil || !bytes.Contains(words, []byte(`"input_kind":"tf-xspace"`)) {
		t.Errorf("the timeline keeps %.80q, %v", words, err)
	}
	kinds := map[event.Kind]int{}
	for i := range events {
		kinds[events[i].Kind]++
	}
	// 104 allocations, a sum of what was there before and blocks freed of it.
	if kinds[event.StepBegin] != 6 || kinds[event.OpBegin] != 125 || kinds[event.Alloc] < 104 || kinds[event.Free] != 102 {
		t.Errorf("%v", kinds)
	}
	code, stdout, _ = tideline(t, "attach", at, "--for", "10ms", "--explain", "--json")
	var report struct {
		Kind     string
		Readings []json.RawMessage
	}
	if err := json.Unmarshal([]byte(stdout), &report); code != exitDone || err != nil || report.Kind != "tf-xspace" || len(report.Readings) != 1 {
		t.Errorf("exit %d, %v: %s", code, err, stdout)
	}
	code, stdout, _ = tideline(t, "attach", at, "--for", "10ms", "-o", raw, "--json", "--host-level", "3", "--python")
	if code != exitDone || !strings.Contains(stdout, `"bytes": 42257`) {
		t.Errorf("exit %d: %s", code, stdout)
	}
	asked := s.Asked()
	if q := asked[len(asked)-1]; q.HostLevel != 3 || q.PythonLevel != 1 {
		t.Errorf("asked %+v", q)
	}
}

func TestAttachServesThePage(t *testing.T) {
	s := testserver.Start(t, testserver.Behaviour{Space: liveProfile(t)})
	cmd, stderr := child(t, "attach", "tf://"+s.Addr, "--for", "10ms", "--addr", "127.0.0.1:0", "--data", t.TempDir(), "--json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said struct{ URL, Addr, Token string }
	if err := json.NewDecoder(out).Decode(&said); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+said.Addr+"/api/v1/files", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+said.Token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil || !strings.Contains(body.String(), ".xplane.pb") {
		t.Errorf("%v: %s", err, body.String())
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, stderr)
	}
}

// TestAttachKeepsWhatWasRecordedUntilTheSignal: Ctrl-C ends an hour's recording.
func TestAttachKeepsWhatWasRecordedUntilTheSignal(t *testing.T) {
	s := testserver.Start(t, testserver.Behaviour{Space: liveProfile(t)})
	out := filepath.Join(t.TempDir(), "x.xplane.pb")
	cmd, stderr := child(t, "attach", "tf://"+s.Addr, "--for", "1h", "-o", out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for len(s.Asked()) == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, stderr)
	}
	if b, err := os.ReadFile(out); err != nil || ingest.Recognise(b) != ingest.XSpace {
		t.Errorf("%v, %d bytes", err, len(b))
	}
}

func TestAttachSaysWhatIsWrong(t *testing.T) {
	nothing := testserver.Start(t, testserver.Behaviour{})
	busy := testserver.Start(t, testserver.Behaviour{Err: status.Error(codes.Internal, "Another profiling session active.")})
	odd := testserver.Start(t, testserver.Behaviour{Space: []byte("\x0a\x05hello and more that is no profile\x00")})
	tpu := testserver.Start(t, testserver.Behaviour{Monitor: "Utilization of TPU Matrix Units is: 10%"})
	notes := file(t, "notes.txt", "dear to somebody")
	for _, tc := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"no scheme", []string{"localhost:6009"}, exitUsage, "say tf://HOST:PORT"},
		{"another scheme", []string{"http://localhost:6009"}, exitUsage, "tf://HOST:PORT is"},
		{"cards", []string{"nvml://0"}, exitUsage, "tideline watch"},
		{"no port", []string{"tf://localhost"}, exitUsage, "6009"},
		{"short", []string{"tf://localhost:1", "--for", "1us"}, exitUsage, "--for"},
		{"long", []string{"tf://localhost:1", "--for", "2h"}, exitUsage, "--for"},
		{"no time", []string{"tf://localhost:1", "--grace", "0s"}, exitUsage, "--grace"},
		{"no size", []string{"tf://localhost:1", "--limit", "much"}, exitUsage, "--limit"},
		{"level", []string{"tf://localhost:1", "--host-level", "4"}, exitUsage, "--host-level"},
		{"nothing at all", []string{"tf://localhost:1", "--host-level", "0", "--device-level", "0"}, exitUsage, "record nothing"},
		{"a file that is dear", []string{"tf://localhost:1", "-o", notes}, exitUsage, "is no profile"},
		{"nobody", []string{"tf://127.0.0.1:1"}, exitFailed, "jax.profiler.start_server(1)"},
		{"nothing recorded", []string{"tf://" + nothing.Addr, "--for", "1ms"}, exitFailed, "nothing was recorded"},
		{"busy", []string{"tf://" + busy.Addr, "--for", "1ms"}, exitFailed, "being profiled already"},
		{"no profile", []string{"tf://" + odd.Addr, "--for", "1ms"}, exitFailed, "-o FILE keeps it"},
		{"nothing in a folder either", []string{"tf://" + tpu.Addr, "--for", "1ms", "--folder", filepath.Join(notes, "x"), "-o", filepath.Join(notes, "y")}, exitFailed, "nothing was recorded"},
		{"no monitor", []string{"tf://" + nothing.Addr, "--monitor", "--for", "1ms"}, exitFailed, "TPU"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, stdout, stderr := tideline(t, append([]string{"attach"}, tc.args...)...)
			if code != tc.code || !strings.Contains(stderr, tc.says) || stdout != "" {
				t.Errorf("exit %d, said %q and %q", code, stdout, stderr)
			}
		})
	}
	code, stdout, stderr := tideline(t, "attach", "tf://"+tpu.Addr, "--monitor", "--for", "1ms")
	if code != exitDone || stdout != "Utilization of TPU Matrix Units is: 10%\n" {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	if b, err := os.ReadFile(notes); err != nil || string(b) != "dear to somebody" {
		t.Errorf("%v: the file is %q", err, b)
	}
}
