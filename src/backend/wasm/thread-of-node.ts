/** A thread of Node.js that helps. */
import { parentPort, workerData } from "node:worker_threads";
import { help } from "./thread";

help(workerData, () => parentPort?.postMessage(undefined));
