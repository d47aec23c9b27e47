package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"tideline/native/backend/vgpu"
	"tideline/native/dataset"
	"tideline/protocol/event"
	"tideline/protocol/eventhash"
	"tideline/protocol/timeline"
	"tideline/shared/launch"
)

// TestThreeHostsAgree is the promise that a rerun is a run: each workload runs
// on the virtual GPU with arithmetic, on the modelled backend natively, and as
// a rerun in the browser's module. What they did to memory, event for event
// and address for address, is compared by hash.
func TestThreeHostsAgree(t *testing.T) {
	a := startAgent(t)
	p := openPage(t, 1280, 800)
	p.open(a.url)
	digits, err := dataset.Training()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%-28s %-16s %-16s %-16s", "", "virtual GPU", "modelled", "browser")
	for _, c := range launch.HashCases() {
		var file bytes.Buffer
		w := timeline.NewWriter(&file, timeline.Options{})
		if _, err := launch.Run(c.Workload, launch.Options{Strings: w.Strings(), Sink: w, Backend: vgpu.New(), Data: digits}); err != nil {
			t.Fatalf("%s with arithmetic: %v", c.Name, err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		computed, _, _ := hashOf(t, file.Bytes())
		modelled := modelledHash(t, &c)
		rerun := p.rerunHash(c.Name, file.Bytes())
		t.Logf("%-28s %016x %016x %016x", c.Name, computed, modelled, rerun)
		if computed != modelled || modelled != rerun {
			t.Errorf("%s: the hosts differ", c.Name)
		}
	}
	p.quiet()
}

func modelledHash(t *testing.T, c *launch.HashCase) uint64 {
	t.Helper()
	var table event.Strings
	h := eventhash.New(&table)
	if _, err := launch.Run(c.Workload, launch.Options{Strings: &table, Sink: h}); err != nil {
		t.Fatalf("%s modelled: %v", c.Name, err)
	}
	return h.Sum64()
}

// rerunHash opens a file in the page, reruns its workload unchanged, and
// hashes what Save then gives.
func (p *page) rerunHash(name string, file []byte) uint64 {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), name+".tideline")
	if err := os.WriteFile(path, file, 0o644); err != nil {
		p.t.Fatal(err)
	}
	p.upload(path)
	p.wait("the file "+name, `document.querySelector("#run-picker").selectedOptions[0]?.textContent.includes("`+name+`")`)
	p.settled()
	p.click("#rerun")
	p.wait("the rerun", `!document.querySelector("#run-picker").selectedOptions[0]?.textContent.includes("`+name+`.tideline")`)
	p.settled()
	saved := p.save()
	if bytes.Equal(saved, file) {
		p.t.Fatalf("%s: Save gave the file that was opened, not the rerun", name)
	}
	h, _, _ := hashOf(p.t, saved)
	return h
}
