package cause

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/golden"
)

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

func TestDecide(t *testing.T) {
	pool := Inputs{Limit: Of(1000 * mib), Reserved: Of(1000 * mib), InUse: Of(700 * mib)}
	with := func(in Inputs, f func(*Inputs)) Inputs { f(&in); return in }
	for _, c := range []struct {
		name string
		in   Inputs
		want event.OOMCause
		kind Kind
	}{
		{"nothing known", Inputs{}, event.OOMUndetermined, NoKind},
		{"fewer free bytes than asked", with(pool, func(i *Inputs) { i.Request = Of(301 * mib) }), event.OOMFull, NoKind},
		{"free bytes suffice to the byte", with(pool, func(i *Inputs) { i.Request = Of(300 * mib) }), event.OOMFragmented, Holes},
		{"largest run suffices", with(pool, func(i *Inputs) { i.Request = Of(300 * mib); i.LargestFree = Of(300 * mib) }), event.OOMFragmented, SplitRule},
		{"more than the limit", with(pool, func(i *Inputs) { i.Request = Of(1001 * mib) }), event.OOMLimitTooLow, NoKind},
		{"more than the device", with(pool, func(i *Inputs) { i.Request = Of(9 * gib); i.DeviceTotal = Of(8 * gib) }), event.OOMRequestExceedsDevice, NoKind},
		{"more than the device without its overhead", with(pool, func(i *Inputs) {
			i.Request, i.DeviceTotal, i.Outside = Of(8*gib), Of(8*gib), Of(1)
		}), event.OOMRequestExceedsDevice, NoKind},
		{"negative size", with(pool, func(i *Inputs) { i.Request = Of(-4) }), event.OOMNotMemory, NoKind},
		{"a pebibyte", with(pool, func(i *Inputs) { i.Request = Of(1 << 50) }), event.OOMNotMemory, NoKind},
		{"a thousand devices", with(pool, func(i *Inputs) { i.Request, i.DeviceTotal = Of(1001*gib), Of(gib) }), event.OOMNotMemory, NoKind},
		{"a thousand devices to the byte", with(pool, func(i *Inputs) { i.Request, i.DeviceTotal = Of(1000*gib), Of(gib) }), event.OOMRequestExceedsDevice, NoKind},
		{"a thousand devices and a byte", with(pool, func(i *Inputs) { i.Request, i.DeviceTotal = Of(1000*gib+1), Of(gib) }), event.OOMNotMemory, NoKind},
		{"a device whose thousandfold is no number", with(pool, func(i *Inputs) { i.Request, i.DeviceTotal = Of(1<<50-1), Of(math.MaxInt64) }), event.OOMLimitTooLow, NoKind},
		{"device had room beyond the limit", with(pool, func(i *Inputs) {
			i.Request, i.DeviceTotal, i.DriverFree = Of(400*mib), Of(8*gib), Of(6*gib)
		}), event.OOMLimitTooLow, NoKind},
		{"tiny limit, hardly used, request unknown", Inputs{Limit: Of(52 * mib), InUse: Of(2048)}, event.OOMLimitTooLow, NoKind},
		{"tiny limit, hardly used, and the device has no more", Inputs{
			DeviceTotal: Of(256 * mib), Limit: Of(232 * mib), Reserved: Of(232 * mib), InUse: Of(4 * mib), Request: Of(230 * mib),
			DriverFree: Of(8 * mib), Others: Of(0), Outside: Of(24 * mib),
		}, event.OOMFull, NoKind},
		{"what the default limit leaves is not to be had", Inputs{
			DeviceTotal: Of(256 * mib), Limit: Of(232 * mib), Reserved: Of(232 * mib), InUse: Of(230 * mib), Request: Of(9 * mib),
			DriverFree: Of(8 * mib), Others: Of(0), Outside: Of(24 * mib),
		}, event.OOMFull, NoKind},
		{"a configured limit leaves more", Inputs{
			DeviceTotal: Of(256 * mib), Limit: Of(200 * mib), Reserved: Of(200 * mib), InUse: Of(198 * mib), Request: Of(9 * mib),
			DriverFree: Of(40 * mib), Others: Of(0), Outside: Of(16 * mib),
		}, event.OOMLimitTooLow, NoKind},
		{"tiny limit, well used", Inputs{Limit: Of(272 * mib), InUse: Of(199 * mib), Request: Of(74 * mib)}, event.OOMFull, NoKind},
		{"waiting suffices", with(pool, func(i *Inputs) {
			i.Request, i.Pending, i.LargestFree = Of(200*mib), Of(150*mib), Of(60*mib)
		}), event.OOMRetryable, NoKind},
		{"growth allowed, driver must have refused", Inputs{Limit: Of(2 * gib), Reserved: Of(gib), InUse: Of(gib), Request: Of(512 * mib)}, event.OOMOtherProcess, NoKind},
		{"growth would reach the limit exactly", Inputs{Limit: Of(2 * gib), Reserved: Of(gib), InUse: Of(gib), Request: Of(gib)}, event.OOMOtherProcess, NoKind},
		{"growth would pass the limit by a byte", Inputs{Limit: Of(2 * gib), Reserved: Of(gib + 1), InUse: Of(gib + 1), Request: Of(gib)}, event.OOMFull, NoKind},
		{"growth allowed, others hold the card", Inputs{
			DeviceTotal: Of(16 * gib), Limit: Of(14 * gib), Reserved: Of(gib), InUse: Of(gib), Request: Of(512 * mib),
			DriverFree: Of(100 * mib),
		}, event.OOMOtherProcess, NoKind},
		{"growth allowed, card truly full of ours", Inputs{
			DeviceTotal: Of(16 * gib), Limit: Of(16 * gib), Reserved: Of(15 * gib), InUse: Of(15 * gib), Request: Of(512 * mib),
			DriverFree: Of(100 * mib),
		}, event.OOMFull, NoKind},
		{"pinned pool full", Inputs{HostPinned: true, Limit: Of(64 * gib), InUse: Of(64 * gib), Request: Of(4 * gib)}, event.OOMHostPinnedLimit, NoKind},
		{"pinned pool fragmented stays fragmented", Inputs{HostPinned: true, Limit: Of(64 * gib), InUse: Of(4 * gib), Request: Of(4 * gib)}, event.OOMFragmented, Holes},
	} {
		if got := Decide(c.in); got.Cause != c.want || got.Kind != c.kind {
			t.Errorf("%s: %v/%v, want %v/%v", c.name, got.Cause, got.Kind, c.want, c.kind)
		}
	}
}

