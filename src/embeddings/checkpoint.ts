/** Checkpoints of safetensors, converted in memory. */
import { GgufError } from "../base/errors";
import { ggmlTypes } from "../base/types";
import { isAlwaysF32, modulesOf, openCheckpoint, placeOf, readJson } from "../convert/converted-model";
import { type GgufFile, parse } from "../file/parse";
import { GgufWriter } from "../writer/writer";
import { sharedBytes } from "./post-model";

/** Names of texts that are put before others, as sentence-transformers keeps them. */
const PROMPTS = "config_sentence_transformers.json";

/** The file type of a model of Q8_0. */
const FILE_TYPE = 7;

/**
 * @param isRounded whether matrices become Q8_0, where their rows are whole blocks; otherwise they stay as they are
 * @throws as `convertModel`
 */
export async function loadCheckpoint(
  input: string | URL,
  isRounded: boolean,
  signal: AbortSignal | undefined,
): Promise<{ file: GgufFile; prompts: Readonly<Record<string, string>> }> {
  const place = await placeOf(input);
  const { folder } = place;
  const { prompts } = (await readJson<{ prompts?: unknown }>(folder, PROMPTS, signal)) ?? {};
  const texts = Object.entries(Object(prompts)).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
  const { converted } = await openCheckpoint(place, { fileType: () => FILE_TYPE }, signal);
  try {
    const { tensors } = converted;
    if (tensors.has("cls.output.weight") && !tensors.has("cls.weight")) {
      const detail = "its scores go through pooler.dense, which is not converted: llama.cpp leaves it out";
      throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail, { path: folder.path });
    }
    const hasDense = (await modulesOf(folder, "Dense", signal)).length > 0;
    if (hasDense && !tensors.has("dense_2.weight")) {
      const detail = "its vectors go through a module of the kind Dense, which is not converted: open it as GGUF";
      throw new GgufError("ERR_GGUF_UNSUPPORTED_TYPE", detail, { path: `${folder.path}modules.json` });
    }
    const writer = GgufWriter.from(converted);
    for (const tensor of tensors.values()) {
      const { name, shape } = tensor;
      const fits = (shape[0] as number) % ggmlTypes.Q8_0.blockSize === 0;
      if (isRounded && fits && !isAlwaysF32(name, shape))
        writer.addTensor(name, "Q8_0", shape, () => tensor.dequantize({ signal }));
    }
    const bytes = await sharedBytes(writer, folder.path, signal);
    return { file: parse(bytes), prompts: Object.fromEntries(texts) };
  } finally {
    converted.close();
  }
}
