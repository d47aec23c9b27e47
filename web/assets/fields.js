// Flat fields, the form in which workloads travel: key=value, one a line, with
// dotted keys.

export function parse(text) {
  const fields = new Map();
  for (const line of text.split("\n")) {
    const at = line.indexOf("=");
    if (at <= 0) continue;
    let value = line.slice(at + 1);
    if (value.startsWith('"')) {
      try {
        value = JSON.parse(value);
      } catch {
        // A Go literal that JSON does not know: shown as it is.
      }
    }
    fields.set(line.slice(0, at), value);
  }
  return fields;
}

export const encode = (fields) => [...fields].map(([k, v]) => `${k}=${v}\n`).join("");

// tree makes objects and lists of dotted keys; value may change each value.
export function tree(fields, value = (_, v) => v) {
  const root = {};
  for (const [path, v] of fields) {
    const parts = path.split(".");
    let at = root;
    parts.slice(0, -1).forEach((p, i) => {
      at = at[p] ??= /^\d+$/.test(parts[i + 1]) ? [] : {};
    });
    at[parts.at(-1)] = value(path, v);
  }
  return root;
}
