package device

import "testing"

func TestLimitFollowsTheReserveRule(t *testing.T) {
	for _, c := range []struct{ freeMiB, major, want int64 }{
		{15000, 7, 13950},
		{15000, 8, 13464},
		{15000, 6, 14500},
		{15000, 9, 13200},
		{1500, 7, 1275},
		{1500, 9, 1275},
		{200, 7, 200}, // the reserve is not to be had
		{2048, 7, 998},
	} {
		free := c.freeMiB * mib
		if got := DefaultLimit(free, Reserve(free, int(c.major))); got != c.want*mib {
			t.Errorf("free %d MiB, cc %d: limit %d MiB, want %d", c.freeMiB, c.major, got/mib, c.want)
		}
	}
}

func TestOldReserveRule(t *testing.T) {
	for free, want := range map[int64]int64{15000: 14250, 4000: 3700, 1500: 1275} {
		if got := DefaultLimit(free*mib, ReserveOld(free*mib)); got != want*mib {
			t.Errorf("free %d MiB: limit %d MiB, want %d", free, got/mib, want)
		}
	}
}

// The limits that TensorFlow was seen to log on these cards, from
// public logs; a preset's own must fall near them.
func TestPresetLimitsAreNearWhatWasLogged(t *testing.T) {
	for name, span := range map[string][2]int64{
		"t4-16g": {13627, 13942}, "p100-16g": {15397, 15531}, "v100-16g": {14518, 14858}, "a100-40g": {38068, 38504},
		"v100-32g": {30574, 31212}, "h100-80g": {78400, 78763}, "h200-141g": {138533, 140655},
		"a100-80g": {78945, 79197}, "l4-24g": {20549, 20967}, "a100-mig-1g.5gb": {3026, 3026},
	} {
		p, ok := Find(name)
		if !ok {
			t.Errorf("no preset %s", name)
			continue
		}
		free := p.Total.Value - p.Context.Value
		if got := DefaultLimit(free, Reserve(free, p.Major)) / mib; got < span[0] || got > span[1] {
			t.Errorf("%s: limit %d MiB, want %d to %d", name, got, span[0], span[1])
		}
	}
}

// What CUDA reports of these cards, in hundredths of a GiB, as TensorFlow logs it
// or as the parts are known; the driver's context by generation; and whether the
// default limit follows.
func TestPresetsAreTheCardsOfTheTable(t *testing.T) {
	for name, c := range map[string]struct{ gib, major, context int64 }{
		"p100-16g": {1590, 6, 250}, "v100-16g": {1578, 7, 250}, "v100-32g": {3175, 7, 250}, "t4-16g": {1475, 7, 250},
		"rtx2080ti": {1076, 7, 250}, "rtx3090": {2370, 8, 500}, "rtx4090": {2365, 8, 500}, "a10-24g": {2250, 8, 500}, "a10g": {2250, 8, 500},
		"l4-24g": {2220, 8, 500}, "a100-40g": {3959, 8, 500}, "a100-80g": {7920, 8, 500}, "h100-80g": {7910, 9, 700}, "h200-141g": {13980, 9, 700},
		"b200-180g": {17836, 10, 700}, "rtx3060-12g": {1176, 8, 500},
	} {
		p, ok := Find(name)
		if !ok {
			t.Errorf("no preset %s", name)
			continue
		}
		got := (p.Total.Value*100 + 1<<29) >> 30
		if got < c.gib-1 || got > c.gib+1 || int64(p.Major) != c.major || p.Context.Value != c.context*mib {
			t.Errorf("%s: %d hundredths of a GiB, capability %d, context %d MiB; want %+v", name, got, p.Major, p.Context.Value/mib, c)
		}
	}
}

func TestEveryPresetHasASourceForEveryFigure(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Presets() {
		if seen[p.Name] {
			t.Errorf("two presets named %s", p.Name)
		}
		seen[p.Name] = true
		invented := p.Total.From == Invented
		for _, f := range []Figure{p.Total, p.Context, p.FLOPS, p.MemBandwidth, p.H2D, p.D2H} {
			if f.Value <= 0 {
				t.Errorf("%s: a figure is %d", p.Name, f.Value)
			}
			if (f.From == Invented) != invented {
				t.Errorf("%s: mixes invented and real figures", p.Name)
			}
		}
	}
}

func TestTwoRunsShareACard(t *testing.T) {
	m := NewMachine(nil)
	p, _ := Find("lab-256m")
	a, err := m.Card("x", p)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := m.Card("x", p)
	if a != b {
		t.Fatal("one name, two cards")
	}
	other, _ := Find("lab-1g")
	if _, err := m.Card("x", other); err == nil {
		t.Error("a card changed its kind")
	}
	s1, _ := a.Space(0x1000)
	s2, _ := b.Space(0x1000)
	if _, _, ok := s1.Take(256, 200*mib); !ok {
		t.Fatal("the first region was refused")
	}
	if _, _, ok := s2.Take(256, 100*mib); ok {
		t.Error("two runs got more than the card has")
	}
	if got := a.Free(); got != 56*mib {
		t.Errorf("%d bytes free, want 56 MiB", got)
	}
	s1.Give(0x1000, 200*mib)
	if got := a.Free(); got != 256*mib {
		t.Errorf("%d bytes free after giving back", got)
	}
}

func TestTPUsStandApart(t *testing.T) {
	for _, p := range TPUs() {
		if _, ok := Find(p.Name); ok || p.Kind() != "TPU" || p.Reserve.Value <= 0 || p.Total.Value <= p.Reserve.Value {
			t.Errorf("%+v", p)
		}
	}
}
