/** The page: hands a file and a prompt to the worker, and shows what that writes. */

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

  function choose(files) {
    if (files.length > 0) load(files[0]);
  }

  file.addEventListener("change", () => choose(file.files));
  drop.addEventListener("dragover", (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    choose(event.dataTransfer.files);
  });
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
