// SPDX-License-Identifier: BSD-2-Clause

// Goroutines that sleep in main.nap, and so take turns on threads and move between them. Prints their calls, and the longest as seen by the
// caller: {"calls":{"main.nap":N},"longest_ns":N}.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

var calls, longest int64

//go:noinline
func nap(n int) int {
	atomic.AddInt64(&calls, 1)
	time.Sleep(2 * time.Millisecond)
	return n + 1
}

func timed() {
	start := time.Now()
	nap(1)
	took := int64(time.Since(start))
	for old := atomic.LoadInt64(&longest); took > old && !atomic.CompareAndSwapInt64(&longest, old, took); {
		old = atomic.LoadInt64(&longest)
	}
}

func main() {
	fmt.Printf("ready %d\n", os.Getpid())
	if len(os.Args) < 2 || os.Args[1] != "--start=now" {
		os.Stdin.Read(make([]byte, 1))
	}
	runtime.GOMAXPROCS(4)
	var all sync.WaitGroup
	for i := 0; i < 40; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for n := 0; n < 100; n++ {
				timed()
			}
		}()
	}
	all.Wait()
	fmt.Printf("{\"calls\":{\"main.nap\":%d},\"longest_ns\":%d}\n", calls, longest)
}
