package ingest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// screens are what nvidia-smi printed from 2012 to 2026 in its several forms,
// and what must be read out of each. They lie in testdata.
var screens = []struct {
	file, verdict string
	facts         map[string]string
}{
	{"smi-290.txt", "undetermined_no_state", map[string]string{
		"driver": `"290.10"`, "processes": "[]", "accounted_mib": "null",
		"gpus": `[{"index":0,"name_shown":"GeForce 8500 GT","used_mib":42,"total_mib":255,"free_mib":213,"util_percent":null}]`,
	}},
	{"smi-325.txt", "undetermined_no_state", map[string]string{
		"card_used_mib": "28", "card_total_mib": "12286", "process_count": "0", "truncated": "false",
		"gpus": `[{"index":0,"name_shown":"GeForce GTX TITAN","used_mib":14,"total_mib":6143,"free_mib":6129,"util_percent":null},{"index":1,"name_shown":"GeForce GTX TITAN","used_mib":14,"total_mib":6143,"free_mib":6129,"util_percent":null}]`,
	}},
	{"smi-340.txt", "explained", map[string]string{ // rows without a type
		"processes": `[{"gpu":0,"pid":4211,"name":"python","used_mib":304}]`, "accounted_mib": "304", "unaccounted_mib": "14",
		"gpus": `[{"index":0,"name_shown":"Tesla K40c","used_mib":318,"total_mib":11519,"free_mib":11201,"util_percent":0}]`,
	}},
	{"smi-410-collapsed.txt", "accumulating_processes", map[string]string{ // a page took the blanks together
		"accounted_mib": "61900", "unaccounted_mib": "178", "process_count": "4",
	}},
	{"smi-470-mig.txt", "explained", map[string]string{ // instances are parts of a device, not devices
		"card_used_mib": "55279", "card_total_mib": "162502", "accounted_mib": "55237", "unaccounted_mib": "42",
		"gpus":        `[{"index":0,"name_shown":"NVIDIA A100-SXM...","used_mib":31074,"total_mib":81251,"free_mib":50177,"util_percent":0},{"index":1,"name_shown":"NVIDIA A100-SXM...","used_mib":24205,"total_mib":81251,"free_mib":57046,"util_percent":null}]`,
		"mig_devices": `[{"gpu":1,"gi":3,"ci":0,"mig_device":0,"used_mib":14366,"total_mib":19968,"free_mib":5602},{"gpu":1,"gi":5,"ci":0,"mig_device":1,"used_mib":9826,"total_mib":19968,"free_mib":10142},{"gpu":1,"gi":6,"ci":0,"mig_device":2,"used_mib":13,"total_mib":19968,"free_mib":19955}]`,
	}},
	{"smi-470-cut.txt", "parse_only", map[string]string{ // ends above the heading of the processes
		"processes": "null", "accounted_mib": "null", "card_used_mib": "55279",
	}},
	{"smi-497-wddm.txt", "undetermined_no_state", map[string]string{
		"process_count": "3", "accounted_mib": "null", "unaccounted_mib": "null",
		"processes": `[{"gpu":0,"pid":1424,"type":"C+G","name":"Insufficient Permissions","used_mib":null},{"gpu":0,"pid":6880,"type":"C+G","name":"...root\\Office16\\WINWORD.EXE","used_mib":null},{"gpu":0,"pid":11004,"type":"C+G","name":"...n Files\\App Name\\app.exe","used_mib":null}]`,
	}},
	{"smi-535-mig.txt", "explained", map[string]string{ // the whole device's figure is N/A
		"gpus":          `[{"index":0,"name_shown":"NVIDIA H100 80GB HBM3","used_mib":null,"total_mib":null,"free_mib":null,"util_percent":null}]`,
		"mig_devices":   `[{"gpu":0,"gi":9,"ci":0,"mig_device":0,"used_mib":12,"total_mib":9984,"free_mib":9972}]`,
		"card_used_mib": "12", "card_total_mib": "null",
	}},
	{"smi-580-mig.txt", "explained", map[string]string{
		"mig_devices": `[{"gpu":0,"gi":3,"ci":0,"mig_device":0,"used_mib":64,"total_mib":24192,"free_mib":24128}]`,
	}},
	{"smi-610.txt", "explained", map[string]string{
		"driver": `"610.57.04"`, "cuda_version": `"13.3"`, "accounted_mib": "58120", "unaccounted_mib": "78",
	}},
	{"smi-lost.txt", "parse_only", map[string]string{ // its head is cut off, one device does not answer
		"gpus": `[{"index":4,"name_shown":"NVIDIA A100-SXM...","used_mib":0,"total_mib":81920,"free_mib":81920,"util_percent":0},{"index":5,"name_shown":"ERR!","used_mib":0,"total_mib":81920,"free_mib":81920,"util_percent":null}]`,
	}},
	{"smi-525-full.txt", "explained", map[string]string{ // nvidia-smi -q
		"gpus":   `[{"index":0,"name":"NVIDIA GeForce RTX 3090","total_mib":24576,"used_mib":18321,"free_mib":5945,"reserved_mib":309,"util_percent":34}]`,
		"driver": `"525.105.17"`, "processes": "1", "accounted_mib": "18302", "unaccounted_mib": "19", "reserved_mib": "309",
	}},
	{"smi-bus.txt", "parse_only", map[string]string{ // two devices, told apart by their address alone
		"gpus": `[{"index":0,"name":"NVIDIA GeForce RTX 4090","total_mib":24564,"used_mib":23020,"free_mib":1100,"util_percent":99,"used_first_mib":22020,"used_peak_mib":23020},{"index":1,"name":"NVIDIA GeForce RTX 4090","total_mib":24564,"used_mib":20,"free_mib":24100,"util_percent":0,"used_first_mib":20,"used_peak_mib":20}]`,
	}},
}

