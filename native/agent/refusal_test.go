package agent

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestPeopleAreRefusedOnAPageAndProgramsInJSON(t *testing.T) {
	a, err := New(Options{Data: t.TempDir(), Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	const browser = "text/html,application/xhtml+xml,*/*;q=0.8"
	for _, c := range []struct {
		name, path, host, accept string
		status                   int
		kind, says               string
	}{
		{"no token, a person", "/", "localhost", browser, 401, "text/html", "<h1>This agent asks for its token</h1>"},
		{"another token, a person", "/?token=old", "localhost", browser, 401, "text/html", "not this agent&#39;s"},
		{"an inner address, a person", "/api/v1/runs", "localhost", browser, 401, "text/html", "tideline printed"},
		{"another host, a person", "/", "evil.example<script>", browser, 403, "text/html", "evil.example&lt;script&gt;"},
		{"no token, a program", "/api/v1/runs", "localhost", "*/*", 401, "application/json", "Authorization: Bearer TOKEN"},
		{"another token, a program", "/?token=old", "localhost", "application/json", 401, "application/json", "no valid token"},
	} {
		r := httptest.NewRequest(http.MethodGet, c.path, nil)
		r.Host = c.host
		r.Header.Set("Accept", c.accept)
		w := httptest.NewRecorder()
		a.Handler().ServeHTTP(w, r)
		res := w.Result()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		body := string(b)
		if res.StatusCode != c.status || !strings.HasPrefix(res.Header.Get("Content-Type"), c.kind) || !strings.Contains(body, c.says) {
			t.Errorf("%s: %d %s\n%s", c.name, res.StatusCode, res.Header.Get("Content-Type"), body)
		}
		if strings.Contains(body, testToken) || strings.Contains(body, "<script>") {
			t.Errorf("%s: the answer holds what it must not:\n%s", c.name, body)
		}
		if c.kind == "text/html" && !strings.Contains(res.Header.Get("Content-Security-Policy"), styleHash()) {
			t.Errorf("%s: the policy does not let the page's style in", c.name)
		}
	}
}
