/** What has to be said of the memory that a model takes, beside the figures. */
import type { Cache } from "./memory";
import { escapeText, grouped } from "./text";

/** A sentence for each remark, without a full stop. */
export function memoryRemarks({ context, cells, remarks }: Cache): string[] {
  return [
    ...(cells !== context && cells !== null ? [`room for ${grouped(cells)} tokens, a multiple of 256`] : []),
    ...remarks.map(escapeText),
    "programs need more than this, for their own computation",
  ];
}
