// SPDX-License-Identifier: BSD-2-Clause
// Stacks of one thread or of all threads merged, with totals, and callees ordered by what they took.

/** The thread of each node of data.flame (see data.js); callers come before their callees. */
function threadsOf(flame) {
  const threads = new Uint32Array(flame.parent.length);
  for (let i = 1; i < threads.length; i++) threads[i] = flame.parent[i] ? threads[flame.parent[i]] : flame.name[i];
  return threads;
}

/**
 * Node 0 is the root. @thread: an index, or -1 for all of them. Of each node: parent, name (a function), depth, self
 * (ns), calls, total (ns, of self and callees), allCalls (of itself and callees), and its callees from first[i] to
 * first[i + 1] in children, those with the greatest @key first.
 */
export function makeTree(flame, thread, key) {
  const threads = threadsOf(flame), place = new Int32Array(flame.parent.length);
  const tree = { parent: [-1], name: [-1], depth: [0], self: [0], calls: [0] }, known = new Map();
  const factor = flame.name.reduce((most, name) => Math.max(most, name), 0) + 1;
  for (let i = 1; i < place.length; i++) {
    if (!flame.parent[i] || (thread >= 0 && threads[i] !== thread)) continue; // threads are the root
    const parent = place[flame.parent[i]], id = parent * factor + flame.name[i];
    let node = known.get(id);
    if (node === undefined) {
      node = tree.parent.length;
      known.set(id, node);
      tree.parent.push(parent);
      tree.name.push(flame.name[i]);
      tree.depth.push(tree.depth[parent] + 1);
      tree.self.push(0);
      tree.calls.push(0);
    }
    place[i] = node;
    tree.self[node] += flame.self[i];
    tree.calls[node] += flame.calls[i];
  }
  return addTotals(tree, key);
}

function addTotals(tree, key) {
  const n = tree.parent.length, sizes = new Uint32Array(n + 1);
  tree.total = Float64Array.from(tree.self);
  tree.allCalls = Float64Array.from(tree.calls);
  for (let i = n - 1; i > 0; i--) {
    tree.total[tree.parent[i]] += tree.total[i];
    tree.allCalls[tree.parent[i]] += tree.allCalls[i];
    sizes[tree.parent[i] + 1]++;
  }
  for (let i = 0; i < n; i++) sizes[i + 1] += sizes[i];
  tree.first = sizes.slice();
  tree.children = new Uint32Array(n);
  for (let i = 1; i < n; i++) tree.children[sizes[tree.parent[i]]++] = i;
  tree.value = key === "calls" ? tree.allCalls : tree.total;
  for (let i = 0; i < n; i++)
    if (tree.first[i + 1] - tree.first[i] > 1)
      tree.children.subarray(tree.first[i], tree.first[i + 1]).sort((a, b) => tree.value[b] - tree.value[a]);
  tree.depths = tree.depth.reduce((most, depth) => Math.max(most, depth), 0);
  return tree;
}

/** Who calls function @index, and whom it calls: [function, calls, ns], those with most time first. */
export function neighbours(tree, index) {
  const callers = new Map(), callees = new Map();
  const add = (map, name, calls, ns) => {
    const sum = map.get(name) || [name, 0, 0];
    sum[1] += calls;
    sum[2] += ns;
    map.set(name, sum);
  };
  for (let i = 1; i < tree.parent.length; i++) {
    const parent = tree.parent[i];
    if (tree.name[i] === index) add(callers, tree.name[parent], tree.calls[i], tree.total[i]);
    if (tree.name[parent] === index) add(callees, tree.name[i], tree.calls[i], tree.total[i]);
  }
  const sorted = (map) => [...map.values()].sort((a, b) => b[2] - a[2]);
  return { callers: sorted(callers), callees: sorted(callees) };
}
