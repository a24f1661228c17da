// SPDX-License-Identifier: BSD-2-Clause
// Rust: 200 panics through 20 frames, with a destructor in each, are caught; ten threads work beside that.
use std::io::{Read, Write};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

static CALLS: [AtomicI64; 3] = [AtomicI64::new(0), AtomicI64::new(0), AtomicI64::new(0)];
static DROPPED: AtomicI64 = AtomicI64::new(0);

struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Relaxed);
    }
}

// A probe cannot be placed on an instruction with a lock prefix, so a load comes first.
#[inline(always)]
fn hit(function: usize) {
    std::hint::black_box(CALLS[function].load(Relaxed));
    CALLS[function].fetch_add(1, Relaxed);
}

#[no_mangle]
#[inline(never)]
pub fn hz_leaf(n: i64) -> i64 {
    hit(0);
    std::hint::black_box(n + 1)
}

#[no_mangle]
#[inline(never)]
pub fn hz_pass(depth: i64, n: i64) -> i64 {
    let _guard = Guard;
    hit(1);
    if depth == 0 {
        std::panic::panic_any(n);
    }
    std::hint::black_box(hz_pass(depth - 1, n) + 1)
}

#[no_mangle]
#[inline(never)]
pub fn hz_catch(n: i64) -> i64 {
    hit(2);
    match std::panic::catch_unwind(|| hz_pass(19, n)) {
        Ok(n) => n,
        Err(payload) => *payload.downcast::<i64>().unwrap_or_default(),
    }
}

fn main() {
    println!("ready {}", std::process::id());
    std::io::stdout().flush().unwrap();
    if !std::env::args().any(|a| a == "--start=now") {
        std::io::stdin().read(&mut [0]).unwrap();
    }
    std::panic::set_hook(Box::new(|_| {}));
    let threads: Vec<_> = (0..10)
        .map(|t| std::thread::spawn(move || (0..100).map(|n| hz_leaf(t * n)).sum::<i64>()))
        .collect();
    let caught: i64 = (0..200).map(hz_catch).sum();
    let worked: i64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
    let n = |i: usize| CALLS[i].load(Relaxed);
    println!(
        "{{\"answer\":{},\"calls\":{{\"hz_leaf\":{},\"hz_pass\":{},\"hz_catch\":{}}}}}",
        caught + worked + DROPPED.load(Relaxed), n(0), n(1), n(2)
    );
}
