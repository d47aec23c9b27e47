package monitor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tideline/protocol/event"
)

func TestProcOfThisProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/statm"); err != nil {
		t.Skip("no proc file system here")
	}
	if n := System.Name(os.Getpid()); n != filepath.Base(os.Args[0]) {
		t.Errorf("this process is %q, want %q", n, filepath.Base(os.Args[0]))
	}
	if b := System.Resident(os.Getpid()); b < 1<<20 {
		t.Errorf("%d bytes resident", b)
	}
	if h, err := System.Host(); err != nil || h.Total < h.Available || h.Available <= 0 {
		t.Errorf("%+v, %v", h, err)
	}
	if System.Name(1<<30) != "" || System.Resident(1<<30) != Unknown {
		t.Error("a process that is not there has a name or memory")
	}
}

func TestProcOfAMachineWithCards(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("driver/nvidia/gpus/0000:3b:00.0/information", "Model: \t\t Tesla T4\nIRQ:   \t\t 57\n")
	write("meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\nMemAvailable:    4096 kB\n")
	write("7/comm", "python3\n")
	write("7/statm", "x y z\n")
	write("7/cmdline", "")
	p := Proc{root}
	if got := p.KernelCards(); len(got) != 1 || got[0] != "Tesla T4 (0000:3b:00.0)" {
		t.Errorf("%v", got)
	}
	if h, err := p.Host(); err != nil || h != (Host{16 << 20, 4 << 20}) {
		t.Errorf("%+v, %v", h, err)
	}
	if p.Name(7) != "python3" || p.Resident(7) != Unknown {
		t.Errorf("%q, %d", p.Name(7), p.Resident(7))
	}
	write("meminfo", "MemTotal: many kB\n")
	if _, err := p.Host(); err == nil || !strings.Contains(err.Error(), "no MemTotal") {
		t.Errorf("%v", err)
	}
}

func TestWhatOthersHold(t *testing.T) {
	c := Card{Used: 1000, Processes: []Process{{PID: 3, Bytes: 300}, {PID: 4, Bytes: Unknown}}}
	for pid, want := range map[int]int64{3: 700, 4: 1000, 5: 1000} {
		if got := c.Held(pid); got != want {
			t.Errorf("besides %d: %d, want %d", pid, got, want)
		}
	}
}

func TestSamplesOfACard(t *testing.T) {
	var table event.Strings
	var got []event.Event
	sink := event.SinkFunc(func(e *event.Event) { got = append(got, *e) })
	c := Card{Total: 100, Used: 40, Utilisation: Unknown}
	c.Emit(sink, &table, 2, 7)
	c.Utilisation = 57
	c.Emit(sink, &table, 2, 9)
	if len(got) != 3 || got[0].Size != 40 || got[0].Requested != 100 || got[2].Size != 57 || got[2].Time != 9 || got[2].Device != 2 {
		t.Errorf("%+v", got)
	}
	if table.At(got[0].Op) != SeriesUsed || table.At(got[2].Op) != SeriesUtilisation {
		t.Errorf("%q, %q", table.At(got[0].Op), table.At(got[2].Op))
	}
}
