package share

import (
	"net/http"
	"time"

	"github.com/syumai/workers/cloudflare"
)

// retryAfter is what a client is told to wait: the platform does not say, and
// its shortest period is this.
const retryAfter = 10 * time.Second

// PlatformLimit is an Options.Allow that asks the platform's rate limiting
// bindings of these names; one that is not bound limits nothing.
func PlatformLimit(requests, creates string) func(*http.Request, bool) time.Duration {
	return func(r *http.Request, create bool) time.Duration {
		name := requests
		if create {
			name = creates
		}
		binding := cloudflare.GetBinding(name)
		if absent(binding) {
			return 0
		}
		answer, err := await(binding.Call("limit", object(map[string]any{"key": r.Header.Get("CF-Connecting-IP")})))
		if err == nil && !answer.Get("success").Bool() {
			return retryAfter
		}
		return 0 // a limiter that fails lets people in
	}
}
