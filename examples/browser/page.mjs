/** The page: hands a file and a prompt to the worker, and shows what that writes. */

import { takeFiles } from "./files.mjs";

/** @param {() => Worker} makeWorker starts the worker */
export function startPage(makeWorker) {
  const [drop, file, form, prompt, tokens, write, stop, status, text] = [
    ...["drop", "file", "form", "prompt", "tokens", "write", "stop", "status", "text"],
  ].map((id) => document.getElementById(id));
  let worker;

  /** Starts a worker with the model, in place of the one with another model. */
  function load(chosen) {
    worker?.terminate();
    write.disabled = true;
    stop.disabled = true;
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
    stop.disabled = true;
    write.disabled = message.error !== undefined && !message.ready;
    status.textContent = message.error ?? message.status;
  }

  takeFiles(drop, file, load);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    text.textContent = prompt.value;
    status.textContent = "Writing …";
    write.disabled = true;
    stop.disabled = false;
    worker.postMessage({ prompt: prompt.value, tokens: tokens.valueAsNumber });
  });
  stop.addEventListener("click", () => worker.postMessage({ stop: true }));
}
