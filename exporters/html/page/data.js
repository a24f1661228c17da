// SPDX-License-Identifier: BSD-2-Clause
// Reads the data blocks that kxray puts behind the page. exporters/html/html.c says what they contain.

const decoder = new TextDecoder();

/** Base64 to bytes. */
function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflate(element) {
  const packed = new Blob([bytesOf(element.textContent)]).stream();
  element.remove(); // its text is needed only once
  return new Uint8Array(await new Response(packed.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer());
}

/** Block names to bytes; a block comes in pieces, in order. */
export async function readBlocks() {
  const pieces = new Map();
  for (const element of document.querySelectorAll("script[data-kx]")) {
    const name = element.dataset.kx;
    if (!pieces.has(name)) pieces.set(name, []);
    pieces.get(name).push(inflate(element));
  }
  const blocks = {};
  for (const [name, list] of pieces) {
    const parts = await Promise.all(list);
    const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    parts.reduce((at, part) => (all.set(part, at), at + part.length), 0);
    blocks[name] = all;
  }
  return blocks;
}

/** Varints (LEB128) one after the other; exact up to 2^53. */
class Varints {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }
  get more() {
    return this.at < this.bytes.length;
  }
  next() {
    const bytes = this.bytes;
    let byte = bytes[this.at++];
    if (byte < 128) return byte;
    let value = byte & 127, factor = 128;
    do {
      byte = bytes[this.at++];
      value += (byte & 127) * factor;
      factor *= 128;
    } while (byte > 127);
    return value;
  }
}

const TIMES = ["total", "self", "min", "p50", "p90", "p99", "max"];
const OFF_TIMES = ["off", "wait", "self_off"];

function readFunctions(blocks, head) {
  const names = JSON.parse(decoder.decode(blocks.names));
  const v = new Varints(blocks.numbers);
  const times = head.sched ? TIMES.concat(OFF_TIMES) : TIMES;
  return names.map((name, index) => {
    const module = v.next();
    const f = { index, name, module: module ? head.modules[module - 1] : "" };
    for (const key of ["count", "open", "no_exit", "all_calls"]) f[key] = v.next();
    for (const key of times) f[key] = v.next();
    const n = v.next();
    f.first = n ? v.next() : 0;
    f.buckets = Array.from({ length: n }, () => v.next());
    f.lower = (name + " " + f.module).toLowerCase();
    return f;
  });
}

/** The stacks of all threads: node 0 is nobody's, threads are below it. */
function readFlame(bytes) {
  const v = new Varints(bytes);
  const parent = [0], name = [0], self = [0], calls = [0];
  while (v.more) {
    const back = v.next();
    parent.push(back ? parent.length - back : 0);
    name.push(v.next());
    self.push(v.next());
    calls.push(v.next());
  }
  return { parent, name, self, calls };
}

const MERGED = 4;

/** The rows of the timeline. Slices of all rows stand in the same arrays, from row.first to row.end. */
function readRows(blocks, head) {
  const n = head.slices, rows = [], v = new Varints(blocks.rows);
  const all = {
    start: new Float64Array(n), end: new Float64Array(n), name: new Uint32Array(n), how: new Uint8Array(n),
    count: new Uint32Array(n), busy: new Float64Array(n), sum: new Float64Array(n + 1), // sum: of busy before it
  };
  const tags = new Varints(blocks.tags), gaps = new Varints(blocks.gaps), times = new Varints(blocks.times);
  const merged = new Varints(blocks.merged);
  let at = 0;
  while (v.more) {
    const row = { thread: v.next(), kind: v.next(), depth: v.next(), first: at, end: at + v.next(), all };
    let time = 0;
    for (; at < row.end; at++) {
      const tag = tags.next(), start = time + gaps.next(), took = times.next();
      time = start + took;
      all.start[at] = start;
      all.end[at] = time;
      all.name[at] = Math.floor(tag / 8);
      all.how[at] = tag & 3;
      all.count[at] = tag & MERGED ? merged.next() : 1;
      all.busy[at] = tag & MERGED ? merged.next() : took;
      all.sum[at + 1] = all.sum[at] + all.busy[at];
    }
    rows.push(row);
  }
  return rows;
}

export async function readData() {
  const blocks = await readBlocks();
  if (!blocks.merged) throw new Error("the file is not complete");
  const head = JSON.parse(decoder.decode(blocks.head));
  const functions = readFunctions(blocks, head);
  return { head, functions, flame: readFlame(blocks.flame), rows: readRows(blocks, head) };
}
