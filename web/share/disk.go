//go:build !js

package share

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
)

// Disk is a Store in a folder. Each object is a file that is written aside and
// renamed into its place; nothing outside of the folder is ever touched.
type Disk struct {
	root *os.Root
	max  int64

	mu   sync.Mutex
	used int64 // bytes of all objects and of those being written
}

const aside = "tmp" // where files are written before they are renamed

// OpenDisk opens the folder, making it if need be, and removes what an earlier
// process was writing when it ended. It holds up to maxBytes; 0 sets no bound.
func OpenDisk(folder string, maxBytes int64) (*Disk, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder for shares: %w", err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("open the folder for shares: %w", err)
	}
	d := &Disk{root: root, max: maxBytes}
	if err := d.prepare(); err != nil {
		_ = root.Close() // the first error is the one to tell
		return nil, fmt.Errorf("open the folder for shares %s: %w", folder, err)
	}
	return d, nil
}

func (d *Disk) prepare() error {
	if err := d.root.RemoveAll(aside); err != nil {
		return err
	}
	if err := d.root.MkdirAll(aside, 0o700); err != nil {
		return err
	}
	return fs.WalkDir(d.root.FS(), ".", func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			d.used += info.Size()
		}
		return err
	})
}

// Close lets the folder go.
func (d *Disk) Close() error { return d.root.Close() }

// Used is the number of bytes that the store holds.
func (d *Disk) Used() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used
}

// reserve takes room before it is written to, and gives it back if negative.
func (d *Disk) reserve(n int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n > 0 && d.max > 0 && d.used+n > d.max {
		return fmt.Errorf("%w: it holds %d of %d bytes and should take %d", ErrFull, d.used, d.max, n)
	}
	d.used += n
	return nil
}

func (d *Disk) size(name string) int64 {
	info, err := d.root.Stat(name)
	if err != nil {
		return 0
	}
	return info.Size()
}

// Put implements Store.
func (d *Disk) Put(_ context.Context, name string, body []byte) error {
	if err := d.reserve(int64(len(body))); err != nil {
		return err
	}
	before := d.size(name)
	if err := d.replace(name, body); err != nil {
		return errors.Join(fmt.Errorf("put %s: %w", name, err), d.reserve(-int64(len(body))))
	}
	return d.reserve(-before)
}

func (d *Disk) replace(name string, body []byte) error {
	tmp := path.Join(aside, rand.Text())
	f, err := d.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = d.root.MkdirAll(path.Dir(name), 0o700)
	}
	if err == nil {
		err = d.root.Rename(tmp, name)
	}
	if err != nil {
		return errors.Join(err, d.root.Remove(tmp))
	}
	return nil
}

// Get implements Store.
func (d *Disk) Get(_ context.Context, name string) ([]byte, error) {
	b, err := d.root.ReadFile(name)
	if err != nil {
		return nil, known(err)
	}
	return b, nil
}

// Open implements Store.
func (d *Disk) Open(_ context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	f, err := d.root.Open(name)
	if err != nil {
		return nil, known(err)
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, offset, length), f}, nil
}

// List implements Store. Its folders are few: it reads those under prefix.
func (d *Disk) List(_ context.Context, prefix string, limit int) ([]Object, error) {
	var out []Object
	err := d.walk(strings.TrimSuffix(prefix, "/"), limit, &out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list %s: %w", prefix, err)
	}
	return out, nil
}

func (d *Disk) walk(dir string, limit int, out *[]Object) error {
	entries, err := fs.ReadDir(d.root.FS(), dir)
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case len(*out) >= limit:
			return nil
		case e.IsDir():
			if err := d.walk(name, limit, out); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		default:
			*out = append(*out, Object{Name: name, Size: d.size(name)})
		}
	}
	return nil
}

// Delete implements Store. The folder goes with its last object.
func (d *Disk) Delete(_ context.Context, names ...string) error {
	for _, name := range names {
		size := d.size(name)
		err := d.root.Remove(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("delete %s: %w", name, err)
		}
		if err := d.reserve(-size); err != nil {
			return err
		}
		_ = d.root.Remove(path.Dir(name)) // fails while others are in it, as it should
	}
	return nil
}

func known(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotExist
	}
	return err
}
