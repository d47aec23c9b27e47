package agent

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// policy is sent with everything; the page may send a stricter one.
const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data: blob:; " +
	"connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

const answerTime = 30 * time.Second // for anything that is not a download or a stream

// guard lets a request through only when it names us, carries the token and,
// where it matters, comes from our own page.
func (a *Agent) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer") // the first URL holds the token
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // not every test server has deadlines

		if a.toShares(r) {
			a.guardShares(w, r)
			return
		}
		if !a.hostIsOurs(r) {
			refuse(w, r, http.StatusForbidden, "Not this agent's name", notOurHost(r))
			return
		}
		how := a.credential(r)
		if how == byNothing && a.isGuest(r) {
			a.opts.Guest.ServeHTTP(w, r)
			return
		}
		if how == byNothing {
			h.Set("WWW-Authenticate", "Bearer")
			title, message := noToken(r)
			refuse(w, r, http.StatusUnauthorized, title, message)
			return
		}
		if (changes(r) || upgrades(r)) && !sameOrigin(r, how) {
			fail(w, http.StatusForbidden, foreign(r))
			return
		}
		if how == byQuery && r.Method == http.MethodGet && r.URL.Path == "/" {
			a.welcome(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func notOurHost(r *http.Request) string {
	return "the request asks for the host " + r.Host + ", which is not this agent: use its address, or start it with --host " + hostName(r.Host)
}

func foreign(r *http.Request) string {
	return "the request comes from another origin (" + r.Header.Get("Origin") + "): only the agent's own page may do this"
}

// isGuest: who brings no token at all may load the page, which is no secret,
// so that a link opens in any browser that reaches us. It offers no runs.
func (a *Agent) isGuest(r *http.Request) bool {
	bare := r.Header.Get("Authorization") == "" && !r.URL.Query().Has("token")
	return a.opts.Guest != nil && bare && r.Method == http.MethodGet && !upgrades(r) &&
		(r.URL.Path == "/" || r.URL.Path == "/favicon.ico" || strings.HasPrefix(r.URL.Path, "/assets/"))
}

// welcome turns the token of the first visit into a cookie, so that it stays
// out of the address bar, the history and what people copy.
func (a *Agent) welcome(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: a.opts.Token, Path: "/",
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	q := r.URL.Query()
	q.Del("token")
	to := url.URL{Path: "/", RawQuery: q.Encode()}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, to.String(), http.StatusSeeOther)
}

// cookieName has the port in it: cookies are shared by all ports of a host,
// and two agents must not log each other out.
func cookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "80"
	}
	return "tideline-" + port
}

// credential is the way in which a request carried the right token.
type credential uint8

const (
	byNothing credential = iota
	byBearer
	byQuery
	byCookie
)

func (a *Agent) credential(r *http.Request) credential {
	if t, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && a.isToken(t) {
		return byBearer
	}
	if a.isToken(r.URL.Query().Get("token")) {
		return byQuery
	}
	if c, err := r.Cookie(cookieName(r)); err == nil && a.isToken(c.Value) {
		return byCookie
	}
	return byNothing
}

func (a *Agent) isToken(t string) bool {
	return subtle.ConstantTimeCompare([]byte(t), []byte(a.opts.Token)) == 1
}

// hostIsOurs refuses names that somebody else's DNS points at us (DNS
// rebinding). Loopback names are fine with any port: the port may be forwarded.
func (a *Agent) hostIsOurs(r *http.Request) bool {
	name := hostName(r.Host)
	if strings.EqualFold(name, "localhost") {
		return true
	}
	if ip := net.ParseIP(name); ip != nil {
		if ip.IsLoopback() {
			return true
		}
		// An address is ours when the connection came in by it.
		local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		if local != nil && ip.Equal(local.IP) {
			return true
		}
	}
	return slices.ContainsFunc(a.opts.Hosts, func(h string) bool { return strings.EqualFold(h, name) })
}

func hostName(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return strings.Trim(host, "[]")
}

func changes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead
}

func upgrades(r *http.Request) bool {
	return r.Header.Get("Upgrade") != ""
}

// sameOrigin is about what a page of somebody else's could make a browser do.
// Browsers send Origin with everything that changes something and with every
// WebSocket; tools need not, but a cookie is never a tool's.
func sameOrigin(r *http.Request, how credential) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return how != byCookie
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && strings.EqualFold(u.Host, r.Host)
}
