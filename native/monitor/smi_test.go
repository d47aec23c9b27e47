package monitor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const twoCards = "0, Tesla T4, 00000000:3B:00.0, GPU-1, 15360, 450, 14910, 57, 12\n" +
	"1, \"NVIDIA, odd name\", 00000001:AF:00.0, GPU-2, 81559, 2048, [N/A], [Not Supported], [N/A]\n"

func TestWhatTheCommandSays(t *testing.T) {
	list, err := ParseSMI(strings.NewReader(twoCards))
	if err != nil {
		t.Fatal(err)
	}
	want := []Card{
		{Index: 0, Name: "Tesla T4", PCI: "0000:3b:00.0", UUID: "GPU-1", Total: 15360 << 20, Used: 450 << 20, Free: 14910 << 20, Utilisation: 57, MemoryBusy: 12},
		{Index: 1, Name: "NVIDIA, odd name", PCI: "0001:af:00.0", UUID: "GPU-2", Total: 81559 << 20, Used: 2048 << 20, Free: 79511 << 20, Utilisation: Unknown, MemoryBusy: Unknown},
	}
	if len(list) != len(want) {
		t.Fatalf("%d cards, want %d", len(list), len(want))
	}
	for i := range want {
		if g, w := list[i], want[i]; g.Index != w.Index || g.Name != w.Name || g.PCI != w.PCI || g.UUID != w.UUID || g.Total != w.Total ||
			g.Used != w.Used || g.Free != w.Free || g.Utilisation != w.Utilisation || g.MemoryBusy != w.MemoryBusy {
			t.Errorf("card %d: %+v, want %+v", i, g, w)
		}
	}
	for _, bad := range []string{"No devices were found\n", "0, T4, x, y, many, 1, 1, 1, 1\n", "0, T4, x, y, [N/A], 1, 1, 1, 1\n", "0, T4\n", "0, T4, x, y, 99999999999999, 1, 1, 1, 1\n"} {
		if list, err := ParseSMI(strings.NewReader(bad)); err == nil {
			t.Errorf("%q gives %+v, want an error", bad, list)
		}
	}
}

// script makes a command.
func script(t *testing.T, body string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "fake-smi")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+body), 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestTheCommandIsRun(t *testing.T) {
	s, err := OpenSMI(t.Context(), script(t, "case \"$1\" in --query-gpu=index,name,*) cat <<'X'\n"+twoCards+"X\n;; *) exit 3;; esac\n"))
	if err != nil {
		t.Fatal(err)
	}
	if list, err := s.Cards(); err != nil || len(list) != 2 || list[1].Used != 2<<30 {
		t.Errorf("%+v, %v", list, err)
	}
	for what, c := range map[string]struct{ path, want string }{
		"no command": {"/nowhere/nvidia-smi", "there is no command"},
		"no driver":  {script(t, "echo \"NVIDIA-SMI has failed because it couldn't communicate with the driver.\"; exit 9\n"), "couldn't communicate with the driver"},
		"nonsense":   {script(t, "echo hello\n"), "card 0"},
	} {
		_, err := OpenSMI(t.Context(), c.path)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q", what, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := OpenSMI(ctx, script(t, "cat /dev/null\n")); err == nil {
		t.Error("the command ran after its context had ended")
	}
}

func FuzzParseSMI(f *testing.F) {
	f.Add(twoCards)
	f.Add("0, \"open, x\n")
	f.Add("[N/A], [N/A], , , [N/A], [N/A], [N/A], [N/A], [N/A]\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseSMI(strings.NewReader(text))
		for _, c := range list {
			if err == nil && (c.Index < 0 || c.Total < 0 || c.Used < 0 || c.Free < 0 || c.Utilisation < Unknown) {
				t.Errorf("%+v", c)
			}
		}
	})
}
