// The agent's HTTP interface. The cookie of the page's first visit goes along
// by itself; every failure becomes an Error with the agent's own words.

const base = "/api/v1";

async function request(path, options = {}) {
  const answer = await fetch(base + path, { credentials: "same-origin", ...options });
  const text = await answer.text();
  let body = null;
  try {
    body = text ? JSON.parse(text) : null;
  } catch {
    body = null; // an error page is not JSON; its text is shown
  }
  if (!answer.ok) {
    const e = new Error(body?.message || body?.error || text.trim() || `the agent answered ${answer.status}`);
    e.problems = Array.isArray(body) ? body : body?.problems;
    throw e;
  }
  return body;
}

export const agent = {
  info: () => request("/info"),
  runs: () => request("/runs"),
  files: () => request("/files"),
  run: (id) => request(`/runs/${encodeURIComponent(id)}`),
  // original is the foreign file that a timeline was made of, as a Blob.
  original: async (id) => {
    const answer = await fetch(`${base}/runs/${encodeURIComponent(id)}/original`, { credentials: "same-origin" });
    if (!answer.ok) throw new Error((await answer.json().catch(() => null))?.error ?? `the agent answered ${answer.status}`);
    return answer.blob();
  },
  stop: (id) => request(`/runs/${encodeURIComponent(id)}/stop`, { method: "POST" }),
  // start begins a run: alone on a machine of its own, or on the agent's, whose
  // cards all such runs share.
  start: (workload, alone = false) => request(`/runs${alone ? "?alone=true" : ""}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(workload),
  }),
  streamURL: (id) => `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${base}/runs/${encodeURIComponent(id)}/stream`,
};
