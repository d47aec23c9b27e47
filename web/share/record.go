package share

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	wire "tideline/protocol/share"
)

// deleted is the state of a tombstone: kept for a while, so that a link says
// what became of its share.
const deleted wire.State = "deleted"

// tombTime is how long a share that ended is remembered.
const tombTime = 30 * 24 * time.Hour

// record is the metadata of a share as it is stored.
type record struct {
	ID        string        `json:"id"`
	State     wire.State    `json:"state"`
	Manifest  wire.Manifest `json:"manifest"`
	Owner     string        `json:"owner"`   // SHA-256 of the token, in hex
	Expires   time.Time     `json:"expires"` // of the state
	ExpiresIn int64         `json:"expires_in"`
}

func (r *record) chunkName(i int64) string { return chunkPrefix(r.ID) + fmt.Sprintf("%04d", i) }

func (r *record) ownedBy(token string) bool {
	sum := hashOwner(token)
	return subtle.ConstantTimeCompare([]byte(sum), []byte(r.Owner)) == 1
}

func hashOwner(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func metaName(id string) string    { return "meta/" + id }
func chunkPrefix(id string) string { return "chunk/" + id + "/" }

// Every share has a marker under the hour in which somebody has to look at it
// again, so that sweeping lists only what is due.
const markers = "until/"

func markerName(at time.Time, id string) string {
	return markers + hour(at.Add(time.Hour)) + "/" + id
}

func hour(at time.Time) string { return at.UTC().Format("2006010215") }

// save writes the record, with its marker in front: a crash between the two
// leaves a marker without a share, never a share that no sweep finds.
func (s *Service) save(ctx context.Context, r *record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode metadata of %s: %w", r.ID, err)
	}
	if err := s.opts.Store.Put(ctx, markerName(r.Expires, r.ID), []byte(r.State)); err != nil {
		return fmt.Errorf("mark the end of %s: %w", r.ID, err)
	}
	if err := s.opts.Store.Put(ctx, metaName(r.ID), b); err != nil {
		return fmt.Errorf("write metadata of %s: %w", r.ID, err)
	}
	if s.opts.Index != nil && r.State == wire.Complete {
		if err := s.opts.Index.Put(ctx, r.ID, b, r.Expires); err != nil {
			s.note("index %s: %v", r.ID, err) // only slower
		}
	}
	return nil
}

// find looks a share up; nearby allows the answer of the Index. It returns a
// Problem for a share that is not there or no longer is.
func (s *Service) find(ctx context.Context, id string, nearby bool) (*record, error) {
	if err := wire.CheckID(id); err != nil {
		return nil, &wire.Problem{Status: 400, Code: wire.BadLink, Message: "this cannot be a link to a share", Do: err.Error()}
	}
	if nearby && s.opts.Index != nil {
		if r, err := s.indexed(ctx, id); err == nil {
			return r, s.ended(r)
		}
	}
	r, err := s.stored(ctx, id)
	if err != nil {
		return nil, err
	}
	return r, s.ended(r)
}

func (s *Service) indexed(ctx context.Context, id string) (*record, error) {
	b, err := s.opts.Index.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	r := new(record)
	if err := json.Unmarshal(b, r); err != nil || r.ID != id || r.State != wire.Complete {
		return nil, ErrNotExist
	}
	return r, nil
}

// stored reads a record whatever has become of its share.
func (s *Service) stored(ctx context.Context, id string) (*record, error) {
	b, err := s.opts.Store.Get(ctx, metaName(id))
	if errors.Is(err, ErrNotExist) {
		return nil, &wire.Problem{Status: 404, Code: wire.Unknown, Message: "no share has this id", Do: "look whether the link is whole and leads to the service where it was made; a share that ended more than 30 days ago is forgotten too"}
	}
	if err != nil {
		return nil, fmt.Errorf("read metadata of %s: %w", id, err)
	}
	r := new(record)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("decode metadata of %s: %w", id, err)
	}
	return r, nil
}

// ended is the Problem of a share that is over.
func (s *Service) ended(r *record) error {
	switch {
	case r.State == deleted:
		return &wire.Problem{Status: 410, Code: wire.Deleted, Message: "this share was deleted by its owner", Do: "ask who sent the link for a new one"}
	case s.opts.Now().Before(r.Expires):
		return nil
	case r.State == wire.Uploading:
		return &wire.Problem{Status: 410, Code: wire.Expired, Message: "this upload was not finished by " + when(r.Expires) + " and was given up", Do: "share the file again"}
	}
	return &wire.Problem{Status: 410, Code: wire.Expired, Message: "this share expired on " + when(r.Expires), Do: "ask who sent the link to share it again"}
}

func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// missing lists the chunks that are not there yet.
func (s *Service) missing(ctx context.Context, r *record) ([]int64, error) {
	objects, err := s.opts.Store.List(ctx, chunkPrefix(r.ID), wire.MaxChunks)
	if err != nil {
		return nil, fmt.Errorf("list the chunks of %s: %w", r.ID, err)
	}
	have := make(map[string]int64, len(objects))
	for _, o := range objects {
		have[o.Name] = o.Size
	}
	var out []int64
	for i := range r.Manifest.Count() {
		if size, ok := have[r.chunkName(i)]; !ok || size != r.Manifest.Length(i) {
			out = append(out, i)
		}
	}
	return out, nil
}
