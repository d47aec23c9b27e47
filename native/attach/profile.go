package attach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"tideline/native/attach/answer"
)

// Levels say how much the server records.
type Levels struct {
	Host   uint // 0 nothing, 1 what the program marks, 2 also expensive ops and the allocators' events, 3 all ops
	Device uint // 0 nothing, 1 kernels and copies
	Python uint // 0 nothing, 1 every call of a Python function, at a cost
}

// Options say what to record and how long to wait. Zero fields mean the
// defaults, of Levels as a whole.
type Options struct {
	Duration time.Duration // 2s; whole milliseconds
	Levels   Levels        // host 2, device 1
	// Grace is how long the server may take beyond the duration to put the
	// profile together and send it; 2 minutes.
	Grace time.Duration
	// Limit is how many bytes an answer or a file may have; 1 GiB, which is also
	// what the reader takes.
	Limit int64
	// Folder is where a server that does not answer with the profile writes it,
	// as the server sees it. By default it is a temporary one on this machine,
	// and for servers elsewhere /tmp/tideline there.
	Folder string

	connect time.Duration // how long the connection may take; connectTime
	written bool          // as a server that does not answer with the profile has it
}

// Defaults.
const (
	DefaultDuration = 2 * time.Second
	DefaultGrace    = 2 * time.Minute
	DefaultLimit    = 1 << 30
	// MaxDuration is the longest profile: programs keep it in memory.
	MaxDuration = time.Hour

	connectTime  = 10 * time.Second
	remoteFolder = "/tmp/tideline"
)

func (o *Options) defaults() {
	if o.Duration <= 0 {
		o.Duration = DefaultDuration
	}
	o.Duration = max(o.Duration.Truncate(time.Millisecond), time.Millisecond)
	if o.Levels == (Levels{}) {
		o.Levels = Levels{Host: 2, Device: 1}
	}
	if o.Grace <= 0 {
		o.Grace = DefaultGrace
	}
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	if o.connect <= 0 {
		o.connect = connectTime
	}
}

// Capture is a profile that was taken.
type Capture struct {
	Data []byte // an XSpace; of servers of 2020 a memory profile or trace, packed
	Name string // what a file of it would be called, by its kind
	From string // the file that the server wrote; "" where it answered with it
	Took time.Duration
}

// Profile asks the server for a profile of what its program does from now on.
// When ctx ends the server is told to stop, and what it recorded until then is
// returned. Errors are *Error.
func Profile(ctx context.Context, t Target, o Options) (*Capture, error) {
	o.defaults()
	f, err := makeFolder(t, o.Folder)
	if err != nil {
		return nil, err
	}
	defer f.remove()
	conn, err := dial(t, &o)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // every answer has been given
	began := time.Now()
	q := profileRequest{
		durationMS: uint64(o.Duration.Milliseconds()), levels: o.Levels, inAnswer: !o.written,
		repository: f.path, session: began.Format("2006_01_02_15_04_05.000000"),
		host:  strings.NewReplacer(":", "_", "/", "_").Replace(t.String()),
		tools: []string{"trace_viewer", "memory_profile"},
	}
	var a answer.Profile
	if err := call(ctx, conn, &q, &a, o.Duration+o.Grace); err != nil {
		return nil, explain(t, &o, f, err)
	}
	c, err := capture(&a, t, &o, f, &q)
	if err != nil {
		return nil, err
	}
	c.Took = time.Since(began)
	return c, nil
}

// Method names of the service.
const (
	service       = "tensorflow.ProfilerService"
	profileName   = "/" + service + "/Profile"
	terminateName = "/" + service + "/Terminate"
	monitorName   = "/" + service + "/Monitor"
)

// dial prepares a connection. It is made by the first call, whose error says
// what came of it.
func dial(t Target, o *Options) (*grpc.ClientConn, error) {
	wait := backoff.DefaultConfig
	wait.BaseDelay = min(wait.BaseDelay, o.connect) // which is a first try's least time, too
	conn, err := grpc.NewClient("passthrough:///"+t.String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), // the service has no other
		grpc.WithNoProxy(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: wait, MinConnectTimeout: o.connect}),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec{}), grpc.MaxCallRecvMsgSize(int(o.Limit))),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry())
	if err != nil {
		return nil, &Error{Target: t, Kind: Unreachable, Text: "the address cannot be used: " + err.Error(), err: err}
	}
	return conn, nil
}

