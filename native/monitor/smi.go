package monitor

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Source reads the cards of a machine. Not safe for concurrent use.
type Source interface {
	Cards() ([]Card, error)
	Close()
}

// DefaultSMI is the command of NVIDIA's driver that tells of cards.
const DefaultSMI = "nvidia-smi"

// Find sees the cards through NVML or, where that cannot be had, through the
// command smi. The error says in one line why neither would do.
func Find(ctx context.Context, smi string) (Source, error) {
	m, err := Open()
	if err == nil {
		return m, nil
	}
	s, second := OpenSMI(ctx, smi)
	if second == nil {
		return s, nil
	}
	return nil, fmt.Errorf("%w; %w", err, second)
}

// SMI sees the cards by running a command: slower than NVML, and without the
// processes.
type SMI struct {
	ctx  context.Context
	path string
}

// OpenSMI finds the command and runs it once. It is not run after ctx ends.
func OpenSMI(ctx context.Context, name string) (*SMI, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("there is no command %s", name)
	}
	s := &SMI{ctx, path}
	_, err = s.Cards()
	return s, err
}

// query is what is asked for, in the order in which ParseSMI takes it apart.
const query = "index,name,pci.bus_id,uuid,memory.total,memory.used,memory.free,utilization.gpu,utilization.memory"

// smiTime is how long the command may take: some seconds where nothing keeps
// the driver loaded.
const smiTime = 20 * time.Second

// Cards runs the command.
func (s *SMI) Cards() ([]Card, error) {
	ctx, cancel := context.WithTimeout(s.ctx, smiTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, s.path, "--query-gpu="+query, "--format=csv,noheader,nounits").Output()
	if err != nil {
		said := strings.TrimSpace(string(out))
		if e, ok := errors.AsType[*exec.ExitError](err); ok && said == "" {
			said = strings.TrimSpace(string(e.Stderr))
		}
		said, _, _ = strings.Cut(said, "\n")
		return nil, fmt.Errorf("%s fails: %w: %s", s.path, err, said)
	}
	list, err := ParseSMI(strings.NewReader(string(out)))
	if err != nil {
		return nil, fmt.Errorf("read what %s says: %w", s.path, err)
	}
	return list, nil
}

// Close has nothing to let go.
func (s *SMI) Close() {}

// ParseSMI reads the cards from lines of comma-separated values without units,
// as the command writes them: memory in MiB, utilisation in percent, and words
// in brackets where the driver does not say.
func ParseSMI(r io.Reader) ([]Card, error) {
	in := csv.NewReader(r)
	in.TrimLeadingSpace = true
	in.FieldsPerRecord = strings.Count(query, ",") + 1
	var out []Card
	for {
		f, err := in.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("card %d: %w", len(out), err)
		}
		var n [6]int64
		for i, k := range []int{0, 4, 5, 6, 7, 8} {
			if n[i], err = smiNumber(f[k]); err != nil {
				return nil, fmt.Errorf("card %d: %w", len(out), err)
			}
		}
		if n[0] < 0 || n[1] < 0 || n[2] < 0 {
			return nil, fmt.Errorf("card %d: the driver tells no number, total or used memory of it: %q", len(out), f)
		}
		free := n[3] << 20
		if n[3] < 0 {
			free = max(0, (n[1]-n[2])<<20)
		}
		out = append(out, Card{
			Index: int(n[0]), Name: f[1], PCI: busID(f[2]), UUID: f[3],
			Total: n[1] << 20, Used: n[2] << 20, Free: free, Utilisation: int(n[4]), MemoryBusy: int(n[5]),
		})
	}
}

// smiNumber reads a whole number, or a word in brackets as Unknown.
func smiNumber(s string) (int64, error) {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "[") || s == "N/A" {
		return Unknown, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > 1<<32 {
		return 0, fmt.Errorf("%.40q is no figure of a card", s)
	}
	return n, nil
}

// busID writes 00000000:3B:00.0 as 0000:3b:00.0.
func busID(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if domain, rest, ok := strings.Cut(s, ":"); ok && len(domain) == 8 {
		return domain[4:] + ":" + rest
	}
	return s
}
