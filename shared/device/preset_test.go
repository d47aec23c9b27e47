package device

import (
	"strings"
	"testing"
)

// TestNamesTellTPUsApart: package api takes a device for a TPU by its preset's
// name alone.
func TestNamesTellTPUsApart(t *testing.T) {
	for _, p := range TPUs() {
		if !strings.HasPrefix(p.Name, "tpu-") || p.Type != "TPU" {
			t.Errorf("%s is a %s", p.Name, p.Type)
		}
	}
	for _, p := range Presets() {
		if strings.HasPrefix(p.Name, "tpu-") || p.Type == "TPU" {
			t.Errorf("%s is a %s", p.Name, p.Type)
		}
	}
}
