/** Before a model is open: where to drop, choose or name one. */
import { useId, useState } from "preact/hooks";
import { modelUrl } from "../lib/address";
import type { ModelSource } from "../lib/protocol";
import { messageOf } from "./client";
import { Failure } from "./parts";
import { base } from "./place";

/** Chooses a model: files of this machine, or a URL. */
export function Chooser({
  fileLabel,
  urlLabel,
  testId,
  onChoose,
}: {
  fileLabel: string;
  urlLabel: string;
  testId: string;
  onChoose: (source: ModelSource) => void;
}) {
  const id = useId();
  const [url, setUrl] = useState("");
  const [error, setError] = useState("");
  const submit = (event: Event): void => {
    event.preventDefault();
    try {
      modelUrl(url, base); // throws where it is none
      onChoose({ url: url.trim() });
      setError("");
    } catch (problem) {
      setError(messageOf(problem));
    }
  };
  return (
    <div class="chooser">
      <label class="button" for={`${id}-file`}>
        {fileLabel}
      </label>
      <input
        class="file"
        id={`${id}-file`}
        type="file"
        multiple
        data-testid={testId}
        onChange={(event) => {
          const files = [...(event.currentTarget.files ?? [])];
          event.currentTarget.value = "";
          if (files.length > 0) onChoose({ files });
        }}
      />
      <form onSubmit={submit}>
        <input
          type="text"
          inputMode="url"
          aria-label={urlLabel}
          placeholder="https://... or hf://owner/name/file.gguf"
          value={url}
          spellcheck={false}
          autocomplete="off"
          onInput={(event) => setUrl(event.currentTarget.value)}
        />
        <button type="submit" class="secondary">
          Open
        </button>
      </form>
      {error === "" ? null : <Failure message={error} />}
    </div>
  );
}

/** A model that lies beside the page, where that is on a site with one; else a small one of Hugging Face. */
const beside = document.getElementById("app")?.dataset.sample;
const sample = beside ?? "hf://ggml-org/models/tinyllamas/stories260K.gguf";

export function Start({ onChoose }: { onChoose: (source: ModelSource) => void }) {
  return (
    <div class="start">
      <h1>Look into a model</h1>
      <p class="lead">
        Drop a GGUF file here, or all files of a split model. Its header is read at once, its weights when you look at
        them.
      </p>
      <Chooser fileLabel="Choose a file" urlLabel="URL of a model" testId="file" onChoose={onChoose} />
      <p>
        <a href={`?${new URLSearchParams({ url: sample })}`}>Look at a sample model</a>
        {beside === undefined ? " of Hugging Face (1 MB)" : ""}, or read{" "}
        <a href="https://www.npmjs.com/package/gguf-native">the documentation</a>.
      </p>
      <p class="note">
        Nothing leaves this machine: files are read here, in the browser. A URL is fetched from its own server, in
        parts.
      </p>
    </div>
  );
}
