package attach

import "google.golang.org/protobuf/encoding/protowire"

// profileRequest asks for a profile. The numbers behind the fields are those of
// the messages ProfileRequest and, where said so, ProfileOptions.
type profileRequest struct {
	durationMS uint64   // 1, and 9 of the options, which newer servers heed
	tools      []string // 3: files that servers of 2020 are to write
	repository string   // 5: folder, as the server sees it
	session    string   // 6: folder below that
	host       string   // 7: the files' name
	levels     Levels   // 2, 3 and 4 of the options
	inAnswer   bool     // 9: answer with the XSpace instead of writing it
}

// optionsVersion makes a server take the levels as they are given.
const optionsVersion = 1

func (q *profileRequest) append(b []byte) []byte {
	var o []byte
	o = appendVarint(o, 2, uint64(q.levels.Host))
	o = appendVarint(o, 3, uint64(q.levels.Device))
	o = appendVarint(o, 4, uint64(q.levels.Python))
	o = appendVarint(o, 5, optionsVersion)
	o = appendVarint(o, 9, q.durationMS)
	b = appendVarint(b, 1, q.durationMS)
	for _, t := range q.tools {
		b = appendText(b, 3, t)
	}
	b = appendText(b, 4, string(o))
	b = appendText(b, 5, q.repository)
	b = appendText(b, 6, q.session)
	b = appendText(b, 7, q.host)
	if q.inAnswer {
		b = appendVarint(b, 9, 1)
	}
	return b
}

func appendVarint(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 { // the default is not written
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendText(b []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

// terminateRequest ends a session early.
type terminateRequest struct{ session string } // 1

func (q *terminateRequest) append(b []byte) []byte { return appendText(b, 1, q.session) }

// monitorRequest asks for a look at the devices.
type monitorRequest struct {
	durationMS uint64 // 1
	level      uint64 // 2
}

func (q *monitorRequest) append(b []byte) []byte {
	return appendVarint(appendVarint(b, 1, q.durationMS), 2, q.level)
}
