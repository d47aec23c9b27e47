package share

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// ErrNotExist is what a Store answers for a name that it does not hold.
var ErrNotExist = errors.New("no such object")

// ErrFull is what a Store answers when it may not grow.
var ErrFull = errors.New("the store is full")

// A Store keeps objects by name. A name is parts of letters, digits, - and _
// between slashes. After Put returns, every Get, Open and List sees the object
// whole; an object is never seen in part.
type Store interface {
	Put(ctx context.Context, name string, body []byte) error
	Get(ctx context.Context, name string) ([]byte, error)
	// Open reads length bytes from offset on, which must lie in the object.
	Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
	// List returns up to limit objects whose names begin with prefix, which
	// ends in a slash, by name.
	List(ctx context.Context, prefix string, limit int) ([]Object, error)
	// Delete does not mind a name that is not there.
	Delete(ctx context.Context, names ...string) error
}

// A Taker is a Store that checks and keeps the body of a request without
// passing it through Go's memory: in a Worker that costs a tenth of the time.
type Taker interface {
	// Take puts what body holds, whose length was announced as this. It
	// answers ErrMismatch when the length or the SHA-256, in hex, is another.
	Take(ctx context.Context, name string, body io.Reader, length int64, sum string) error
}

// ErrMismatch is what a Taker answers for other bytes than were promised.
var ErrMismatch = errors.New("other bytes than promised")

// A Sender is a Store that sends several objects as one body without passing
// them through Go's memory. The Workers package would queue all of a long body
// before the client has taken any of it.
type Sender interface {
	// Send begins to send the parts one behind another. It answers ErrNotExist,
	// having sent nothing, when the first is not there.
	Send(ctx context.Context, w http.ResponseWriter, parts []Part) error
}

// A Part is some bytes of an object.
type Part struct {
	Name           string
	Offset, Length int64
}

// An Object is an entry of a listing.
type Object struct {
	Name string
	Size int64
}

// An Index answers reads of metadata from nearby. It may be stale and may
// forget; see the package's comment.
type Index interface {
	Get(ctx context.Context, id string) ([]byte, error) // ErrNotExist when it knows nothing
	Put(ctx context.Context, id string, record []byte, until time.Time) error
	Delete(ctx context.Context, id string) error
}
