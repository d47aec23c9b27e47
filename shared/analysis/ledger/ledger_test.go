package ledger

import (
	"math/rand/v2"
	"testing"

	"tideline/shared/analysis/cause"
)

// TestTheRowsSumToTheDevice: whatever is known, and however little the figures
// fit together.
func TestTheRowsSumToTheDevice(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	made := 0
	for range 5000 {
		some := func() cause.Amount {
			if r.IntN(3) == 0 {
				return cause.Amount{}
			}
			return cause.Of(r.Int64N(1000))
		}
		in := Inputs{
			Total: some(), Others: some(), Outside: some(), Reserved: some(), InUse: some(), Requested: some(),
			Pending: some(), Stranded: some(), Limit: some(), DriverFree: some(),
		}
		l := Of(in)
		if l == nil {
			if in.Total.N > 0 && (in.Reserved.Known || in.InUse.Known) {
				t.Fatalf("no ledger of %+v", in)
			}
			continue
		}
		made++
		var sum int64
		for x := range Row(NumRows) {
			sum += l.Row(x).N
		}
		if sum != in.Total.N || !l.Row(Unaccounted).Known {
			t.Fatalf("%+v: %d of %d", in, sum, in.Total.N)
		}
	}
	if made < 1000 {
		t.Errorf("%d ledgers", made)
	}
}

// TestWhatIsNotToldIsNoZero: what the input does not tell apart is unknown, and
// within the row that it cannot be told from.
func TestWhatIsNotToldIsNoZero(t *testing.T) {
	l := Of(Inputs{Total: cause.Of(1000), Reserved: cause.Of(600), InUse: cause.Of(400), DriverFree: cause.Of(150)})
	for row, want := range map[Row]cause.Amount{
		Others: {}, Outside: {}, Waste: {}, Pending: {}, Stranded: {}, Beyond: {},
		Live: cause.Of(400), Idle: cause.Of(200), Never: cause.Of(150), Unaccounted: cause.Of(250),
	} {
		if got := l.Row(row); got != want {
			t.Errorf("%s: %+v, want %+v", row.Key(), got, want)
		}
	}
}

// TestALimitBeyondTheCardPromisesNothing: what the limit would allow and the
// driver does not have is in no row.
func TestALimitBeyondTheCardPromisesNothing(t *testing.T) {
	l := Of(Inputs{
		Total: cause.Of(1000), Others: cause.Of(500), Outside: cause.Of(100), Reserved: cause.Of(300), InUse: cause.Of(300),
		Limit: cause.Of(900), DriverFree: cause.Of(100),
	})
	if a, b, c := l.Row(Never), l.Row(Beyond), l.Row(Unaccounted); a.N != 100 || b.N != 0 || c.N != 0 {
		t.Errorf("never taken %+v, outside the limit %+v, unaccounted %+v", a, b, c)
	}
	l = Of(Inputs{
		Total: cause.Of(1000), Others: cause.Of(100), Outside: cause.Of(100), Reserved: cause.Of(300), InUse: cause.Of(300),
		Limit: cause.Of(350), DriverFree: cause.Of(500),
	})
	if a, b := l.Row(Never), l.Row(Beyond); a.N != 50 || b.N != 450 {
		t.Errorf("never taken %+v, outside the limit %+v", a, b)
	}
}

func TestRoundedFiguresHideTheirRounding(t *testing.T) {
	for rest, want := range map[int64]bool{5: false, -5: false, 20: true, -20: true} {
		l := Of(Inputs{Total: cause.Of(10_000), Reserved: cause.Of(10_000 - rest), InUse: cause.Of(10_000 - rest)})
		l.Rounded = true
		lines := l.Lines()
		if got := lines[len(lines)-1].Name == Unaccounted.String(); got != want {
			t.Errorf("%d of 10000 not accounted for: shown %v, want %v", rest, got, want)
		}
	}
}
