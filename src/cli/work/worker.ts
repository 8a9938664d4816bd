/** A thread of digests.ts: maps the model once, then answers every message, the name of a tensor. */
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { mappedFiles } from "../../file/unchanged";
import { type GgufFile, openSync } from "../../index";
import { checkStates, compareStates } from "../../source/file";
import type { FileAsOpened } from "../../source/source";
import type { LocalModel } from "../arguments/open-model";
import { type Answer, digestOfMapped } from "./digests";

const port = parentPort as MessagePort;
let file: GgufFile | undefined;

/** Opens the files that the command has opened, or throws. It has checked what must be there; what is cut off may be of other tensors. */
async function opened(): Promise<GgufFile> {
  const { path, splits, opened } = workerData as LocalModel;
  const model = openSync(path, { splits, partial: true });
  for (const [i, { state }] of mappedFiles(model).entries()) compareStates(opened[i] as FileAsOpened, state);
  await checkStates(opened);
  return model;
}

async function answer(name: string): Promise<Answer> {
  try {
    file ??= await opened();
    const digest = digestOfMapped(file.tensor(name), (bytes) => port.postMessage({ bytes }));
    return { digest: digest.toString("hex") };
  } catch (error) {
    const { message, code } = error as Error & { code?: string };
    return { error: { message, code } };
  }
}

port.on("message", async (name: string) => port.postMessage(await answer(name)));
