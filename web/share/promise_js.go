package share

import (
	"errors"
	"fmt"
	"syscall/js"
)

// await blocks until a promise is settled.
func await(promise js.Value) (js.Value, error) {
	type outcome struct {
		value js.Value
		err   error
	}
	done := make(chan outcome, 1)
	then := js.FuncOf(func(_ js.Value, args []js.Value) any {
		done <- outcome{value: args[0]}
		return nil
	})
	defer then.Release()
	catch := js.FuncOf(func(_ js.Value, args []js.Value) any {
		done <- outcome{err: errors.New(args[0].Call("toString").String())}
		return nil
	})
	defer catch.Release()
	promise.Call("then", then, catch)
	o := <-done
	return o.value, o.err
}

func absent(v js.Value) bool { return v.IsNull() || v.IsUndefined() }

// object makes a JavaScript object.
func object(fields map[string]any) js.Value { return js.ValueOf(fields) }

func bytesFromJS(buffer js.Value) []byte {
	a := js.Global().Get("Uint8Array").New(buffer)
	b := make([]byte, a.Get("length").Int())
	js.CopyBytesToGo(b, a)
	return b
}

func bytesToJS(b []byte) js.Value {
	a := js.Global().Get("Uint8Array").New(len(b))
	js.CopyBytesToJS(a, b)
	return a
}

func failed(what, name string, err error) error { return fmt.Errorf("%s %s: %w", what, name, err) }
