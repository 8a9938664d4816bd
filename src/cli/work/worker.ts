/** A thread of digests.ts: maps the model once, then answers every message, the name of a tensor. */
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { openSync } from "../../index";
import type { LocalModel } from "../arguments/open-model";
import { type Answer, digestOfMapped } from "./digests";

const port = parentPort as MessagePort;
const { path, splits } = workerData as LocalModel;
// The command has checked what must be there; what is cut off may be of other tensors.
const file = openSync(path, { splits, partial: true });

function answer(name: string): Answer {
  try {
    const digest = digestOfMapped(file.tensor(name), (bytes) => port.postMessage({ bytes }));
    return { digest: digest.toString("hex") };
  } catch (error) {
    const { message, code } = error as Error & { code?: string };
    return { error: { message, code } };
  }
}

port.on("message", (name: string) => port.postMessage(answer(name)));
