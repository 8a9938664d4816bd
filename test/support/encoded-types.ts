/** The types that the addon, or the module, has encoders for. */
import { join } from "node:path";
import type { QuantizableType } from "gguf-native";
import { projectRoot } from "./paths";

export interface EncodedType {
  name: QuantizableType;
  needsImportance: boolean;
}

export function encodedTypes(): EncodedType[] {
  const { native } = require(join(projectRoot, "dist", "backend", "native.js")) as {
    native: { formats(): (EncodedType & { encodes: boolean })[] };
  };
  return native.formats().filter(({ encodes }) => encodes);
}
