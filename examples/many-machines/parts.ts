/** The unit of work: a range of weights of one tensor. It says everything that a worker must know. */
import { type GgufFile, ggmlTypes, isGgmlType, open, openRemote, type RemoteGgufFile } from "gguf-native";
import { measure, type Statistics } from "./statistics";

export interface Part {
  /** A URL, or a path that leads to the same file on every machine. */
  model: string;
  tensor: string;
  start: number;
  end: number;
}

type Model = GgufFile | RemoteGgufFile;

/** The models of this process, each opened once. */
const models = new Map<string, Promise<Model>>();

export function openModel(place: string): Promise<Model> {
  let model = models.get(place);
  if (model === undefined) {
    const headers = { "user-agent": `many-machines (process ${process.pid})` }; // says in the server's log who asks
    model = /^https?:/.test(place) ? openRemote(place, { headers }) : open(place);
    models.set(place, model);
    model.catch(() => models.delete(place)); // so that the next attempt tries again
  }
  return model;
}

/** All weights of a model in parts of at most `size`. Tensors of types that this version does not know are left out. */
export async function partsOf(model: string, size: number): Promise<Part[]> {
  const parts: Part[] = [];
  for (const { name, type, elementCount } of (await openModel(model)).tensors.values()) {
    if (!isGgmlType(type)) continue;
    const { blockSize } = ggmlTypes[type];
    const step = Math.max(1, Math.floor(size / blockSize)) * blockSize;
    for (let start = 0; start < elementCount; start += step) {
      parts.push({ model, tensor: name, start, end: Math.min(start + step, elementCount) });
    }
  }
  return parts;
}

export async function measurePart({ model, tensor, start, end }: Part): Promise<Statistics> {
  return measure((await openModel(model)).tensor(tensor), { start, end });
}
