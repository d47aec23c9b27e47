package torch_test

import (
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
)

// A request of more than the addresses that are set aside fails, however often
// it is made, and does no harm to those that follow.
func TestARequestBeyondTheReservationFails(t *testing.T) {
	for _, capacity := range []int64{0, 1 << 30} {
		a, err := torch.New(torch.NewDevice(alloc.NewCard(capacity), 0), torch.Options{Settings: torch.Settings{Expandable: true}})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, ok := a.AllocateOn(torch.Request{Bytes: 130206 << 30}); ok {
				t.Fatal("served")
			}
			if b, ok := a.AllocateOn(torch.Request{Bytes: 4 << 20}); !ok || a.Free(b.Address) != nil {
				t.Fatalf("%+v is not served", b)
			}
		}
	}
}
