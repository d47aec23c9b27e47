package agent

import (
	"net/http"
	"strings"

	wire "tideline/protocol/share"
)

const sharePaths = "/share/"

func (a *Agent) toShares(r *http.Request) bool {
	return a.opts.Share != nil && strings.HasPrefix(r.URL.Path, sharePaths)
}

// guardShares lets readers in without our token: what the share service gives
// out is sealed and named by 192 random bits. Of those who change something it
// asks the owner's token itself; only beginning a share, which takes room on
// this disk, is for those who have ours. A command gives it as upload key.
func (a *Agent) guardShares(w http.ResponseWriter, r *http.Request) {
	if !a.hostIsOurs(r) {
		failShare(w, http.StatusForbidden, notOurHost(r))
		return
	}
	how := a.credential(r)
	if changes(r) && !sameOrigin(r, how) {
		failShare(w, http.StatusForbidden, foreign(r))
		return
	}
	if beginsShare(r) && how == byNothing && !a.isToken(r.Header.Get(wire.HeaderUpload)) {
		failShare(w, http.StatusUnauthorized, "whoever shares through this agent needs its token, and none or another one came")
		return
	}
	a.opts.Share.ServeHTTP(w, r)
}

// beginsShare is PUT Root+ID, and any change that is not of a share which has
// an owner by then.
func beginsShare(r *http.Request) bool {
	rest, ours := strings.CutPrefix(r.URL.EscapedPath(), wire.Root)
	owned := ours && (strings.Contains(rest, "/") || r.Method == http.MethodDelete)
	return changes(r) && !owned
}

// failShare refuses in the way in which the share service would.
func failShare(w http.ResponseWriter, status int, message string) {
	p := &wire.Problem{Code: wire.CrossOrigin, Message: message, Do: "use the agent's own page, or tideline share"}
	if status == http.StatusUnauthorized {
		p.Code, p.Do = wire.NeedsKey, "open the address that tideline serve printed; tideline share takes the token as --upload-key"
	}
	answer(w, status, wire.Failure{Error: p})
}
