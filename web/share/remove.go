package share

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"

	wire "tideline/protocol/share"
)

// remove deletes a share for its owner. The tombstone is written before the
// content goes, so nobody meets a share with holes.
func (s *Service) remove(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	_, err := s.find(r.Context(), id, false)
	var p *wire.Problem
	if err != nil && (!errors.As(err, &p) || p.Status != http.StatusGone) {
		return err
	}
	rec, err := s.stored(r.Context(), id)
	if err != nil {
		return err
	}
	if !rec.ownedBy(r.Header.Get(wire.HeaderOwner)) {
		return wrongOwner()
	}
	if rec.State != deleted {
		rec.State = deleted
		rec.Expires = s.opts.Now().Add(tombTime).UTC()
		if err := s.save(r.Context(), rec); err != nil {
			return err
		}
	}
	if err := s.drop(r.Context(), rec.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// drop takes the content of a share away.
func (s *Service) drop(ctx context.Context, id string) error {
	if s.opts.Index != nil {
		if err := s.opts.Index.Delete(ctx, id); err != nil {
			s.note("index: forget %s: %v", id, err) // it will miss the content
		}
	}
	objects, err := s.opts.Store.List(ctx, chunkPrefix(id), wire.MaxChunks)
	if err != nil {
		return fmt.Errorf("list the chunks of %s: %w", id, err)
	}
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = o.Name
	}
	if err := s.opts.Store.Delete(ctx, names...); err != nil {
		return fmt.Errorf("delete the chunks of %s: %w", id, err)
	}
	return nil
}

// Sweep takes away the content of shares whose time is over and, a month
// later, what was remembered of them. It looks at up to limit shares and
// returns how many it dealt with; a host calls it now and then.
func (s *Service) Sweep(ctx context.Context, limit int) (int, error) {
	due, err := s.opts.Store.List(ctx, markers, limit)
	if err != nil {
		return 0, fmt.Errorf("list what is due: %w", err)
	}
	for done, marker := range due {
		at, id := path.Split(strings.TrimPrefix(marker.Name, markers))
		if strings.TrimSuffix(at, "/") > hour(s.opts.Now()) {
			return done, nil // names are in the order of time
		}
		if err := s.settle(ctx, id); err != nil {
			return done, err
		}
		if err := s.opts.Store.Delete(ctx, marker.Name); err != nil {
			return done, fmt.Errorf("delete %s: %w", marker.Name, err)
		}
	}
	return len(due), nil
}

// settle does for one share what is due. A marker may be older than a change
// that gave its share more time; then another one stands further on.
func (s *Service) settle(ctx context.Context, id string) error {
	rec, err := s.stored(ctx, id)
	if _, unknown := errors.AsType[*wire.Problem](err); unknown {
		return s.drop(ctx, id)
	}
	if err != nil || s.opts.Now().Before(rec.Expires) {
		return err
	}
	if err := s.drop(ctx, id); err != nil {
		return err
	}
	if until := rec.Expires.Add(tombTime); rec.State != deleted && s.opts.Now().Before(until) {
		return s.put(ctx, markerName(until, id))
	}
	if err := s.opts.Store.Delete(ctx, metaName(id)); err != nil {
		return fmt.Errorf("forget %s: %w", id, err)
	}
	return nil
}

func (s *Service) put(ctx context.Context, marker string) error {
	if err := s.opts.Store.Put(ctx, marker, []byte("ended")); err != nil {
		return fmt.Errorf("write %s: %w", marker, err)
	}
	return nil
}
