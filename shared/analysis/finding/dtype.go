package finding

import (
	"tideline/protocol/event"
	"tideline/shared/store"
)

// DTypes finds a run in float64 whose peak would be half in float32. The
// precision is what the run's settings say: the events tell bytes, not types.
func DTypes(tl *store.Timeline) (out []Finding) {
	field, ok := doublePrecision(tl)
	if !ok {
		return nil
	}
	for _, p := range acceleratorPools(tl) {
		pk := At(tl, p)
		wide := wideBytes(pk.ByCategory)
		if wide == 0 {
			continue
		}
		f := Finding{
			ID: WastefulDType, Title: "float64 takes twice the memory of float32", Severity: Warning,
			Device: short(tl, p.Device), Culprit: "float64",
		}
		share := permyri(wide, pk.InUse)
		f.put("peak_bytes", pk.InUse, Bytes)
		f.put("float64_bytes", wide, Bytes)
		f.put("float64_percent", share, BasisPoints)
		f.put("saved_in_float32_bytes", wide/2, Bytes)
		f.say(size(wide) + ", " + percent(share) + " of the peak of " + p.Name + ", hold numbers of 8 bytes. In float32 half of that, " + size(wide/2) +
			", would do; training seldom needs more digits.")
		if failedIn(tl, p) {
			f.Severity = Serious
		}
		f.try(field, "float32")
		if field == "train.precision" {
			f.try(field, "mixed_float16")
		}
		out = append(out, f)
	}
	return out
}

// doublePrecision says whether the run computes in float64, and by which
// setting.
func doublePrecision(tl *store.Timeline) (field string, ok bool) {
	s := tl.Settings()
	for _, field := range []string{"train.precision", "precision"} {
		if s.Text(field) == "float64" {
			return field, true
		}
	}
	return "", false
}

// wideBytes sums the categories that are made of the model's numbers.
func wideBytes(c store.Categories) int64 {
	return c[event.Parameter] + c[event.OptimizerState] + c[event.Activation] + c[event.Gradient] + c[event.ActivationGradient]
}
