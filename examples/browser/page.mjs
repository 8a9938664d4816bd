/** The page: hands a file and a prompt to the worker, and shows what that writes. */

import { takeFiles } from "./files.mjs";

/** @param {() => Worker} makeWorker starts the worker */
export function startPage(makeWorker) {
  const [drop, file, form, prompt, tokens, write, stop, save, receipt, status, text] = [
    ...["drop", "file", "form", "prompt", "tokens", "write", "stop", "save", "receipt", "status", "text"],
  ].map((id) => document.getElementById(id));
  let worker;

  /** Starts a worker with the model, in place of the one with another model. */
  function load(chosen) {
    worker?.terminate();
    for (const control of [write, stop, save, receipt]) control.disabled = true;
    status.textContent = `Opening ${chosen.name} …`;
    worker = makeWorker();
    worker.onmessage = ({ data }) => show(data);
    worker.onerror = ({ message }) => show({ error: message });
    worker.postMessage({ file: chosen });
  }

  function show(message) {
    if (message.text !== undefined) {
      text.append(message.text);
      return;
    }
    if (message.begin !== undefined) {
      begin(message.begin);
      return;
    }
    if (message.receipt !== undefined) download(message.receipt);
    stop.disabled = true;
    save.disabled = text.textContent === "" || message.error !== undefined;
    write.disabled = receipt.disabled = message.error !== undefined && !message.ready;
    status.textContent = message.error ?? message.status;
  }

  /** Shows that a text is being written, which begins with `start`. */
  function begin(start) {
    text.textContent = start;
    status.textContent = "Writing …";
    for (const control of [write, save, receipt]) control.disabled = true;
    stop.disabled = false;
  }

  function download(content) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type: "application/json" }));
    link.download = "receipt.json";
    link.click();
    URL.revokeObjectURL(link.href);
  }

  takeFiles(drop, file, load);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    begin(prompt.value);
    worker.postMessage({ prompt: prompt.value, count: tokens.valueAsNumber });
  });
  save.addEventListener("click", () => worker.postMessage({ save: true }));
  receipt.addEventListener("change", async () => {
    const [chosen] = receipt.files;
    if (chosen !== undefined) worker.postMessage({ check: await chosen.text(), name: chosen.name });
    receipt.value = ""; // the same file can be chosen again
  });
  stop.addEventListener("click", () => worker.postMessage({ stop: true }));
}