// stopTime is how long a server that is told to stop may take for what it has.
const stopTime = 30 * time.Second

// call lets a server record. The end of ctx ends the recording, not the call.
func call(ctx context.Context, conn *grpc.ClientConn, q *profileRequest, a *answer.Profile, limit time.Duration) error {
	in, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		stop, done := context.WithTimeout(in, stopTime)
		defer done()
		if err := conn.Invoke(stop, terminateName, &terminateRequest{q.session}, new(answer.Terminate)); err != nil {
			cancel()
			return
		}
		<-stop.Done() // the call is over, or takes too long
		cancel()
	})()
	err := conn.Invoke(in, profileName, q, a)
	if err != nil && ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	return err //nolint:wrapcheck // explain does
}

// capture finds the profile in an answer or where the server wrote it.
func capture(a *answer.Profile, t Target, o *Options, f folder, q *profileRequest) (*Capture, error) {
	if len(a.Space) > 0 && !a.Empty {
		return &Capture{Data: a.Space, Name: q.host + ".xplane.pb"}, nil
	}
	if c := bestTool(a.Tools); c != nil {
		return c, nil
	}
	if a.Empty {
		return nil, &Error{Target: t, Kind: Empty, Text: fmt.Sprintf(
			"nothing was recorded in %v: the program did nothing that its profiler sees; let it train meanwhile, or record longer with --for", o.Duration)}
	}
	return f.read(t, o, q)
}

// kinds are what can be read of the files that servers made, the best first.
var kinds = []string{".xplane.pb", ".memory_profile.json.gz", ".trace.json.gz"}

func bestTool(tools []answer.Tool) *Capture {
	for _, k := range kinds {
		for _, d := range tools {
			if strings.HasSuffix("."+d.Name, k) && len(d.Data) > 0 {
				return &Capture{Data: d.Data, Name: path.Base(d.Name)}
			}
		}
	}
	return nil
}

// folder is where a server may write.
type folder struct {
	path string
	made bool // by us, so that we remove it
	near bool // can perhaps be seen from here
}

func makeFolder(t Target, asked string) (folder, error) {
	if asked != "" {
		return folder{path: asked, near: !strings.Contains(asked, "://")}, nil
	}
	if !t.local() {
		return folder{path: remoteFolder}, nil
	}
	p, err := os.MkdirTemp("", "tideline-")
	if err != nil {
		return folder{}, fmt.Errorf("make a folder for the profile (give one with --folder): %w", err)
	}
	return folder{path: p, made: true, near: true}, nil
}

func (f folder) remove() {
	if f.made {
		_ = os.RemoveAll(f.path) // a temporary folder; the system clears those, too
	}
}

// read takes the best file of a session.
func (f folder) read(t Target, o *Options, q *profileRequest) (*Capture, error) {
	dir := filepath.Join(f.path, q.session)
	if !f.near {
		return nil, &Error{Target: t, Kind: Elsewhere, Text: fmt.Sprintf(
			"the server is of a version that does not send profiles: it wrote one into %s on its own machine; copy it from there and open it with tideline, or give a folder that both machines see with --folder",
			path.Join(f.path, q.session))}
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, &Error{Target: t, Kind: Elsewhere, err: err, Text: fmt.Sprintf(
			"the server is of a version that writes profiles instead of sending them, and %s is not to be found here: if the program runs in a container or on another machine, give a folder that it and this machine both see with --folder", dir)}
	}
	for _, k := range kinds {
		for _, e := range list {
			if strings.HasSuffix(e.Name(), k) && e.Type().IsRegular() {
				return readFile(t, o, filepath.Join(dir, e.Name()))
			}
		}
	}
	return nil, &Error{Target: t, Kind: Empty, Text: fmt.Sprintf("the server wrote no profile into %s: the program did nothing that its profiler sees; let it train meanwhile, or record longer with --for", dir)}
}

func readFile(t Target, o *Options, name string) (*Capture, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, &Error{Target: t, Kind: Elsewhere, Text: fmt.Sprintf("read what the server wrote: %v", err), err: err}
	}
	if st.Size() > o.Limit {
		return nil, &Error{Target: t, Kind: TooLarge, Text: tooLarge(o)}
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, &Error{Target: t, Kind: Elsewhere, Text: fmt.Sprintf("read what the server wrote: %v", err), err: err}
	}
	return &Capture{Data: b, Name: filepath.Base(name), From: name}, nil
}
