/** What the pages of the examples have in common. */

/**
 * Calls `choose` with each file that is chosen, or dropped.
 *
 * @param {HTMLElement} drop where files are dropped
 * @param {HTMLInputElement} input where they are chosen
 * @param {(file: File) => void} choose
 */
export function takeFiles(drop, input, choose) {
  const take = (files) => {
    if (files.length > 0) choose(files[0]);
  };
  input.addEventListener("change", () => take(input.files));
  drop.addEventListener("dragover", (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    take(event.dataTransfer.files);
  });
}

/** Lets messages come in: not a timer, which browsers make wait. */
export function pause() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(undefined);
  });
}
