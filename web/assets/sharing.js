// Sharing by link: the button, its dialog, and opening what a link names. What
// is said to the service and how files are sealed is share.js's.

import { available, load, readLink, remove, save } from "./share.js";
import { $, bytes, el } from "./words.js";

const kept = "tideline-shares"; // in localStorage: what deletes the shares of this browser
const spans = [[3600, "1 hour"], [86400, "1 day"], [604800, "7 days"], [2592000, "30 days"]];

// Titles of the notice; the sentence below comes with the error.
const titles = {
  bad_link: "The link is not whole.",
  bad_key: "The link is not whole.",
  wrong_key: "The key does not open this timeline.",
  expired: "This link has expired.",
  deleted: "This timeline was deleted.",
  unknown: "There is no such timeline.",
  incomplete: "This timeline is still being uploaded.",
  offline: "The share service does not answer.",
  no_service: "The share service does not answer.",
  no_crypto: "This page cannot decrypt.",
};
const again = ["offline", "no_service", "storage", "too_many", "incomplete", "mismatch", "damaged", "cut"];

export class Sharing {
  limits = null; // of the service; null: there is none
  field = ""; // ID.KEY of the timeline on screen, for the address bar
  #made = new WeakMap(); // blob -> what came of sharing it
  #mine = recall();
  #sending = null; // AbortController of an upload
  #loading = null; // and of a download

