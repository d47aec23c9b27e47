package sharing

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tideline/protocol/seal"
	wire "tideline/protocol/share"
)

// IsLink says whether an argument is meant as a link rather than as a file;
// Open says what is wrong with it.
func IsLink(arg string) bool {
	return strings.HasPrefix(arg, "http://") || strings.HasPrefix(arg, "https://")
}

// Fetched is what came of opening a link.
type Fetched struct {
	Path    string
	Bytes   int64
	Expires time.Time
}

// Open loads what a link names, checks every byte, opens it with the link's
// key and writes it to the file out, which appears only when it is whole.
func (c *Client) Open(ctx context.Context, link, out string) (*Fetched, error) {
	l, err := wire.ParseLink(link)
	if err != nil {
		return nil, err
	}
	if l.Key == "" {
		return nil, fmt.Errorf("the link ends before its key: behind the id belong a point and %d characters; copy it again, whole", seal.KeyTextSize)
	}
	key, err := seal.ParseKey(l.Key)
	if err != nil {
		return nil, err
	}
	st, err := c.look(ctx, l)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", l.Public(), err)
	}
	sealed, err := os.CreateTemp(filepath.Dir(out), ".tideline-*.sealed")
	if err != nil {
		return nil, fmt.Errorf("make a file for the download: %w", err)
	}
	defer func() { _ = errors.Join(sealed.Close(), os.Remove(sealed.Name())) }() // what counts was written to out
	if err := c.load(ctx, l, st.Manifest, sealed); err != nil {
		return nil, fmt.Errorf("load %s: %w", l.Public(), err)
	}
	f, err := seal.Open(sealed, st.Manifest.Size, key)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", l.Public(), err)
	}
	if err := unseal(f, out); err != nil {
		return nil, fmt.Errorf("open %s: %w", l.Public(), err)
	}
	return &Fetched{Path: out, Bytes: f.Size(), Expires: st.Expires}, nil
}

// look asks for the manifest and holds it to the id.
func (c *Client) look(ctx context.Context, l wire.Link) (*wire.Status, error) {
	st := new(wire.Status)
	if err := c.do(ctx, request{method: "GET", url: l.Base + wire.Root + l.ID, first: true}, into(st)); err != nil {
		return nil, err
	}
	if st.Manifest == nil || st.Manifest.Validate() != nil || st.Manifest.ID() != l.ID {
		return nil, errors.New("the service answered with another file than the link names; ask for the link again")
	}
	return st, nil
}

// load fetches chunk after chunk; one that arrives damaged is asked for again.
func (c *Client) load(ctx context.Context, l wire.Link, m *wire.Manifest, to io.WriterAt) error {
	var done int64
	for i := range m.Count() {
		url := l.Base + wire.Root + l.ID + "/chunks/" + strconv.FormatInt(i, 10)
		err := c.do(ctx, request{method: "GET", url: url}, func(body []byte) error {
			if err := m.Verify(i, body); err != nil {
				return fmt.Errorf("it arrived damaged: %w", err)
			}
			if _, err := to.WriteAt(body, i*m.ChunkSize); err != nil {
				return &localError{fmt.Errorf("keep it: %w", err)}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("chunk %d of %d: %w", i, m.Count(), err)
		}
		done += m.Length(i)
		c.tell(done, m.Size)
	}
	return nil
}

// unseal writes the content aside and renames it when it is whole.
func unseal(f *seal.File, out string) error {
	tmp, err := os.CreateTemp(filepath.Dir(out), ".tideline-*.part")
	if err != nil {
		return fmt.Errorf("make the file %s: %w", out, err)
	}
	w := bufio.NewWriterSize(tmp, 1<<20)
	_, err = f.WriteTo(w)
	if err = errors.Join(err, w.Flush(), tmp.Chmod(0o644), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), out)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}
