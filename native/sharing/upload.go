package sharing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	wire "tideline/protocol/share"
)

// Receipt is what the owner of a share has of it.
type Receipt struct {
	Link    string    `json:"link"`
	Owner   string    `json:"owner"` // deletes it
	Expires time.Time `json:"expires"`
	File    string    `json:"file"`
	Form    string    `json:"form,omitempty"` // in which it was shared; "" as it is
	Bytes   int64     `json:"bytes"`          // of what was shared
	Resumed bool      `json:"-"`              // an earlier upload was taken up
}

// ExpiryError says that a share was to live longer than its service lets one.
type ExpiryError struct{ Asked, Most time.Duration }

func (e *ExpiryError) Error() string {
	return fmt.Sprintf("a link cannot live for %s there: %s at most", hours(e.Asked), hours(e.Most))
}

// hours writes a time as people give it: 720h, not 720h0m0s.
func hours(d time.Duration) string {
	s := d.String()
	if d%time.Minute == 0 {
		s = strings.TrimSuffix(s, "0s")
	}
	if d%time.Hour == 0 {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Share seals a file, uploads it to the service at base and returns the link.
// expires is how long the share lives; 0 leaves it to the service. When it
// fails for the connection, calling it again goes on where it was.
func (c *Client) Share(ctx context.Context, path, base string, expires time.Duration) (*Receipt, error) {
	return c.ShareForm(ctx, path, base, nil, expires)
}

// ShareForm is Share of a file in another form, which is written once: what is
// gone on with is what was sealed then. Nil is the file as it is.
func (c *Client) ShareForm(ctx context.Context, path, base string, form *Form, expires time.Duration) (*Receipt, error) {
	base, err := Service(base)
	if err != nil {
		return nil, err
	}
	var limits wire.Limits
	if err := c.do(ctx, request{method: "GET", url: base + wire.Root, first: true}, into(&limits)); err != nil {
		return nil, fmt.Errorf("ask %s for its limits: %w", base, err)
	}
	if most := time.Duration(limits.MaxExpiry) * time.Second; most > 0 && expires > most {
		return nil, &ExpiryError{Asked: expires, Most: most}
	}
	p, resumed, err := c.prepare(path, base, form, int64(expires/time.Second), min(wire.DefaultChunk, limits.MaxChunk))
	if err != nil {
		return nil, err
	}
	r, err := c.upload(ctx, p)
	if over(err) && resumed { // given up meanwhile: begin anew
		if err := p.forget(); err != nil {
			return nil, fmt.Errorf("forget an upload that expired: %w", err)
		}
		return c.ShareForm(ctx, path, base, form, expires)
	}
	if final, ok := errors.AsType[*wire.Problem](err); ok {
		if _, may := mayPass(final); !may && final.Code != wire.NeedsKey {
			return nil, errors.Join(err, p.forget())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("upload %s: %w", path, err)
	}
	r.Resumed = resumed
	if err := c.keep(r, p.link().ID); err != nil {
		return r, err
	}
	return r, p.forget()
}

func over(err error) bool {
	var p *wire.Problem
	return errors.As(err, &p) && (p.Code == wire.Expired || p.Code == wire.Deleted)
}

func (c *Client) upload(ctx context.Context, p *pending) (*Receipt, error) {
	sealed, err := os.Open(p.sealed)
	if err != nil {
		return nil, fmt.Errorf("open the sealed file: %w", err)
	}
	defer func() { _ = sealed.Close() }() // it was only read
	link := p.link()
	root := p.Base + wire.Root + link.ID
	owner := map[string]string{wire.HeaderOwner: p.Owner}
	st, err := c.begin(ctx, p, root)
	if err != nil {
		return nil, err
	}
	buf := make([]byte, p.Manifest.ChunkSize)
	done := p.Manifest.Size
	for _, i := range st.Missing {
		if i < 0 || i >= p.Manifest.Count() {
			return nil, fmt.Errorf("the service asks for chunk %d of %d", i, p.Manifest.Count())
		}
		done -= p.Manifest.Length(i)
	}
	c.tell(done, p.Manifest.Size)
	for _, i := range st.Missing {
		chunk := buf[:p.Manifest.Length(i)]
		if _, err := sealed.ReadAt(chunk, i*p.Manifest.ChunkSize); err != nil {
			return nil, fmt.Errorf("read the sealed file: %w", err)
		}
		if err := c.do(ctx, request{"PUT", root + "/chunks/" + strconv.FormatInt(i, 10), chunk, owner, false}, nothing); err != nil {
			return nil, fmt.Errorf("send chunk %d of %d: %w", i, p.Manifest.Count(), err)
		}
		done += int64(len(chunk))
		c.tell(done, p.Manifest.Size)
	}
	if err := c.do(ctx, request{"POST", root + "/finish", nil, owner, false}, into(st)); err != nil {
		return nil, fmt.Errorf("finish the upload: %w", err)
	}
	return &Receipt{Link: link.String(), Owner: p.Owner, Expires: st.Expires, File: p.Path, Form: p.Form, Bytes: p.content()}, nil
}

// begin creates the share, or learns what one that was begun lacks.
func (c *Client) begin(ctx context.Context, p *pending, root string) (*wire.Status, error) {
	body, err := json.Marshal(wire.Create{Manifest: p.Manifest, ExpiresIn: p.ExpiresIn})
	if err != nil {
		return nil, fmt.Errorf("encode the manifest: %w", err)
	}
	header := map[string]string{"Content-Type": "application/json", wire.HeaderOwner: p.Owner}
	if c.UploadKey != "" {
		header[wire.HeaderUpload] = c.UploadKey
	}
	st := new(wire.Status)
	if err := c.do(ctx, request{"PUT", root, body, header, false}, into(st)); err != nil {
		return nil, fmt.Errorf("begin the upload: %w", err)
	}
	return st, nil
}
