package sharing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	wire "tideline/protocol/share"
)

// ErrNotOurs means that this machine has no receipt of a share.
var ErrNotOurs = errors.New("this share was not made here")

func (c *Client) receipt(id string) string { return filepath.Join(c.Folder, id+".json") }

// keep stores a receipt: it alone can delete the share before its time.
func (c *Client) keep(r *Receipt, id string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the receipt: %w", err)
	}
	if err := writePrivate(c.receipt(id), append(b, '\n')); err != nil {
		return fmt.Errorf("the share is complete, but its receipt could not be kept, so it cannot be deleted before it expires: %w", err)
	}
	return nil
}

// Receipts lists the shares made on this machine, those that end last first.
func (c *Client) Receipts() ([]*Receipt, error) {
	files, err := filepath.Glob(filepath.Join(c.Folder, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list the receipts: %w", err)
	}
	var out []*Receipt
	for _, f := range files {
		r := new(Receipt)
		b, err := os.ReadFile(f)
		if err == nil {
			err = json.Unmarshal(b, r)
		}
		if err != nil {
			return nil, fmt.Errorf("read the receipt %s: %w", f, err)
		}
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b *Receipt) int { return b.Expires.Compare(a.Expires) })
	return out, nil
}

// Delete deletes a share that was made on this machine, and its receipt.
func (c *Client) Delete(ctx context.Context, link string) error {
	l, err := wire.ParseLink(link)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(c.receipt(l.ID))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: only where it was made lies the token that deletes it; it ends by itself when it expires", ErrNotOurs)
	}
	if err != nil {
		return fmt.Errorf("read the receipt: %w", err)
	}
	r := new(Receipt)
	if err := json.Unmarshal(b, r); err != nil {
		return fmt.Errorf("read the receipt %s: %w", c.receipt(l.ID), err)
	}
	// The receipt's own link says where the token may be sent.
	made, err := wire.ParseLink(r.Link)
	if err != nil {
		return fmt.Errorf("read the receipt %s: %w", c.receipt(l.ID), err)
	}
	err = c.do(ctx, request{"DELETE", made.Base + wire.Root + made.ID, nil, map[string]string{wire.HeaderOwner: r.Owner}, true}, nothing)
	var p *wire.Problem
	if err != nil && (!errors.As(err, &p) || p.Code != wire.Unknown) { // unknown: long over
		return fmt.Errorf("delete %s: %w", made.Public(), err)
	}
	if err := os.Remove(c.receipt(l.ID)); err != nil {
		return fmt.Errorf("remove the receipt: %w", err)
	}
	return nil
}
