package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tideline/protocol/api"
	"tideline/protocol/api/workfile"
)

// Handler serves the page, the HTTP interface and the streams.
func (a *Agent) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+api.PathInfo, a.getInfo)
	mux.HandleFunc("GET "+api.PathRuns, func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, a.list(&a.runs)) })
	mux.HandleFunc("POST "+api.PathRuns, a.postRun)
	mux.HandleFunc("GET "+api.PathOpen, func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, a.list(&a.files)) })
	mux.HandleFunc("GET "+api.PathRun, a.withRun(func(w http.ResponseWriter, _ *http.Request, x *run) { answer(w, http.StatusOK, x.info()) }))
	mux.HandleFunc("POST "+api.PathStop, a.withRun(stopRun))
	mux.HandleFunc("GET "+api.PathFile, a.withRun(getFile))
	mux.HandleFunc("GET "+api.PathOriginal, a.withRun(getOriginal))
	mux.HandleFunc("GET "+api.PathStream, a.withRun(a.stream))
	mux.HandleFunc("POST "+api.PathCheck, a.checkWorkload)
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, fmt.Sprintf("there is nothing to %s at %s", r.Method, r.URL.Path))
	})
	page := a.opts.Page
	if page == nil {
		page = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "This agent was built without its page; its interface is at "+api.PathInfo+".\n") // the reader has gone away
		})
	}
	mux.Handle("/", page)
	return a.guard(mux)
}

// answer sends a value as JSON.
func answer(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the reader has gone away
}

func fail(w http.ResponseWriter, status int, message string) {
	answer(w, status, api.Failure{Error: message})
}

func (a *Agent) getInfo(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, api.Info{Version: a.opts.Version, Presets: a.opts.Presets, Models: a.opts.Models, Demos: a.opts.Demos})
}

// withRun looks the run of the path up.
func (a *Agent) withRun(do func(http.ResponseWriter, *http.Request, *run)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		x := a.find(id)
		if x == nil {
			fail(w, http.StatusNotFound, fmt.Sprintf("there is no run or file %q: %s lists the runs", id, api.PathRuns))
			return
		}
		do(w, r, x)
	}
}

// readWorkload reads the body; it has answered when it returns nil.
func (a *Agent) readWorkload(w http.ResponseWriter, r *http.Request) (*api.Workload, api.Problems, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, workfile.MaxSize))
	if err != nil {
		status := http.StatusBadRequest
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		fail(w, status, fmt.Sprintf("read the workload (at most %d bytes): %v", workfile.MaxSize, err))
		return nil, nil, false
	}
	workload, problems := workfile.Read(body, a.known)
	return workload, problems, true
}

func (a *Agent) checkWorkload(w http.ResponseWriter, r *http.Request) {
	_, problems, ok := a.readWorkload(w, r)
	if !ok {
		return
	}
	if problems == nil {
		problems = api.Problems{} // [], not null
	}
	answer(w, http.StatusOK, problems)
}

func (a *Agent) postRun(w http.ResponseWriter, r *http.Request) {
	workload, problems, ok := a.readWorkload(w, r)
	query := r.URL.Query().Get("alone")
	alone, err := strconv.ParseBool(cmp.Or(query, "false"))
	switch {
	case !ok:
		return
	case err != nil:
		fail(w, http.StatusBadRequest, fmt.Sprintf("alone is %q: expected true or false", query))
		return
	case len(problems) > 0:
		answer(w, http.StatusUnprocessableEntity, api.Failure{Error: "the workload cannot run: " + problems.Error(), Problems: problems})
		return
	}
	info, err := a.Start(workload, alone)
	switch {
	case errors.Is(err, errBusy):
		w.Header().Set("Retry-After", "5")
		fail(w, http.StatusTooManyRequests, err.Error())
	case errors.Is(err, errClosing):
		fail(w, http.StatusServiceUnavailable, err.Error())
	case err != nil:
		fail(w, http.StatusInternalServerError, err.Error())
	default:
		answer(w, http.StatusCreated, info)
	}
}

func stopRun(w http.ResponseWriter, _ *http.Request, x *run) {
	x.stop.Store(true)
	answer(w, http.StatusAccepted, x.info())
}

// getFile sends what is recorded so far: whole blocks, so that it opens.
func getFile(w http.ResponseWriter, r *http.Request, x *run) {
	download(w, r, fileName(x.name)+"-"+x.id+".tideline", x.source.File())
}

// getOriginal sends the file that a timeline was made of.
func getOriginal(w http.ResponseWriter, r *http.Request, x *run) {
	if x.made.Open == nil {
		fail(w, http.StatusNotFound, fmt.Sprintf("%s was not made of another file: it is at %s", x.id, strings.Replace(api.PathFile, "{id}", x.id, 1)))
		return
	}
	f, err := x.made.Open()
	if err != nil {
		fail(w, http.StatusGone, fmt.Sprintf("open %s once more: %v", x.name, err))
		return
	}
	defer func() { _ = f.Close() }() // it was only read
	download(w, r, fileName(x.name)+"-"+x.id, f)
}

func download(w http.ResponseWriter, r *http.Request, name string, content io.ReadSeeker) {
	const downloadTime = 30 * time.Minute
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(downloadTime)) // as in guard
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
	w.Header().Set("Cache-Control", "no-store")
	http.ServeContent(w, r, "", time.Time{}, content)
}
