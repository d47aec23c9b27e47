package sharing

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"tideline/web/share/workerd"
)

// TestSixtyMegabytesThroughTheWorker is the test of the breaking connection
// with the service in the real workerd.
func TestSixtyMegabytesThroughTheWorker(t *testing.T) {
	if testing.Short() {
		t.Skip("building the Worker takes longer than a short test may")
	}
	w := startWorker(t)
	p := newPlace(t, nil)
	path, content := p.file("big", 60<<20)
	target := strings.TrimPrefix(w.URL, "http://")
	up := newCutter(t, target, 10<<20+12345, 37<<20)
	start := time.Now()
	r, err := p.client().Share(t.Context(), path, up.url(), 0)
	if err != nil {
		t.Fatal(err)
	}
	sent := time.Since(start)
	down := newCutter(t, target, 8<<20+999, 41<<20)
	start = time.Now()
	got, err := p.open(strings.Replace(r.Link, up.url(), down.url(), 1))
	if err != nil || up.broken != 2 || down.broken != 2 || !bytes.Equal(got, content) {
		t.Fatalf("broken %d and %d times, equal: %v, %v", up.broken, down.broken, bytes.Equal(got, content), err)
	}
	t.Logf("up in %v, down in %v", sent.Round(time.Millisecond), time.Since(start).Round(time.Millisecond))
}

func startWorker(t *testing.T) *workerd.Server {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // Close ends it, after the last request
	err := workerd.Install(ctx)
	if errors.Is(err, workerd.ErrNoNode) && os.Getenv("CI") == "" {
		t.Skipf("the Worker is not tested: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	bundle := t.TempDir()
	if err := workerd.Bundle(ctx, bundle); err != nil {
		t.Fatal(err)
	}
	w, err := workerd.Start(ctx, workerd.Options{Bundle: bundle, Persist: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}
