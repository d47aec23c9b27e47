package monitor

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Proc reads a proc file system.
type Proc struct {
	root string
}

// System is this machine's.
var System = Proc{"/proc"}

// Host is the memory of the machine. Bytes.
type Host struct {
	Total, Available int64
}

// Host reads meminfo.
func (p Proc) Host() (Host, error) {
	var h Host
	name := filepath.Join(p.root, "meminfo")
	f, err := os.Open(name)
	if err != nil {
		return h, fmt.Errorf("read the machine's memory: %w", err)
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		key, value, _ := strings.Cut(in.Text(), ":")
		switch key {
		case "MemTotal":
			h.Total = kibibytes(value)
		case "MemAvailable":
			h.Available = kibibytes(value)
		}
	}
	if h.Total <= 0 {
		return h, fmt.Errorf("read the machine's memory: %s has no MemTotal", name)
	}
	return h, nil
}

// kibibytes reads "  16384 kB" as bytes.
func kibibytes(s string) int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(s), " kB"), 10, 64)
	if err != nil || n < 0 || n > 1<<52 {
		return 0
	}
	return n << 10
}

// Name is a process's command, without its folder and arguments, or "".
func (p Proc) Name(pid int) string {
	line, err := os.ReadFile(filepath.Join(p.root, strconv.Itoa(pid), "cmdline"))
	if err == nil {
		if first, _, _ := bytes.Cut(line, []byte{0}); len(first) > 0 {
			return filepath.Base(string(first))
		}
	}
	comm, err := os.ReadFile(filepath.Join(p.root, strconv.Itoa(pid), "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(comm))
}

// Resident is the host memory that a process has in use, in bytes, Unknown
// where it cannot be read.
func (p Proc) Resident(pid int) int64 {
	text, err := os.ReadFile(filepath.Join(p.root, strconv.Itoa(pid), "statm"))
	if err != nil {
		return Unknown
	}
	f := strings.Fields(string(text))
	if len(f) < 2 {
		return Unknown
	}
	pages, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil || pages < 0 || pages > 1<<40 {
		return Unknown
	}
	return pages * int64(os.Getpagesize())
}

// KernelCards are the cards that NVIDIA's kernel module drives, as "name (bus
// id)": there even where no library is.
func (p Proc) KernelCards() []string {
	files, err := filepath.Glob(filepath.Join(p.root, "driver", "nvidia", "gpus", "*", "information"))
	if err != nil {
		return nil
	}
	var out []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		model, bus := "NVIDIA card", filepath.Base(filepath.Dir(f))
		for line := range strings.SplitSeq(string(text), "\n") {
			if v, ok := strings.CutPrefix(line, "Model:"); ok {
				model = strings.TrimSpace(v)
			}
		}
		out = append(out, model+" ("+bus+")")
	}
	return out
}
