/** An ES module that uses the package. */
import { createRequire } from "node:module";
import * as everything from "gguf-native";
import { cpu, type GgmlType, GgufError, GgufFile, ggmlTypes, openSync } from "gguf-native";
import { dequantizeSync } from "gguf-native/reference"; // a copy of its own, with its own class of errors

const require = createRequire(import.meta.url);
const cjs = require("gguf-native") as typeof everything;
const file: GgufFile = openSync(process.argv[2] as string);
const type: GgmlType = "F32";
const values: Float32Array = dequantizeSync(type, new Uint8Array(4));
const bits: Uint16Array = file.tensor("F16.gaussian").dequantizeSync({ dtype: "bf16" });
const errorOf = (run: () => unknown): unknown => {
  try {
    return run();
  } catch (error) {
    return error;
  }
};
process.stdout.write(
  JSON.stringify({
    sameClasses: cjs.GgufFile === GgufFile && cjs.GgufError === GgufError,
    knowsErrors: errorOf(() => dequantizeSync(type, new Uint8Array(3))) instanceof GgufError,
    sameNames: Object.keys(cjs).every((name) => name in everything),
    names: Object.keys(cjs).sort(),
    isFile: file instanceof cjs.GgufFile,
    types: Object.keys(ggmlTypes).length,
    isa: typeof cpu().isa,
    lengths: [values.length, bits.length],
  }),
);
