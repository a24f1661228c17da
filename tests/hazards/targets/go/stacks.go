// SPDX-License-Identifier: BSD-2-Clause

// Go: 100 goroutines, whose stacks grow while traced functions are on them and so move; panics are recovered.
package main

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
)

var calls [3]int64

//go:noinline
func hz_leaf(n int64) int64 {
	atomic.AddInt64(&calls[0], 1)
	return n + 1
}

//go:noinline
func hz_grow(depth int, n int64) int64 {
	var frame [64]int64
	atomic.AddInt64(&calls[1], 1)
	frame[depth%64] = hz_leaf(n)
	if depth == 0 {
		return frame[0]
	}
	return hz_grow(depth-1, n) + frame[depth%64] - n
}

//go:noinline
func hz_recover(n int64) (result int64) {
	defer func() { result = recover().(int64) }()
	atomic.AddInt64(&calls[2], 1)
	panic(n)
}

func main() {
	fmt.Printf("ready %d\n", os.Getpid())
	if len(os.Args) < 2 || os.Args[1] != "--start=now" {
		os.Stdin.Read(make([]byte, 1))
	}
	var all sync.WaitGroup
	var sum int64
	for i := int64(0); i < 100; i++ {
		all.Add(1)
		go func(i int64) {
			defer all.Done()
			atomic.AddInt64(&sum, hz_grow(200, i)+hz_recover(i))
		}(i)
	}
	all.Wait()
	fmt.Printf("{\"answer\":%d,\"calls\":{\"main.hz_leaf\":%d,\"main.hz_grow\":%d,\"main.hz_recover\":%d}}\n",
		sum, calls[0], calls[1], calls[2])
}
