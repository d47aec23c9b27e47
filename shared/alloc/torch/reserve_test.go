package torch_test

import (
	"strings"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
)

// With throw_on_cudamalloc_oom a request is refused where what is reserved and a
// new segment pass the device or the part of it that the settings name; what is
// idle counts, and stays. The figures are those of PyTorch 2.15 over a device of
// 200 MiB that a test made up.
func TestWhatIsIdleIsNotGivenBackForAPreemptedRequest(t *testing.T) {
	const preempt = "throw_on_cudamalloc_oom:True"
	for _, c := range []struct {
		name, settings string
		fraction       float64
		live, idle     int64
		ask            int64
		serves         bool
		preempted      bool
		reserved       int64
	}{
		{"idle memory would do", preempt, 0, 0, 100, 150 * mib, false, true, 100 * mib},
		{"and does without the setting", "", 0, 0, 100, 150 * mib, true, false, 150 * mib},
		{"live and idle", preempt, 0, 100, 60, 90 * mib, false, true, 160 * mib},
		{"the device to the byte", preempt, 0, 100, 0, 100 * mib, true, false, 200 * mib},
		{"a byte more", preempt, 0, 100, 0, 100*mib + 1, false, true, 100 * mib},
		{"the segment counts, not the request", preempt, 0, 190, 0, 3 * mib / 2, false, true, 190 * mib},
		{"a limit that holds is asked first", preempt, .5, 0, 60, 60 * mib, true, false, 60 * mib},
		{"and so is that of the settings", preempt + ",per_process_memory_fraction:0.5", 0, 0, 60, 60 * mib, true, false, 60 * mib},
		{"above a part that is higher", preempt + ",per_process_memory_fraction:0.5", .9, 0, 60, 60 * mib, false, true, 60 * mib},
		{"within a part that is higher", preempt + ",per_process_memory_fraction:0.5", .9, 0, 40, 60 * mib, true, false, 100 * mib},
	} {
		a := withSettings(t, alloc.NewCard(200*mib), c.settings, torch.Options{Fraction: c.fraction})
		if c.live > 0 {
			take(t, a, c.live*mib)
		}
		if c.idle > 0 {
			give(t, a, take(t, a, c.idle*mib))
		}
		// Another stream, so that nothing idle fits.
		_, ok := a.AllocateOn(torch.Request{Bytes: c.ask, Stream: 64})
		if ok != c.serves {
			t.Errorf("%s: served %v", c.name, ok)
			continue
		}
		s := a.Statistics()
		if got := s.ReservedBytes.All.Current; got != c.reserved {
			t.Errorf("%s: %d reserved, want %d", c.name, got, c.reserved)
		}
		if ok {
			continue
		}
		f := a.Failure()
		if f.Preempted != c.preempted || c.preempted && (s.NumOOMs != 0 || s.NumAllocRetries != 0 || !strings.Contains(f.Error(), "preemptively rejected because it would exceed per_process_memory_fraction limit. Requested size: ")) {
			t.Errorf("%s: preempted %v, %d failures, %d retries: %v", c.name, f.Preempted, s.NumOOMs, s.NumAllocRetries, f)
		}
		if err := a.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A segment that sets fewer addresses aside serves no request above them, with
// memory for it or not, and a second segment begins where the first is full.
func TestFewerAddressesAside(t *testing.T) {
	card := alloc.NewCard(1 << 30)
	a := withSettings(t, card, "expandable_segments:True,expandable_segments_reserve:0.25", torch.Options{})
	if _, ok := a.AllocateOn(torch.Request{Bytes: 300 * mib}); ok {
		t.Error("300 MiB of a segment with addresses for 256")
	}
	if f := a.Failure(); f == nil || f.Preempted || a.Statistics().NumOOMs != 1 {
		t.Errorf("%+v", f)
	}
	first, second := take(t, a, 200*mib), take(t, a, 200*mib)
	if d := int64(second.Address) - int64(first.Address); d > -256*mib && d < 256*mib {
		t.Errorf("two of 200 MiB lie %d bytes apart, in one segment of 256 MiB", d)
	}
	for _, s := range []string{"0.25", "0.25G", "2", "1e20G"} {
		b := withSettings(t, alloc.NewCard(1<<30), "expandable_segments:True,expandable_segments_reserve:"+s, torch.Options{})
		_, ok := b.AllocateOn(torch.Request{Bytes: 300 * mib})
		if want := !strings.HasPrefix(s, "0.25"); ok != want {
			t.Errorf("300 MiB of 1 GiB with %s aside: %v, want %v", s, ok, want)
		}
	}
}

func TestTheNewestSettingsAreWrittenAsTheyAreRead(t *testing.T) {
	const text = "throw_on_cudamalloc_oom:True,expandable_segments_reserve:40G,expandable_segments_reserve_by_class:[a:0.25,b:8G]," +
		"pinned_free_catch_all:True,pinned_max_round_threshold_mb:0,pinned_max_cached_size_mb:64"
	s, err := torch.ParseSettings(text)
	if err != nil || s.String() != text {
		t.Errorf("%q, %v", s.String(), err)
	}
}
