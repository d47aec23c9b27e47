package api

// Paths of the agent's HTTP interface. A request carries the agent's token as
// "Authorization: Bearer TOKEN", as the cookie that the page's first visit
// sets, or as ?token=TOKEN. An answer that is not a success is a Failure.
const (
	PathInfo     = "/api/v1/info"               // GET: Info
	PathRuns     = "/api/v1/runs"               // GET: []RunInfo; POST: a workload (YAML or JSON) -> RunInfo; ?alone=true: on a machine of its own
	PathRun      = "/api/v1/runs/{id}"          // GET: RunInfo
	PathStop     = "/api/v1/runs/{id}/stop"     // POST
	PathFile     = "/api/v1/runs/{id}/file"     // GET: the .tideline file as far as it is written
	PathStream   = "/api/v1/runs/{id}/stream"   // WebSocket, subprotocol Subprotocol
	PathOpen     = "/api/v1/files"              // GET: []RunInfo of files given on the command line; they stream like runs
	PathOriginal = "/api/v1/runs/{id}/original" // GET: the foreign file that the timeline was made of; 404 for others
	PathCheck    = "/api/v1/workloads/validate" // POST: a workload -> Problems, an empty list when all is well
)

// Subprotocol is the WebSocket subprotocol of the event stream. The server's
// binary messages are one or more whole blocks, exactly as they lie in a
// .tideline file; its text messages are Message values, as are the client's.
const Subprotocol = "tideline.v1"

// Message is a text message of the stream, in JSON. Type says which fields
// count.
//
// Client: "start" {from, credit}: send blocks from that sequence number on,
// at most credit bytes ahead; "credit" {credit}: that many bytes more;
// "bye": the client is about to close. A message is sent while credit is above
// zero and may overdraw it, or a block larger than the credit would never
// come.
//
// Server: "hello" {run, version, from}: what follows starts at sequence number
// from, after a block with all strings known so far; from lies before the one
// asked for when that was in the middle of a block, and the client skips what
// it has. "end" {seq, reason}: all was sent, the client closes; "error"
// {reason}: the stream cannot go on, the client closes.
type Message struct {
	Type    string   `json:"type"`
	Run     *RunInfo `json:"run,omitempty"`
	Version string   `json:"version,omitempty"`
	From    uint64   `json:"from,omitempty"`   // sequence number of an event
	Seq     uint64   `json:"seq,omitempty"`    // events in all
	Credit  int64    `json:"credit,omitempty"` // bytes
	Reason  string   `json:"reason,omitempty"`
}

// Failure is the body of every answer that is not a success.
type Failure struct {
	Error    string   `json:"error"`              // what happened and what to do
	Problems Problems `json:"problems,omitempty"` // with status 422: what is wrong with the workload
}

// Info is what the page needs to know of the agent.
type Info struct {
	Version string   `json:"version"`
	Presets []Preset `json:"presets"`
	Models  []string `json:"models"`
	Demos   []Demo   `json:"demos"` // workloads one click away
}

// Preset is a device that can be asked for by name.
type Preset struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Total int64  `json:"total"` // bytes
}

// Demo is a workload that comes with the agent.
type Demo struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	YAML  string `json:"yaml"`
}

// The states of a run. A run's end has the word of its event.EndReason.
const (
	StateRunning     = "running"
	StateDone        = "done"
	StateOutOfMemory = "out of memory"
	StateStopped     = "stopped"
	StateFailed      = "failed"
	StateFile        = "file" // opened, not run
)

// RunInfo is the state of one run or opened file.
type RunInfo struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	State   string `json:"state"` // one of the State constants
	Step    int    `json:"step"`
	Steps   int    `json:"steps"`
	Events  uint64 `json:"events"`
	Bytes   int64  `json:"bytes"`             // of the recording
	Error   string `json:"error,omitempty"`   // why it ended, or what is wrong with its recording
	YAML    string `json:"yaml,omitempty"`    // the workload as it ran
	Started string `json:"started,omitempty"` // RFC 3339
	// Kind is that of the foreign file that the timeline was made of, such as
	// pytorch-snapshot; "" for a run, and for a timeline. What the file means
	// beyond its events is for whoever reads it at PathOriginal.
	Kind string `json:"kind,omitempty"`
}
