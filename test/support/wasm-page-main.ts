/** The page that runs the checks of wasm-page.ts. */
import { openBlob } from "gguf-native/wasm";
import type { WasmInput } from "./wasm-facts";
import { runChecks } from "./wasm-page";

/** What is used of the file system that belongs to a page, whose types come with those of browsers. */
interface PageFile {
  getFile(): Promise<Blob>;
  createWritable(): Promise<{ write(bytes: Blob): Promise<void>; close(): Promise<void> }>;
}
const { navigator } = globalThis as unknown as {
  navigator: {
    storage: { getDirectory(): Promise<{ getFileHandle(name: string, options: object): Promise<PageFile> }> };
  };
};

/** Opens a file, which is then edited: what reading it says. */
async function readEdited(url: string): Promise<string> {
  const folder = await navigator.storage.getDirectory();
  const handle = await folder.getFileHandle("model.gguf", { create: true });
  const write = async (content: Blob): Promise<void> => {
    const writable = await handle.createWritable();
    await writable.write(content);
    await writable.close();
  };
  const content = await (await fetch(url)).blob();
  await write(content);
  const file = await openBlob(await handle.getFile());
  await write(content.slice(0, 1000));
  try {
    await file.tensors.values().next().value!.dequantize();
    return "read";
  } catch (error) {
    return `${(error as { code: string }).code}: ${(error as Error).message}`;
  }
}

async function main(): Promise<void> {
  const input = (await (await fetch("/input")).json()) as WasmInput;
  const url = new URL(input.url, (globalThis as unknown as { location: URL }).location.href).href;
  const safetensors = { ...input.safetensors, url: new URL(input.safetensors.url, url).href };
  const result = { ...(await runChecks({ ...input, url, safetensors })), edited: await readEdited(url) };
  await fetch("/result", { method: "POST", body: JSON.stringify(result) });
}

main();
