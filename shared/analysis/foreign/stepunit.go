package foreign

import "tideline/shared/ingest/steplog"

// StepBytes is how many bytes one of a series' units is, told as the reading
// tells the unit; 1 for figures whose unit nothing tells.
func StepBytes(s *steplog.Series, l *steplog.Log) float64 {
	_, key := unitOf(s, l)
	switch key {
	case "gib":
		return 1 << 30
	case "mib":
		return 1 << 20
	case "kib":
		return 1 << 10
	case "gb":
		return 1e9
	case "mb":
		return 1e6
	case "kb":
		return 1e3
	default:
		return 1
	}
}
