package share

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"syscall/js"

	"github.com/syumai/workers/cloudflare"
	"github.com/syumai/workers/cloudflare/r2"
)

// R2 is a Store in a bucket, which is consistent: what Put wrote, everybody
// reads. Package r2 offers neither ranges nor listing by prefix, and copies
// what it puts twice, so those calls go to the binding itself.
type R2 struct {
	bucket  *r2.Bucket
	binding js.Value
}

// NewR2 takes the bucket bound under a name in wrangler.jsonc.
func NewR2(binding string) (*R2, error) {
	b, err := r2.NewBucket(binding)
	if err != nil {
		return nil, fmt.Errorf("the R2 bucket of wrangler.jsonc: %w", err)
	}
	return &R2{bucket: b, binding: cloudflare.GetBinding(binding)}, nil
}

// Put implements Store.
func (s *R2) Put(_ context.Context, name string, body []byte) error {
	if _, err := await(s.binding.Call("put", name, bytesToJS(body))); err != nil {
		return failed("put", name, err)
	}
	return nil
}

// Take implements Taker: the platform reads, hashes and stores the body; Go
// sees the hash alone.
func (s *R2) Take(_ context.Context, name string, body io.Reader, length int64, sum string) error {
	raw, ok := body.(interface{ GetRawJSBody() js.Value })
	if !ok {
		return fmt.Errorf("take %s: the body is %T, not the platform's stream", name, body)
	}
	buffer, err := await(js.Global().Get("Response").New(raw.GetRawJSBody()).Call("arrayBuffer"))
	if err != nil {
		return failed("receive", name, err)
	}
	digest, err := await(js.Global().Get("crypto").Get("subtle").Call("digest", "SHA-256", buffer))
	if err != nil {
		return failed("hash", name, err)
	}
	if int64(buffer.Get("byteLength").Float()) != length || hex.EncodeToString(bytesFromJS(digest)) != sum {
		return ErrMismatch
	}
	if _, err := await(s.binding.Call("put", name, buffer)); err != nil {
		return failed("put", name, err)
	}
	return nil
}

// Get implements Store.
func (s *R2) Get(_ context.Context, name string) ([]byte, error) {
	o, err := s.bucket.Get(name)
	if err != nil {
		return nil, failed("get", name, err)
	}
	if o == nil {
		return nil, ErrNotExist
	}
	b, err := io.ReadAll(o.Body)
	if err != nil {
		return nil, failed("read", name, err)
	}
	return b, nil
}

// Open implements Store.
func (s *R2) Open(_ context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	o, err := s.part(Part{name, offset, length})
	if err != nil {
		return nil, err
	}
	return &r2Body{object: o, length: length}, nil
}

// r2Body is a body that a Worker's answer can take without a copy through Go,
// or that is read like any other.
type r2Body struct {
	object js.Value
	length int64
	plain  *bytes.Reader
}

func (b *r2Body) Read(p []byte) (int, error) {
	if b.plain == nil {
		buf, err := await(b.object.Call("arrayBuffer"))
		if err != nil {
			return 0, fmt.Errorf("read from R2: %w", err)
		}
		b.plain = bytes.NewReader(bytesFromJS(buf))
	}
	return b.plain.Read(p)
}

// WriteTo hands the stream itself to an answer that consists of it alone.
func (b *r2Body) WriteTo(w io.Writer) (int64, error) {
	if raw, ok := w.(interface{ WriteRawJSBody(js.Value) }); ok {
		raw.WriteRawJSBody(b.object.Get("body"))
		return b.length, nil
	}
	return io.Copy(w, struct{ io.Reader }{b})
}

func (b *r2Body) Close() error { return nil }

// Send implements Sender: the platform pipes one object after another into a
// stream of the whole length, as fast as the client takes it.
func (s *R2) Send(_ context.Context, w http.ResponseWriter, parts []Part) error {
	raw, ok := w.(interface{ WriteRawJSBody(js.Value) })
	if !ok {
		return fmt.Errorf("send %s: the answer is %T, which takes no stream", parts[0].Name, w)
	}
	first, err := s.part(parts[0])
	if err != nil {
		return err
	}
	var total int64
	for _, p := range parts {
		total += p.Length
	}
	stream := js.Global().Get("FixedLengthStream").New(total)
	raw.WriteRawJSBody(stream.Get("readable"))
	go s.pipe(first, parts[1:], stream.Get("writable"))
	return nil
}

// pipe ends with the client, or with an error that breaks the answer off.
func (s *R2) pipe(object js.Value, rest []Part, to js.Value) {
	keep := map[string]any{"preventClose": true}
	for {
		_, err := await(object.Get("body").Call("pipeTo", to, keep))
		if err == nil && len(rest) == 0 {
			_, _ = await(to.Call("close")) // fails when the client has gone
			return
		}
		if err == nil {
			object, err = s.part(rest[0])
			rest = rest[min(1, len(rest)):]
		}
		if err != nil {
			_, _ = await(to.Call("abort", err.Error())) // it may have been the stream that failed
			return
		}
	}
}

// part asks for bytes of an object.
func (s *R2) part(p Part) (js.Value, error) {
	o, err := await(s.binding.Call("get", p.Name, object(map[string]any{
		"range": map[string]any{"offset": p.Offset, "length": p.Length},
	})))
	if err != nil {
		return o, failed("get", p.Name, err)
	}
	if absent(o) {
		return o, ErrNotExist
	}
	return o, nil
}

// List implements Store.
func (s *R2) List(_ context.Context, prefix string, limit int) ([]Object, error) {
	var out []Object
	ask := map[string]any{"prefix": prefix}
	for len(out) < limit {
		ask["limit"] = min(limit-len(out), 1000)
		page, err := await(s.binding.Call("list", object(ask)))
		if err != nil {
			return nil, failed("list", prefix, err)
		}
		objects := page.Get("objects")
		for i := range objects.Length() {
			o := objects.Index(i)
			out = append(out, Object{Name: o.Get("key").String(), Size: int64(o.Get("size").Float())})
		}
		if !page.Get("truncated").Bool() {
			return out, nil
		}
		ask["cursor"] = page.Get("cursor")
	}
	return out, nil
}

// Delete implements Store, up to a thousand names a call.
func (s *R2) Delete(_ context.Context, names ...string) error {
	for len(names) > 0 {
		n := min(len(names), 1000)
		keys := make([]any, n)
		for i, name := range names[:n] {
			keys[i] = name
		}
		if _, err := await(s.binding.Call("delete", js.ValueOf(keys))); err != nil {
			return failed("delete", names[0], err)
		}
		names = names[n:]
	}
	return nil
}
