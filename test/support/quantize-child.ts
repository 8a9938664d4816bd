/**
 * Run by itself, on the instruction set that GGUF_NATIVE_ISA names: prints a hash of the blocks of all cases of every type. With
 * the argument "best", of the types with a wider search, by that.
 */
import { createHash } from "node:crypto";
import { cpu, type QuantizableType, quantizeSync } from "gguf-native";
import { encodedTypes } from "./encoded-types";
import { quantizeCases } from "./quantize-cases";

export const WIDER_TYPES = [
  "Q4_0",
  "Q2_K",
  "Q3_K",
  "Q4_K",
  "Q5_K",
  "Q6_K",
  "IQ4_NL",
  "IQ4_XS",
] as const satisfies readonly QuantizableType[];

export function hashOfType(type: QuantizableType, needsImportance: boolean, search?: "ggml" | "best"): string {
  const hash = createHash("sha256");
  for (const { numbers, columns, importance } of quantizeCases(type, needsImportance)) {
    hash.update(quantizeSync(type, numbers, { columns, importance, search }));
  }
  return hash.digest("hex");
}

if (require.main === module) {
  const hashes = Object.fromEntries(
    process.argv[2] === "best"
      ? WIDER_TYPES.map((name) => [name, hashOfType(name, false, "best")])
      : encodedTypes().map(({ name, needsImportance }) => [name, hashOfType(name, needsImportance)]),
  );
  console.log(JSON.stringify({ isa: cpu().isa, hashes }));
}
