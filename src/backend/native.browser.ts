/** In place of `native.ts` where there is no addon: bundles for browsers resolve `./native` to this file. */
import type { NativeAddon } from "./native-surface";
import { wasmAddon } from "./wasm/addon";

export type * from "./native-surface";

export const native: NativeAddon = wasmAddon(() => {
  throw new Error("there are no files here, only their bytes: use parse, openBlob or openRemote");
});

/** Everything here is of this realm already. */
export async function resultOf<T>(promise: Promise<T>): Promise<T> {
  return promise;
}
