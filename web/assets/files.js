// What a file that does not open looks like, and what to do with it. Files
// that begin with a signature are known to the module already.

const opens = "The page opens timelines (.tideline) and the text of BFC out-of-memory logs";

// Reports that the command reads and the page does not, by what is in their
// beginning, or their name.
const others = [
  ["an nvidia-smi table", /NVIDIA-SMI|^timestamp, *name|memory\.used|used_gpu_memory|used_memory/],
  ["a PyTorch memory snapshot", /^\x80[\x02-\x05][^]*(device_traces|segments)|"(device_traces|segments)"\s*:/],
  ["a PyTorch out-of-memory message", /CUDA out of memory|OutOfMemoryError|PyTorch (CUDA )?memory summary|reserved by PyTorch/i],
  ["an XLA message", /RESOURCE_EXHAUSTED|Buffer assignment|BufferAllocation|HLO module/i],
  ["a driver's message", /NVRM: |CUDA_ERROR_OUT_OF_MEMORY/],
  ["an RMM log", /^Thread,Time,Action,Pointer/i],
  ["a trace of events", /"traceEvents"/],
];
const names = [["a TensorFlow profile", /\.xplane\.pb$/], ["a pprof memory profile", /\.(prof|pb\.gz)$/], ["a PyTorch memory snapshot", /\.pickle$/], ["a compressed trace", /trace\.json\.gz$/]];

// describe says in a sentence or two why a file does not open. why is what its
// reader found wrong.
export async function describe(blob, name, why) {
  if (!blob.size) return `${name} is empty. ${opens}.`;
  const head = String.fromCharCode(...new Uint8Array(await blob.slice(0, 16384).arrayBuffer()));
  if (head.startsWith("\x89TIDE") || /\.tideline$/.test(name)) return `${name}: ${why}`;
  const known = others.find(([, looks]) => looks.test(head)) ?? names.find(([, ends]) => ends.test(name));
  if (known) return `${name}: recognised as ${known[0]}, which the page does not open: “tideline explain ${name}” reads it.`;
  if (/looks like/.test(why)) return `${name}: ${why}`;
  const more = `${opens}; “tideline explain ${name}” reads more kinds.`;
  if (head.includes("\0")) return `${name} looks like binary data of another program. ${more}`;
  if (/^(model|mode|batch|train|devices|steps)\s*:/m.test(head)) return `${name} looks like a workload: run it with “tideline run ${name}”, or set its fields in the form.`;
  if (/^\s*[[{]/.test(head)) return `${name} looks like JSON. ${more}`;
  if (/\.csv$/i.test(name)) return `${name} looks like a table. ${more}`;
  return `${name} looks like text without an out-of-memory report, such as lines “Allocator (GPU_0_bfc) ran out of memory trying to allocate …”. ${more}`;
}
