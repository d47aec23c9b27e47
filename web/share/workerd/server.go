package workerd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"time"
)

// Options of a local run.
type Options struct {
	Bundle  string            // what Bundle wrote
	Persist string            // a folder for R2 and KV
	Site    string            // a folder with the static page, or empty
	Vars    map[string]string // as under vars in wrangler.jsonc
}

// Server is a running workerd.
type Server struct {
	URL string // without a slash at the end

	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  *bufio.Reader
	stderr bytes.Buffer // filled by cmd's own goroutine until Wait
	log    bytes.Buffer
}

// reply is a line that serve.mjs prints.
type reply struct{ Ready, Swept string }

// Start runs the Worker until Close.
func Start(ctx context.Context, o Options) (*Server, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return nil, err
	}
	arg, err := json.Marshal(map[string]any{"bundle": o.Bundle, "persist": o.Persist, "site": o.Site, "vars": o.Vars})
	if err != nil {
		return nil, fmt.Errorf("encode the options: %w", err)
	}
	s := &Server{cmd: exec.CommandContext(ctx, "node", "serve.mjs", string(arg))}
	s.cmd.Dir = filepath.Join(root, folder)
	s.cmd.Stderr = &s.stderr
	s.cmd.WaitDelay = 5 * time.Second
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.lines = bufio.NewReader(out)
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start node: %w", err)
	}
	r, err := s.read()
	if err != nil || r.Ready == "" {
		return nil, errors.Join(fmt.Errorf("workerd did not start: %w", err), s.Close())
	}
	s.URL = string(bytes.TrimSuffix([]byte(r.Ready), []byte("/")))
	return s, nil
}

// read waits for the next line of JSON; what else is printed is the Worker's log.
func (s *Server) read() (reply, error) {
	for {
		line, err := s.lines.ReadBytes('\n')
		if err != nil {
			return reply{}, fmt.Errorf("read from node: %w", err)
		}
		var r reply
		if json.Unmarshal(line, &r) == nil {
			return r, nil
		}
		s.log.Write(line)
	}
}

// Sweep runs the Worker's cron handler and returns its outcome.
func (s *Server) Sweep() (string, error) {
	if _, err := io.WriteString(s.stdin, "sweep\n"); err != nil {
		return "", fmt.Errorf("ask for a sweep: %w", err)
	}
	r, err := s.read()
	return r.Swept, err
}

// Close ends workerd and returns what it complained of, if anything.
func (s *Server) Close() error {
	err := s.stdin.Close()
	_, _ = io.Copy(io.Discard, s.lines) // until node closes it
	if werr := s.cmd.Wait(); werr != nil {
		err = errors.Join(err, fmt.Errorf("node: %w\n%s", werr, s.stderr.String()))
	}
	return err
}

// Log is what node and the Worker have printed; read it after Close.
func (s *Server) Log() string { return s.log.String() + s.stderr.String() }
