package exec

import (
	"fmt"

	"tideline/protocol/event"
)

// ahead is a batch that was sent to the accelerator before the step that will
// use it.
type ahead struct {
	batch  Batch
	plan   *Plan
	host   []bufferID // by input; 0 where no op wants it in host memory
	device []bufferID // by input; 0 where no op wants it on the device
	err    error      // why there is no batch; reported when a step wants it
}

// firstAccelerator is the device that prefetching goes to.
const firstAccelerator event.DeviceID = 1

// sent finds, by input, the tensor on the first accelerator, or none, and
// whether anybody reads the input elsewhere.
func (p *Plan) sent(r *Runtime) {
	p.sentTo = make([]tensorID, len(p.inputs))
	p.readHere = make([]bool, len(p.inputs))
	at := map[tensorID]int{}
	for i, t := range p.inputs {
		p.sentTo[i] = noTensor
		at[t] = i
	}
	for t := range p.tensors {
		x := &p.tensors[t]
		if i, ok := at[x.from]; x.kind == copied && ok {
			if r.spaces[x.space].device == firstAccelerator {
				p.sentTo[i] = tensorID(t)
			} else {
				p.readHere[i] = true
			}
		}
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		for _, t := range n.in {
			if k, ok := at[t]; ok && n.kind != copyNode {
				p.readHere[k] = true
			}
		}
	}
}

// nextAhead takes a batch out of the device's buffer and fills that up again:
// as many as configured, and one more that waits for room in it.
func (r *Runtime) nextAhead(p *Plan, f Feed) error {
	if len(r.ahead) == 0 && !r.pull(p, f) {
		return r.failed
	}
	a := r.ahead[0]
	if a.err == nil && a.plan != p {
		// It stays: nothing of the input is lost by asking with the wrong plan.
		return fmt.Errorf("input of step %d was sent to the device for function %s of batch %d, not for %s of batch %d: the feed must say the Plan of each batch",
			r.step+1, a.plan.p.Name, a.plan.p.Batch, p.p.Name, p.p.Batch)
	}
	r.ahead = r.ahead[:copy(r.ahead, r.ahead[1:])]
	if a.err != nil {
		return a.err
	}
	if now := r.backend.Now(); a.batch.Ready > now {
		r.stall(now, a.batch)
	}
	r.batch = append(r.batch[:0], a.host...)
	for i, b := range a.device {
		if b != 0 {
			p.buf[p.sentTo[i]] = b
		}
	}
	r.dropHeld()
	r.aheadSpare = append(r.aheadSpare, a)
	for len(r.ahead) <= r.cfg.PrefetchToDevice {
		if !r.pull(p, f) {
			return r.failed
		}
	}
	return nil
}

// pull asks the feed for one more batch and sends it to the device. The host
// does not wait for it.
func (r *Runtime) pull(p *Plan, f Feed) bool {
	b, err := f.Next(r.backend.Now())
	r.out.feedAt = f.Pending()
	if err != nil {
		r.ahead = append(r.ahead, ahead{err: fmt.Errorf("input of step %d or later: %w", r.step+1, err)})
		return true
	}
	if b.Plan != nil {
		p = b.Plan
	}
	if p.sentTo == nil {
		p.sent(r)
	}
	a := r.newAhead(len(p.inputs))
	a.batch, a.plan = b, p
	r.ahead = append(r.ahead, a)
	for i, t := range p.inputs {
		if !r.send(p, b, &a, i, t) {
			return false
		}
	}
	return true
}

// newAhead has room for so many inputs, from a batch that was used if possible.
func (r *Runtime) newAhead(inputs int) ahead {
	n := len(r.aheadSpare)
	if n == 0 || len(r.aheadSpare[n-1].host) != inputs {
		return ahead{host: make([]bufferID, inputs), device: make([]bufferID, inputs)}
	}
	a := r.aheadSpare[n-1]
	r.aheadSpare = r.aheadSpare[:n-1]
	clear(a.host)
	clear(a.device)
	return a
}

func (r *Runtime) send(p *Plan, b Batch, a *ahead, i int, t tensorID) bool {
	var q request
	r.request(&q, p, t, r.names.batch)
	q.category = event.Input
	if p.sentTo[i] != noTensor && r.pinnedSpace != noSpace {
		q.space = r.pinnedSpace // the host's side of a copy
	}
	host, ok := r.allocate(&q)
	if !ok {
		return false
	}
	a.host[i] = host
	if dst := r.backend.Bytes(r.ref(host)); dst != nil && b.Input != nil {
		if err := b.Input(i, dst); err != nil {
			r.fail(fmt.Errorf("input of step %d or later: %w", r.step+1, err))
			return false
		}
	}
	if p.sentTo[i] == noTensor {
		return true
	}
	r.buffers[host].ready = max(r.buffers[host].ready, b.Ready)
	var there request
	r.request(&there, p, p.sentTo[i], r.names.batch)
	to, ok := r.copied(host, &there, event.CauseInput)
	if !ok {
		return false
	}
	a.device[i] = to
	if !p.readHere[i] {
		a.host[i] = 0
		r.drop(host) // the copy under way has its own reference
	}
	return true
}

// SendAtOnce keeps the plan's batches out of the buffer on the device: a step
// of it sends its own, whatever waits there for other steps.
func (p *Plan) SendAtOnce() { p.atOnce = true }