  constructor(app) {
    this.app = app;
    const on = (id, f) => $(id).addEventListener("click", f);
    on("share", () => this.#show());
    on("share-close", () => $("share-dialog").close());
    on("share-cancel", () => $("share-dialog").close());
    on("share-copy", () => this.#copy());
    on("share-retry", () => this.open());
    on("share-dismiss", () => this.#notice());
    $("share-dialog").addEventListener("close", () => this.#sending?.abort());
    $("share-form").addEventListener("submit", (e) => {
      e.preventDefault();
      if (!this.#sending && !$("share-go").hidden) this.#send();
    });
  }

  // start offers sharing when there is a service and the browser can encrypt.
  async start(told) {
    if (told === "no" || !globalThis.crypto?.subtle) return;
    this.limits = await available();
    if (!this.limits) return;
    $("share").hidden = false;
    $("start-note").textContent = "Files stay in this tab unless you share them; a shared one is encrypted here first.";
  }

  // allow follows what is on screen: only what can be saved can be shared.
  allow(yes) {
    $("share").disabled = !yes;
  }

  // --- opening a link

  // open loads what the address names; false when it names no share.
  async open() {
    this.cancel();
    let at;
    try {
      at = readLink(location.hash);
    } catch (e) {
      this.#failed(e);
      return true;
    }
    if (!at) return false;
    const now = (this.#loading = new AbortController());
    let got;
    await this.app.working(async (progress) => {
      this.#notice("Loading a shared timeline", "and decrypting it in this tab …");
      try {
        got = await load(at, { signal: now.signal, progress });
      } catch (e) {
        if (this.#loading === now) this.#failed(e);
      }
    });
    if (this.#loading !== now) return true; // something else was opened meanwhile
    this.#loading = null;
    if (!got) return true;
    this.#notice();
    await this.app.openFile(new File([got.bytes], `shared ${at.id.slice(0, 6)}`), `${at.id}.${at.key}`);
    $("announce").textContent = "The shared timeline is open.";
    return true;
  }

  // cancel gives a download up, because something else is opened.
  cancel() {
    this.#loading?.abort();
    this.#loading = null;
    this.#notice();
  }

  #failed(e) {
    this.#notice(titles[e.code] ?? "The link does not open.", e.message, e.code ?? "error", again.includes(e.code));
  }

  #notice(title = "", text = "", code = "", retry = false) {
    const n = $("share-notice");
    n.hidden = !title;
    n.dataset.code = code;
    $("share-notice-title").textContent = title;
    $("share-notice-text").textContent = text;
    $("share-retry").hidden = !retry;
    $("share-dismiss").hidden = !code;
  }

  // --- sharing

  #show() {
    const { app } = this;
    if (!app.blob || !this.limits) return;
    const options = spans.filter(([s]) => s <= this.limits.max_expiry);
    const usual = this.limits.default_expiry;
    if (!options.some(([s]) => s === usual)) options.push([usual, "The service’s usual time"]);
    $("k-share-expiry").replaceChildren(...options.map(([s, name]) => el("option", { value: s, selected: s === usual }, name)));
    $("share-key-row").hidden = !this.limits.upload_key;
    $("share-command").textContent = `tideline share FILE --redact --to ${location.origin}`;
    $("share-what").textContent = `${app.current?.name ?? "Timeline"}${app.told && !app.told.own ? " as a timeline" : ""}, ${bytes(app.blob.size)}`;
    this.#state(this.#made.get(app.blob) ?? null);
    $("share-dialog").showModal();
    (this.#made.get(app.blob) ? $("share-link") : $("k-share-expiry")).focus();
  }

  // #state shows the question, or the link that was made.
  #state(made) {
    $("share-ask").hidden = !!made;
    $("share-done").hidden = !made;
    $("share-go").hidden = !!made;
    $("share-sending").hidden = true;
    this.#problem();
    $("share-cancel").textContent = made ? "Done" : "Cancel";
    if (made) {
      $("share-link").value = made.link;
      $("share-until").textContent = `It opens until ${when(made.expires)}.`;
      $("share-local").hidden = !/^(localhost|127\.|\[::1\])/.test(location.hostname);
    }
    this.#list();
  }

  async #send() {
    const { blob, current } = this.app;
    const job = (this.#sending = new AbortController());
    const expiry = Number($("k-share-expiry").value);
    $("share-go").disabled = true;
    this.#problem();
    $("share-sending").hidden = false;
    const progress = (p) => {
      $("share-progress").value = p;
      $("share-percent").textContent = `${Math.round(100 * p)} %`;
    };
    progress(0);
    try {
      const content = new Uint8Array(await blob.arrayBuffer());
      const made = await save(content, { expiresIn: expiry, uploadKey: $("k-share-key").value, signal: job.signal, progress });
      this.#made.set(blob, made);
      this.#mine.push({ id: made.id, owner: made.owner, name: current?.name ?? "timeline", expires: made.expires.getTime() });
      keep(this.#mine);
      if (this.#sending !== job || !$("share-dialog").open) return;
      this.#state(made);
      $("share-link").focus();
      $("share-link").select();
      $("announce").textContent = "The link is made.";
    } catch (e) {
      $("share-sending").hidden = true;
      if (job.signal.aborted) return;
      this.#problem(e.message);
    } finally {
      if (this.#sending === job) this.#sending = null;
      $("share-go").disabled = false;
    }
  }

  #problem(text = "") {
    $("share-problem").hidden = !text;
    $("share-problem").textContent = text;
  }

  async #copy() {
    const field = $("share-link");
    try {
      await navigator.clipboard.writeText(field.value);
      $("share-copy").textContent = "Copied";
      setTimeout(() => ($("share-copy").textContent = "Copy"), 2500);
    } catch {
      field.focus();
      field.select(); // the clipboard is closed to us: Ctrl+C takes it from here
      $("announce").textContent = "The link is selected: copy it with Ctrl C.";
    }
  }

  #list() {
    this.#mine = this.#mine.filter((s) => s.expires > Date.now());
    $("share-earlier").hidden = !this.#mine.length;
    $("share-list").replaceChildren(...this.#mine.toReversed().map((s) => {
      const b = el("button.danger", { type: "button", "aria-label": `Delete the share of ${s.name}` }, "Delete");
      b.addEventListener("click", () => this.#delete(s, b));
      return el("li", {}, el("span", {}, s.name), el("span.hint", {}, `until ${when(new Date(s.expires))}`), b);
    }));
  }

  async #delete(s, button) {
    button.disabled = true;
    try {
      await remove(s.id, s.owner);
    } catch (e) {
      if (e.code !== "unknown") { // which means that it is long over
        button.disabled = false;
        return this.#problem(e.message);
      }
    }
    this.#mine = this.#mine.filter((m) => m !== s);
    keep(this.#mine);
    const shown = this.#made.get(this.app.blob);
    if (shown?.id === s.id) this.#made.delete(this.app.blob);
    this.#state(this.#made.get(this.app.blob) ?? null);
    $("share-close").focus();
    $("announce").textContent = "The share was deleted.";
  }
}

function when(t) {
  return t.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

// recall and keep hold the owner's tokens, never the links: without them a
// share cannot be deleted before its time.
function recall() {
  try {
    const all = JSON.parse(localStorage.getItem(kept) ?? "[]");
    return Array.isArray(all) ? all.filter((s) => s.expires > Date.now()) : [];
  } catch {
    return [];
  }
}

function keep(all) {
  try {
    localStorage.setItem(kept, JSON.stringify(all));
  } catch {
    // Without storage they are known until the page is left.
  }
}
