// Command worker is the share service as a Cloudflare Worker: package share's
// handler over R2 and KV. wrangler.jsonc names the bindings; the static page
// that stands beside it is served by the platform without waking this program.
//
// The platform starts an instance of it for each request.
package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/syumai/workers"
	"github.com/syumai/workers/cloudflare"
	"github.com/syumai/workers/cloudflare/cron"

	wire "tideline/protocol/share"
	"tideline/web/share"
)

// sweepEach is how many shares one cleaning looks at: each takes a few of the
// thousand calls that an invocation has.
const sweepEach = 100

func main() {
	s, err := service()
	if err != nil {
		workers.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}))
		return
	}
	cron.ScheduleTaskNonBlock(func(ctx context.Context) error {
		_, err := s.Sweep(ctx, sweepEach)
		return err
	})
	workers.Serve(s)
}

func service() (*share.Service, error) {
	store, err := share.NewR2("SHARES")
	if err != nil {
		return nil, err
	}
	index, err := share.NewKV("INDEX")
	if err != nil {
		return nil, err
	}
	limits, err := limits()
	if err != nil {
		return nil, err
	}
	return share.New(share.Options{
		Store: store, Index: index, Limits: limits, UploadKey: variable("UPLOAD_KEY"),
		Allow: share.PlatformLimit("RATE", "RATE_CREATE"),
		Log:   func(line string) { fmt.Println(line) }, // the platform's log
	}), nil
}

// limits are what wrangler.jsonc sets under vars.
func limits() (wire.Limits, error) {
	var l wire.Limits
	for name, field := range map[string]*int64{"MAX_SIZE": &l.MaxSize, "MAX_EXPIRY": &l.MaxExpiry, "DEFAULT_EXPIRY": &l.DefaultExpiry, "UPLOAD_TIME": &l.UploadTime} {
		text := variable(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= 0 || n > 1<<40 {
			return l, fmt.Errorf("the variable %s in wrangler.jsonc is %q: it must be a number above 0", name, text)
		}
		*field = n
	}
	return l, nil
}

// variable is empty for one that is not set.
func variable(name string) string {
	v := cloudflare.GetBinding(name)
	if v.IsUndefined() || v.IsNull() {
		return ""
	}
	return v.String()
}