func TestDecideSaysWhatIsMissing(t *testing.T) {
	v := Decide(Inputs{Limit: Of(285474816), InUse: Of(208404480), Request: Of(77760000), LargestFree: Of(69648384)})
	if v.Missing != Of(689664) || v.AfterCompaction != Of(77070336) || v.LargestRun != Of(69648384) {
		t.Errorf("%+v", v)
	}
}

func TestDecideAgreesWithRecordedFailures(t *testing.T) {
	f, err := os.Open(filepath.Join(golden.Dir(t, "pytorch-allocator"), "oom-causes.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) < 20 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	col := map[string]int{}
	for i, name := range rows[0] {
		col[name] = i
	}
	for _, row := range rows[1:] {
		num := func(name string) Amount {
			n, err := strconv.ParseInt(row[col[name]], 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return Of(n)
		}
		v := Decide(Inputs{
			Request: num("request"), Rounded: num("rounded"), Grow: num("segment_bytes"),
			DeviceTotal: num("capacity"), Limit: num("limit"), Reserved: num("reserved"), InUse: num("allocated"),
			DriverFree: num("driver_room"), LargestFree: num("largest_idle_same_stream"),
			OtherStream: num("idle_other_streams"), OtherPool: num("idle_other_pool"),
		})
		if v.Cause.String() != row[col["cause"]] || v.Kind.String() != row[col["kind"]] {
			t.Errorf("%s step %s: %v/%v, want %s/%s", row[0], row[1], v.Cause, v.Kind, row[col["cause"]], row[col["kind"]])
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	b.ReportAllocs()
	in := Inputs{Limit: Of(gib), Reserved: Of(gib), InUse: Of(gib / 2), Request: Of(gib / 4), LargestFree: Of(mib)}
	for b.Loop() {
		if Decide(in).Cause != event.OOMFragmented {
			b.Fatal("wrong")
		}
	}
}
