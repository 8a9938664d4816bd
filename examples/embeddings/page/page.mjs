/** The page: hands files and queries to the worker, and shows what that finds. */
import { takeFiles } from "../../browser/files.mjs";

/** @param {Worker} worker */
export function startPage(worker) {
  const [dropModel, model, dropText, text, form, query, search, status, found] = [
    ...["drop-model", "model", "drop-text", "text", "form", "query", "search", "status", "found"],
  ].map((id) => document.getElementById(id));

  takeFiles(dropModel, model, (file) => worker.postMessage({ model: file }));
  takeFiles(dropText, text, (file) => worker.postMessage({ text: file }));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    worker.postMessage({ query: query.value });
  });

  worker.onmessage = ({ data }) => {
    status.textContent = data.status;
    search.disabled = !data.ready;
    found.replaceChildren(
      ...(data.found ?? []).map(({ line, similarity, text: passage }) => {
        const item = document.createElement("li");
        const heading = document.createElement("b");
        heading.textContent = `${similarity.toFixed(4)}, line ${line}`;
        item.append(heading, passage);
        return item;
      }),
    );
  };
  worker.onerror = ({ message }) => {
    status.textContent = `Error: ${message}`;
  };
}
