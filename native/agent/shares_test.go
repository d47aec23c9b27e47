package agent

import (
	"net/http"
	"strings"
	"testing"

	"tideline/protocol/api"
	wire "tideline/protocol/share"
)

// TestSharesAreReadWithoutOurToken holds the guard to what it asks of whom;
// what the service then asks of owners is its own test's.
func TestSharesAreReadWithoutOurToken(t *testing.T) {
	reached := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	_, c := serve(t, Options{Share: reached, Hosts: []string{"box.lan"}})
	bare := func(r *http.Request) { r.Header.Del("Authorization") }
	cookie := func(r *http.Request) {
		bare(r)
		r.Header.Set("Cookie", "tideline-"+c.host[strings.LastIndexByte(c.host, ':')+1:]+"="+testToken)
	}
	with := func(name, value string, then func(*http.Request)) func(*http.Request) {
		return func(r *http.Request) {
			then(r)
			r.Header.Set(name, value)
		}
	}
	const one = wire.Root + "abcdefgh"
	for _, tt := range []struct {
		name, method, path string
		edit               func(*http.Request)
		want               int
	}{
		{"limits", "GET", wire.Root, bare, 418},
		{"a chunk", "GET", one + "/chunks/0", bare, 418},
		{"begin", "PUT", one, bare, 401},
		{"begin with a wrong token", "PUT", one, with("Authorization", "Bearer no", bare), 401},
		{"begin with a wrong upload key", "PUT", one, with(wire.HeaderUpload, "no", bare), 401},
		{"begin with our token", "PUT", one, nil, 418},
		{"begin with our token as upload key", "PUT", one, with(wire.HeaderUpload, testToken, bare), 418},
		{"begin from our page", "PUT", one, with("Origin", "http://"+c.host, cookie), 418},
		{"begin with the cookie alone", "PUT", one, cookie, 403},
		{"begin from a page of somebody else's", "PUT", one, with("Origin", "http://evil.example", cookie), 403},
		{"begin by a path in disguise", "PUT", "/share/v1/abc%2Fdef", bare, 401},
		{"begin by a path with a detour", "PUT", "/share//v1/abc", bare, 401},
		{"send a chunk, as the owner may", "PUT", one + "/chunks/0", bare, 418},
		{"finish, as the owner may", "POST", one + "/finish", bare, 418},
		{"delete, as the owner may", "DELETE", one, bare, 418},
		{"delete from a page of somebody else's", "DELETE", one, with("Origin", "http://evil.example", bare), 403},
		{"read by another name", "GET", one, func(r *http.Request) { bare(r); r.Host = "evil.example" }, 403},
		{"read by an allowed name", "GET", one, func(r *http.Request) { bare(r); r.Host = "box.lan" }, 418},
		{"no way round to the rest", "GET", "/share/../api/v1/info", bare, 418},
	} {
		status, _, body := c.do(tt.method, tt.path, "", tt.edit)
		if status != tt.want {
			t.Errorf("%s: %d %s, want %d", tt.name, status, body, tt.want)
		}
		if status >= 400 && status != 418 {
			if p := decodeJSON[wire.Failure](t, body).Error; p == nil || p.Code == "" || p.Do == "" {
				t.Errorf("%s: a client of shares cannot read %q", tt.name, body)
			}
		}
	}
	if status, _, _ := c.do("GET", api.PathInfo, "", bare); status != 401 {
		t.Errorf("the interface without a token: %d", status)
	}
}

func TestWithoutAShareServiceItsPathsNeedTheToken(t *testing.T) {
	_, c := serve(t, Options{})
	if status, _, _ := c.do("GET", wire.Root, "", func(r *http.Request) { r.Header.Del("Authorization") }); status != 401 {
		t.Errorf("%d", status)
	}
}

func TestAGuestGetsThePageAndNothingElse(t *testing.T) {
	says := func(s string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(s)) })
	}
	_, c := serve(t, Options{Page: says("page"), Guest: says("guest")})
	bare := func(r *http.Request) { r.Header.Del("Authorization") }
	for _, tt := range []struct {
		method, path string
		edit         func(*http.Request)
		status       int
		body         string
	}{
		{"GET", "/", bare, 200, "guest"},
		{"GET", "/assets/app.js", bare, 200, "guest"},
		{"GET", "/", nil, 200, "page"},
		{"GET", "/?token=wrong", bare, 401, ""},
		{"GET", "/", func(r *http.Request) { r.Header.Set("Authorization", "Bearer no") }, 401, ""},
		{"GET", "/", func(r *http.Request) { bare(r); r.Host = "evil.example" }, 403, ""},
		{"POST", "/", bare, 401, ""},
		{"GET", api.PathInfo, bare, 401, ""},
		{"GET", api.PathRuns, bare, 401, ""},
		{"GET", "/assets/../api/v1/info", bare, 200, "guest"}, // which has no interface
	} {
		status, _, body := c.do(tt.method, tt.path, "", tt.edit)
		if status != tt.status || tt.body != "" && body != tt.body {
			t.Errorf("%s %s: %d %q, want %d %q", tt.method, tt.path, status, body, tt.status, tt.body)
		}
	}
}
