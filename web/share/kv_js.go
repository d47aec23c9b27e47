package share

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/syumai/workers/cloudflare/kv"
)

// KV is an Index. A write is seen elsewhere after up to a minute, and a name
// that was looked up in vain stays unknown there for as long; the Service
// allows for both.
type KV struct{ names *kv.Namespace }

// NewKV takes the namespace bound under a name in wrangler.jsonc.
func NewKV(binding string) (*KV, error) {
	ns, err := kv.NewNamespace(binding)
	if err != nil {
		return nil, fmt.Errorf("the KV namespace of wrangler.jsonc: %w", err)
	}
	return &KV{ns}, nil
}

// minTTL is the shortest life that KV gives a value.
const minTTL = 60

// Get implements Index.
func (k *KV) Get(_ context.Context, id string) ([]byte, error) {
	text, err := k.names.GetString("share/"+id, nil)
	if err != nil {
		return nil, failed("look up", id, err)
	}
	// The package renders JavaScript's null as text.
	if !json.Valid([]byte(text)) || text == "null" {
		return nil, ErrNotExist
	}
	return []byte(text), nil
}

// Put implements Index; KV forgets the value by itself.
func (k *KV) Put(_ context.Context, id string, record []byte, until time.Time) error {
	ttl := max(minTTL, int(time.Until(until)/time.Second))
	if err := k.names.PutString("share/"+id, string(record), &kv.PutOptions{ExpirationTTL: ttl}); err != nil {
		return failed("index", id, err)
	}
	return nil
}

// Delete implements Index.
func (k *KV) Delete(_ context.Context, id string) error {
	if err := k.names.Delete("share/" + id); err != nil {
		return failed("forget", id, err)
	}
	return nil
}
