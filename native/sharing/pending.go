package sharing

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tideline/protocol/seal"
	wire "tideline/protocol/share"
)

// DefaultFolder is where the command keeps unfinished uploads and receipts.
func DefaultFolder() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for shares: %w", err)
	}
	return filepath.Join(dir, "tideline", "shares"), nil
}

// pending is an upload that is not complete. Its sealed bytes lie in a file
// beside its own: sealing anew would give other bytes, and sealing a changed
// file with the same key and salt would betray both.
type pending struct {
	Path      string        `json:"path"`
	Form      string        `json:"form,omitempty"` // in which the file is shared; "" as it is
	Size      int64         `json:"size"`           // of the file
	Content   int64         `json:"content,omitempty"`
	Modified  time.Time     `json:"modified"`
	Base      string        `json:"base"`
	ExpiresIn int64         `json:"expires_in"`
	Key       string        `json:"key"`
	Owner     string        `json:"owner"`
	Manifest  wire.Manifest `json:"manifest"`

	record, sealed string // where the two files lie
}

func (p *pending) link() wire.Link {
	return wire.Link{Base: p.Base, ID: p.Manifest.ID(), Key: p.Key}
}

// Form is another form in which a file is shared, such as one without names.
type Form struct {
	Name  string
	Write func(io.Writer) error // writes it
}

// content is how many bytes were sealed.
func (p *pending) content() int64 {
	if p.Form != "" {
		return p.Content
	}
	return p.Size
}

// prepare finds the upload of this very file that was begun before, or seals
// the file for a new one.
func (c *Client) prepare(path, base string, form *Form, expiresIn int64, chunkSize int64) (p *pending, resumed bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, false, fmt.Errorf("open the file to share: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return nil, false, fmt.Errorf("look at the file to share: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, false, fmt.Errorf("%s is not a file that can be shared", path)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, false, fmt.Errorf("find the file to share: %w", err)
	}
	p = &pending{Path: path, Size: info.Size(), Modified: info.ModTime().UTC(), Base: base, ExpiresIn: expiresIn}
	if form != nil {
		p.Form = form.Name
	}
	if err := p.place(c.Folder); err != nil {
		return nil, false, err
	}
	if old, err := readPending(p); err == nil {
		return old, true, nil
	}
	if form != nil {
		formed, err := p.formed(form)
		if err != nil {
			return nil, false, err
		}
		defer func() { _ = errors.Join(formed.Close(), os.Remove(formed.Name())) }() // its folder is ours alone
		file = formed
	}
	if err := p.seal(file, chunkSize); err != nil {
		return nil, false, errors.Join(err, p.forget())
	}
	return p, false, nil
}

// formed writes the file in another form, for its owner's eyes.
func (p *pending) formed(form *Form) (f *os.File, err error) {
	if f, err = os.CreateTemp(filepath.Dir(p.record), ".form-*"); err != nil { // mode 0600
		return nil, fmt.Errorf("make the %s form of %s: %w", form.Name, p.Path, err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if err = errors.Join(form.Write(w), w.Flush()); err == nil {
		if p.Content, err = f.Seek(0, io.SeekCurrent); err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the %s form of %s: %w", form.Name, p.Path, err), f.Close(), os.Remove(f.Name()))
	}
	return f, nil
}

// place names the files after what is shared and where, so that the same
// command finds them again.
func (p *pending) place(folder string) error {
	dir := filepath.Join(folder, "pending")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make a folder for uploads: %w", err)
	}
	what := p.Path + "\x00" + p.Base
	if p.Form != "" {
		what += "\x00" + p.Form
	}
	sum := sha256.Sum256([]byte(what))
	stem := filepath.Join(dir, hex.EncodeToString(sum[:12]))
	p.record, p.sealed = stem+".json", stem+".sealed"
	return nil
}

// readPending returns what was begun before, if it is of the same file.
func readPending(want *pending) (*pending, error) {
	b, err := os.ReadFile(want.record)
	if err != nil {
		return nil, err
	}
	p := &pending{record: want.record, sealed: want.sealed}
	if err := json.Unmarshal(b, p); err != nil {
		return nil, err
	}
	info, err := os.Stat(p.sealed)
	if err != nil {
		return nil, err
	}
	same := p.Path == want.Path && p.Form == want.Form && p.Base == want.Base && p.Size == want.Size && p.Modified.Equal(want.Modified) && p.ExpiresIn == want.ExpiresIn
	if !same || p.Manifest.Validate() != nil || info.Size() != p.Manifest.Size {
		return nil, errors.New("of another file")
	}
	return p, nil
}

// seal writes the sealed file and, when it is whole, the record.
func (p *pending) seal(file io.Reader, chunkSize int64) error {
	key, err := seal.NewKey(rand.Reader)
	if err != nil {
		return err
	}
	p.Key, p.Owner = key.Text(), rand.Text()+rand.Text()
	out, err := os.OpenFile(p.sealed, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("make the sealed file: %w", err)
	}
	w := bufio.NewWriterSize(out, 1<<20)
	err = seal.Seal(w, bufio.NewReaderSize(file, 1<<20), p.content(), key, rand.Reader)
	err = errors.Join(err, w.Flush())
	if err == nil {
		p.Manifest, err = manifestOf(out, seal.Size(p.content()), chunkSize)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("seal %s: %w", p.Path, err)
	}
	b, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode the record of the upload: %w", err)
	}
	return writePrivate(p.record, b)
}

func manifestOf(src io.ReaderAt, size, chunkSize int64) (wire.Manifest, error) {
	salt := make([]byte, 16)
	if _, err := rand.Read(salt); err != nil {
		return wire.Manifest{}, fmt.Errorf("take randomness: %w", err)
	}
	m := wire.Manifest{Size: size, ChunkSize: chunkSize, Salt: hex.EncodeToString(salt)}
	for i := range m.Count() {
		h := sha256.New()
		if _, err := io.Copy(h, io.NewSectionReader(src, i*chunkSize, m.Length(i))); err != nil {
			return m, fmt.Errorf("hash chunk %d: %w", i, err)
		}
		m.Chunks = append(m.Chunks, hex.EncodeToString(h.Sum(nil)))
	}
	return m, m.Validate()
}

func (p *pending) forget() error {
	var errs []error
	for _, f := range []string{p.record, p.sealed} {
		if err := os.Remove(f); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// writePrivate replaces a file whole, for its owner's eyes.
func writePrivate(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(f.Name()))
	}
	return nil
}
