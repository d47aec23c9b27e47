package agent

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"strings"
)

// refuse says no: as a page to people who opened an address, as JSON to
// programs. The page is whole in itself, because those who are not let in get
// no other file from us.
func refuse(w http.ResponseWriter, r *http.Request, status int, title, message string) {
	if !byPerson(r) {
		fail(w, status, message)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", strings.Replace(policy, "style-src 'self'", "style-src '"+styleHash()+"'", 1))
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept")
	w.WriteHeader(status)
	// Nothing is left to do when the reader has gone away.
	_, _ = fmt.Fprintf(w, refusal, html.EscapeString(title), refusalStyle, html.EscapeString(title), html.EscapeString(strings.ToUpper(message[:1])+message[1:]))
}

// byPerson: browsers say that they take a page where somebody opened an
// address, and only there.
func byPerson(r *http.Request) bool {
	return r.Method == http.MethodGet && !upgrades(r) && strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "text/html")
}

// noToken is what to do about a missing or another token.
func noToken(r *http.Request) (title, message string) {
	const address = "open the URL that tideline printed when it started"
	switch {
	case r.URL.Query().Has("token"):
		return "Another agent's token", "no valid token: the one in this address is not this agent's. A new one is made each time tideline starts, unless --token gives one: " + address + " last"
	case byPerson(r):
		return "This agent asks for its token", "no valid token: " + address + ". It has the token in it, and this browser is remembered from then on"
	}
	return "", "no valid token: " + address + ", or send the header Authorization: Bearer TOKEN"
}

const refusalStyle = `:root{color-scheme:light dark}` +
	`body{display:grid;place-content:center;min-height:90vh;margin:0 24px;font:15px/1.5 system-ui,sans-serif}` +
	`h1{margin:0 0 8px;font-size:22px;letter-spacing:-.01em}p{max-width:52ch;margin:0 0 12px;text-wrap:pretty;overflow-wrap:anywhere}small{opacity:.65}`

const refusal = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>%s · Tideline</title><style>%s</style></head>
<body><main><h1>%s</h1><p>%s.</p><small>Tideline agent</small></main></body>
</html>
`

func styleHash() string {
	sum := sha256.Sum256([]byte(refusalStyle))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