func screenText(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestScreens(t *testing.T) {
	for _, c := range screens {
		for form, s := range ways(screenText(t, c.file)) {
			t.Run(c.file+"/"+form, func(t *testing.T) {
				text, err := ReadText(c.file, strings.NewReader(s))
				if err != nil {
					t.Fatal(err)
				}
				all := text.All()
				if len(all) != 1 {
					t.Fatalf("%d readings", len(all))
				}
				checkReading(t, all[0], "nvidia-smi", c.verdict, c.facts)
				if all[0].Why == "" {
					t.Error("the reading does not say why")
				}
			})
		}
	}
}

// A table of processes that breaks off names no hidden holder: the rows below
// may be the holder's. What its rows explain is explained all the same.
func TestScreenCutAtEachLine(t *testing.T) {
	s := screenText(t, "smi-470-mig.txt")
	list := strings.SplitAfter(s, "\n")
	for n := range list {
		text, err := ReadText("x", strings.NewReader(strings.Join(list[:n], "")))
		if err != nil {
			continue // nothing of it is left
		}
		all := text.All()
		if len(all) != 1 {
			t.Fatalf("cut after line %d: %d readings", n, len(all))
		}
		r := all[0]
		switch r.Verdict {
		case "parse_only", "undetermined_truncated":
		case "explained":
			if v, _ := r.Facts.Get("accounted_mib"); string(v.AppendJSON(nil)) != "55237" {
				t.Errorf("cut after line %d: explained by %s MiB", n, v.AppendJSON(nil))
			}
		default:
			t.Errorf("cut after line %d: %s: %s", n, r.Verdict, r.Why)
		}
	}
}

// The driver takes a little of every device; many of them hide nobody. One
// device that hides somebody is named, whatever the others hold.
func TestHiddenHoldersAreOfOneDevice(t *testing.T) {
	const gpu = "index, name, memory.total [MiB], memory.used [MiB], memory.free [MiB]\n"
	const apps = "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n"
	many := gpu
	for i := range 8 {
		many += string(rune('0'+i)) + ", NVIDIA H100, 81559 MiB, 527 MiB, 80500 MiB\n"
	}
	for name, c := range map[string]struct{ text, verdict, has string }{
		"many idle ones": {many + "pid, process_name, used_gpu_memory [MiB]\n", "explained", ""},
		"the second":     {strings.Replace(many, "1, NVIDIA H100, 81559 MiB, 527 MiB", "1, NVIDIA H100, 81559 MiB, 40527 MiB", 1) + apps, "hidden_holder", "on GPU 1"},
	} {
		text, err := ReadText(name, strings.NewReader(c.text))
		if err != nil {
			t.Fatal(err)
		}
		r := text.All()[0]
		if r.Verdict != c.verdict || !strings.Contains(r.Why, c.has) {
			t.Errorf("%s: %s: %s", name, r.Verdict, r.Why)
		}
	}
}

// Rows of figures under no heading are nobody's process.
func TestFiguresWithoutAHeadingAreNoProcesses(t *testing.T) {
	const s = "0, NVIDIA L40S, 46068 MiB, 9123 MiB, 36346 MiB\n1, NVIDIA L40S, 46068 MiB, 1 MiB, 45468 MiB\n"
	if text, err := ReadText("x", strings.NewReader(s)); err == nil {
		t.Errorf("%+v", text.All()[0])
	}
}

// A part of a screen is what it is; columns without memory say how to get it.
func TestPartsOfScreens(t *testing.T) {
	for name, c := range map[string]struct{ text, verdict, has string }{
		"rows of processes": {"|    0   N/A  N/A      1111      C   python                           5000MiB |\n|    0   N/A  N/A      2222      C   python x.py                      4000MiB |\n", "parse_only", "(2) hold 9000 MiB"},
		"the second row":    {"|  0%   49C    P2    44W / 270W |   1626MiB /  8192MiB |      2%      Default |\n", "parse_only", "1626 of 8192 MiB"},
		"pmon without fb":   {"# gpu        pid  type    sm   mem   enc   dec   command\n# Idx          #   C/G     %     %     %     %   name\n    0       1832     C    98    45     0     0   python3\n", "undetermined_no_state", "no figure of memory"},
		"dmon without fb":   {"# gpu   pwr gtemp mtemp    sm   mem   enc   dec  mclk  pclk\n# Idx     W     C     C     %     %     %     %   MHz   MHz\n    0    43    35     -     0     0     0     0  2505  1075\n", "undetermined_no_state", "no figure of memory"},
		"dmon with fb":      {"# gpu     fb   bar1     sm    mem\n# Idx     MB     MB      %      %\n    0  71240     10     97     55\n", "parse_only", "71240 MiB are used"},
		"one column":        {"memory.used [MiB]\n12345 MiB\n", "parse_only", "12345 MiB are used"},
	} {
		text, err := ReadText(name, strings.NewReader(c.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r := text.All()[0]
		if r.Verdict != c.verdict || !strings.Contains(r.Why, c.has) {
			t.Errorf("%s: %s: %s", name, r.Verdict, r.Why)
		}
	}
}

// ways are the ways in which one text reaches us. None changes what it tells.
func ways(s string) map[string]string {
	each := func(f func(line string) string) string {
		list := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
		for i := range list {
			list[i] = f(list[i])
		}
		return strings.Join(list, "\n") + "\n"
	}
	return map[string]string{
		"as it is":          s,
		"Windows line ends": each(func(l string) string { return l + "\r" }),
		"quoted":            each(func(l string) string { return "> " + l }),
		"quoted twice":      each(func(l string) string { return "> > " + l }),
		"code in a list":    each(func(l string) string { return "    " + l }),
		"fixed blanks":      strings.ReplaceAll(s, " ", "\u00a0"),
		"entities":          strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;").Replace(s),
		"coloured":          each(func(l string) string { return "\x1b[32m" + l + "\x1b[0m" }),
		"in prose":          "I see this:\n\n" + s + "\n\nWhat now?\n",
	}
}
