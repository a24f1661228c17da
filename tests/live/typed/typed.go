// SPDX-License-Identifier: BSD-2-Clause
// Calls functions of Go with numbers, strings and structures, and prints what it called them with.
package main

import (
	"fmt"
	"strings"
)

type Mode uint8

type Inner struct {
	Name  string
	Count uint16
	Up    bool
}

type Request struct {
	Path   string
	In     Inner
	Next   *Request
	Weight float64
}

//go:noinline
func takeText(s string, n int, last uint8, other string) int64 {
	sink = s + other
	return int64(-n) - int64(last)
}

//go:noinline
func takeRequest(r *Request, m Mode, flag bool, small int16) (string, error) {
	sink = r.Path
	return r.Path[1:], nil
}

//go:noinline
func (r *Request) method(n int32, ratio float64, after int) int32 {
	sink = r.Path
	if ratio > 100 || after > 100 {
		return 0
	}
	return n + 1
}

//go:noinline
func twoResults(a int, b int) (int, int) {
	sink = "x"
	return a + b, a - b
}

var sink string

func main() {
	var calls []string
	for i, s := range []string{"", "some text", "more text"} {
		copied := strings.Clone(s)
		other := strings.Repeat("o", i+1)
		takeText(copied, i-1, 200, other)
		calls = append(calls, fmt.Sprintf(`{"function": "main.takeText", "result": %d, "args": {"s": "%s", "n": %d, "last": 200, "other": "%s"}}`, 1-i-200, s, i-1, other))
	}
	next := &Request{Path: strings.Clone("/next"), Weight: 0.25}
	r := &Request{Path: strings.Clone("/api/go"), In: Inner{Name: strings.Clone("inner"), Count: 65535, Up: true}, Next: next}
	takeRequest(r, 7, true, -300)
	calls = append(calls, `{"function": "main.takeRequest", "result": "api/go", "args": {"r.Next.Path": "/next", "r.In.Name": "inner", "r.In.Count": 65535, "small": -300}}`)
	next.method(5, 1.5, 6)
	calls = append(calls, `{"function": "main.(*Request).method", "result": 6, "args": {"r.Weight": "0.25", "n": 5, "after": 6}}`)
	twoResults(10, 3)
	calls = append(calls, `{"function": "main.twoResults", "result": 13, "args": {"a": 10, "b": 3}}`)
	fmt.Printf("{\"calls\": [%s]}\n", strings.Join(calls, ", "))
}
