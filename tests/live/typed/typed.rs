// SPDX-License-Identifier: BSD-2-Clause
// Calls functions of Rust with numbers, strings and structures, and prints what it called them with.
use std::hint::black_box;

#[derive(Clone, Copy, PartialEq)]
#[repr(u8)]
enum Mode {
    Off = 1,
    On = 200,
}

struct Inner {
    name: String,
    mode: Mode,
    count: u16,
}

struct Request<'a> {
    path: &'a str,
    inner: Inner,
    weight: f64,
    next: Option<Box<Inner>>,
}

struct Id(u64);

#[inline(never)]
#[no_mangle]
fn take_text(s: &str, n: i32, owned: &String, last: u8) -> i64 {
    black_box((s, n, owned, last));
    -(n as i64)
}

#[inline(never)]
#[no_mangle]
fn take_owned(s: String, mode: Mode, flag: bool, c: i8) -> u32 {
    black_box((&s, mode, flag, c));
    s.len() as u32
}

#[inline(never)]
#[no_mangle]
fn take_request(r: &Request, id: Id, slice: &[u8], after: i16) -> u64 {
    black_box((r, slice, after));
    id.0
}

#[inline(never)]
#[no_mangle]
fn give_text<'a>(s: &'a str, n: usize) -> &'a str {
    black_box(n);
    &s[..n]
}

fn main() {
    let mut calls: Vec<String> = Vec::new();
    let owned = String::from("an owned string");
    for (s, n) in [("", 0), ("some text", -5), ("more text", i32::MAX)] {
        let copy = String::from(s);
        take_text(&copy, n, &owned, 255);
        calls.push(format!(r#"{{"function": "take_text", "result": {}, "args": {{"s": "{}", "n": {}, "owned": "{}", "last": 255}}}}"#, -(n as i64), s, n, owned));
    }
    take_owned(String::from("moved"), Mode::On, true, -128);
    calls.push(r#"{"function": "take_owned", "result": 5, "args": {"s": "moved", "mode": "On", "flag": true, "c": -128}}"#.into());
    take_owned(String::from("x"), Mode::Off, false, 127);
    calls.push(r#"{"function": "take_owned", "result": 1, "args": {"s": "x", "mode": "Off", "flag": false, "c": 127}}"#.into());
    let path = String::from("/api/rust");
    let r = Request {
        path: &path,
        inner: Inner { name: String::from("inner name"), mode: Mode::On, count: 65535 },
        weight: 0.5,
        next: None,
    };
    black_box(&r.next);
    take_request(&r, Id(u64::MAX), &[1, 2, 3], -2);
    calls.push(r#"{"function": "take_request", "result": "18446744073709551615", "args": {"r.path": "/api/rust", "r.inner.name": "inner name", "r.inner.mode": "On", "r.inner.count": 65535, "r.weight": "0.5"}}"#.into());
    let text = String::from("given text");
    give_text(&text, 5);
    calls.push(r#"{"function": "give_text", "result": "given", "args": {"s": "given text", "n": 5}}"#.into());
    println!("{{\"calls\": [{}]}}", calls.join(", "));
}
