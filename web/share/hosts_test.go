//go:build !js

package share_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"strconv"
	"testing"

	wire "tideline/protocol/share"
	"tideline/web/share"
	"tideline/web/share/workerd"
)

const testMaxSize = 64 << 20

func TestDiskConforms(t *testing.T) {
	disk, err := share.OpenDisk(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	s := share.New(share.Options{Store: disk, Limits: wire.Limits{MaxSize: testMaxSize}, Log: func(line string) { t.Error(line) }})
	server := httptest.NewServer(s)
	defer server.Close()
	conform(t, server.URL)
}

func TestWorkerConforms(t *testing.T) {
	if testing.Short() {
		t.Skip("building the Worker takes longer than a short test may")
	}
	w := startWorker(t, map[string]string{"MAX_SIZE": strconv.Itoa(testMaxSize)})
	conform(t, w.URL)
	if outcome, err := w.Sweep(); err != nil || outcome != "ok" {
		t.Errorf("the cron handler ended with %q, %v", outcome, err)
	}
}

// startWorker runs the Worker in workerd; only a machine without Node may
// leave it out, and never in CI.
func startWorker(t *testing.T, vars map[string]string) *workerd.Server {
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
	w, err := workerd.Start(ctx, workerd.Options{Bundle: bundle, Persist: t.TempDir(), Vars: vars})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if log := w.Log(); log != "" {
			t.Logf("workerd printed:\n%s", log)
		}
	})
	return w
}
