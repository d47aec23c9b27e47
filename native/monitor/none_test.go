//go:build !cuda

package monitor

import (
	"errors"
	"strings"
	"testing"
)

func TestWithoutTheTagNoCardIsSeen(t *testing.T) {
	_, err := Open()
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "without the tag cuda") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}
