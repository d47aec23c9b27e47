// Stacks as a tree: what the module tells of who holds the memory, made into
// nodes with their outermost frame on top. No drawing here.

// A frame of a foreign program: a name, a space, a file, a line.
const frame = /^(.*?) (\S.*):(\d+)$/;

// Files that are not the user's own.
const library = /(^|\/)(site-packages|dist-packages|torch|tensorflow|jax|lib\/python[\d.]*)\/|\.(cc|cpp|cu|c|h|hpp|so)$|^(\?\?|<.*>)$/;

// parts is the way of a stack through the tree, outermost first. A tensor of our
// own runs is a name of scopes, parted by slashes, with what its op adds.
function parts(stack, op) {
  if (!stack.length) return [op || "no name"];
  if (stack.length > 1 || frame.test(stack[0])) return stack;
  const way = stack[0].split("/").filter(Boolean);
  const more = addition(stack[0].replace(/:\d+$/, ""), op);
  return more && more !== way.at(-1) ? [...way, more] : way;
}

// addition is what an op's name says beyond its tensor's.
function addition(name, op) {
  if (!op || op === name) return "";
  return op.startsWith(`${name}/`) ? op.slice(name.length + 1) : op.slice(op.lastIndexOf("/") + 1);
}

// parse takes a frame apart; what is no frame is all name.
function parse(text) {
  const m = frame.exec(text);
  return m ? { name: m[1], file: m[2], line: m[3], lib: library.test(m[2]) } : { name: text, file: "", line: "", lib: false };
}

class Node {
  bytes = 0;
  blocks = 0;
  kids = new Map();
  kinds = new Map(); // category -> bytes

  constructor(text, parent) {
    this.parent = parent;
    this.chain = [text]; // the frames that it stands for, when folded
    this.hash = parent ? mix(parent.hash, text) : 0x811c9dc5;
    this.text = text;
    this.last = "";
    Object.assign(this, parse(text));
  }

  // take makes the node stand for its only kid as well: by the innermost frame
  // of the user's own, and the name of the last.
  take(only) {
    this.chain.push(only.text);
    this.hash = only.hash;
    if (only.lib && !this.lib) {
      this.last = only.name;
      return;
    }
    const { text, name, file, line, lib } = only;
    Object.assign(this, { text, name, file, line, lib, last: "" });
  }

  add(bytes, blocks, kind) {
    this.bytes += bytes;
    this.blocks += blocks;
    this.kinds.set(kind, (this.kinds.get(kind) ?? 0) + bytes);
  }

  // kind is the category of most of the bytes, and null where none has most.
  get kind() {
    let best = null;
    for (const [k, n] of this.kinds) if (n * 3 > this.bytes * 2) best = k;
    return best;
  }
}

function mix(h, text) {
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  return Math.imul(h ^ 0x1f, 16777619) >>> 0;
}

// grow makes the tree of an answer. Its nodes are sorted by measure, "bytes" or
// "blocks"; folded, a frame that calls a single other one stands for both.
export function grow(answer, measure, fold) {
  const root = new Node("All", null);
  root.deepest = 0;
  const bare = { bytes: 0, blocks: 0 }; // came without a stack
  let foreign = false;
  for (const [bytes, blocks, kind, op, ...stack] of answer.stacks) {
    const frames = stack.map((n) => answer.frames[n]);
    foreign ||= frames.length > 1 || (frames.length === 1 && frame.test(frames[0]));
    if (!frames.length) {
      bare.bytes += bytes;
      bare.blocks += blocks;
    }
    const way = parts(frames, answer.frames[op]);
    root.deepest = Math.max(root.deepest, way.length);
    let node = root;
    node.add(bytes, blocks, kind);
    for (const text of way) {
      let kid = node.kids.get(text);
      if (!kid) node.kids.set(text, (kid = new Node(text, node)));
      kid.add(bytes, blocks, kind);
      node = kid;
    }
  }
  const [bytes, blocks, stacks] = answer.rest;
  if (stacks) {
    const rest = new Node(`${stacks} further stacks`, root);
    rest.rest = true;
    rest.add(bytes, blocks, -1);
    root.kids.set("\n", rest);
    root.add(bytes, blocks, -1);
  }
  settle(root, measure, fold);
  return Object.assign(root, { foreign, bare });
}

// settle turns the maps of kids into lists, largest first, and folds.
function settle(root, measure, fold) {
  const todo = [root];
  while (todo.length) {
    const node = todo.pop();
    let kids = [...node.kids.values()];
    while (fold && node !== root && kids.length === 1 && kids[0].bytes === node.bytes && kids[0].blocks === node.blocks) {
      const [only] = kids;
      node.take(only);
      kids = [...only.kids.values()];
    }
    node.kids = kids.sort((a, b) => (a.rest ? 1 : 0) - (b.rest ? 1 : 0) || b[measure] - a[measure] || b.bytes - a.bytes || (a.text < b.text ? -1 : 1));
    for (const k of kids) {
      k.parent = node;
      todo.push(k);
    }
  }
}

// find is the node of a hash, or the root.
export function find(root, hash) {
  const todo = [root];
  while (todo.length) {
    const node = todo.pop();
    if (node.hash === hash) return node;
    todo.push(...node.kids);
  }
  return root;
}

// way is the nodes from the root to one, without the root.
export function way(node) {
  const list = [];
  for (let n = node; n.parent; n = n.parent) list.unshift(n);
  return list;
}

// label is a node in a few words, and place is where its frame stands.
export function label(node) {
  if (!node.parent) return "All";
  if (node.chain.length === 1) return node.name;
  if (node.file) return `… ${node.name}${node.last ? ` › ${node.last}` : ""}`;
  return node.chain.join("/");
}

export const place = (node) => (node.file ? `${node.file.slice(node.file.lastIndexOf("/") + 1)}:${node.line}` : "");

// own is what the node holds itself, beyond its kids.
export const own = (node, measure) => node[measure] - node.kids.reduce((n, k) => n + k[measure], 0);
