import { basename, resolve } from "node:path";
import { isRemote } from "../source/url";

/** What the name of a model says: "Qwen2.5-0.5B-Instruct" is a size, a purpose and what is left. */
type Kind = "basename" | "finetune" | "version" | "size_label" | "type";

/** What a name says, by keys of the metadata. */
export type NameParts = Partial<Record<"name" | "organization" | Kind, string | undefined>>;

const VERSION = /^(v|iter)?\d+(\.\d+)*$/i;
const TYPE = /^(i?q\d(_\w)*|b?fp?(16|32))$/i;
const SIZE = /^((A|\d+x)?\d+([._]\d+)?[KMBT]\d?|small|mini|medium|large|x?xl)$/i;
const PURPOSE = /^(chat|instruct|vision|lora)$/i;

/** Words begin with a capital letter, but for versions and what has one already. */
function titleOf(text: string): string {
  const words = text.trim().replaceAll("-", " ").split(/\s+/);
  const isLower = (word: string): boolean => word === word.toLowerCase() && word !== word.toUpperCase();
  return words
    .map((word) => {
      if (!isLower(word) || /^(v\d+(\.\d+)*|\d.*)$/.test(word)) return word;
      return word.replace(/(\p{L})(\p{L}*)/gu, (_, first: string, others: string) => first.toUpperCase() + others);
    })
    .join(" ");
}

/**
 * A size as it is written in labels; `isSize` tells whether it may be that of a model of so many weights. They are negative
 * where they are those of an adapter, which may not have a part for each matrix.
 */
function sizeOf(part: string, weights: number): { text: string; isSize: boolean } {
  let text = part.replaceAll("_", ".");
  // "7b1" is 7.1b.
  if (/\d$/.test(text)) text = `${text.slice(0, -2)}.${text.at(-1)}${text.at(-2)}`;
  if (/\d[kmbt]$/.test(text)) text = text.slice(0, -1) + (text.at(-1) as string).toUpperCase();
  const count = Number(text.slice(0, -1)) * 1000 ** " KMBT".indexOf(text.at(-1) as string);
  const isNumber = text.length > 1 && Number.isFinite(count);
  const isSize =
    weights < 0
      ? count >= Math.floor(-weights / 8)
      : weights === 0 || Math.abs(count - weights) <= Math.floor((7 * weights) / 8);
  if (!isNumber || isSize) return { text, isSize: true };
  return { text: text.slice(0, -1) + (text.at(-1) as string).toLowerCase(), isSize: false };
}

/** A repository of the hub, its revision, and a folder in it: as `hf://`, and as its server has them. */
const REPOSITORIES = [
  /^hf:\/\/(?:models\/)?[^/]+\/([^/@]+)(?:@(?:refs\/(?:convert|pr)\/)?[^/]+)?(\/.*)?$/is,
  /^https?:\/\/.*?\/([^/]+)\/(?:resolve|raw)\/(?:refs\/(?:convert|pr)\/)?[^/]+(\/.*)?$/is,
];

/** What the folder of a checkpoint is called, whose files may be on a server; "" where it has no name. */
export function folderName(path: string): string {
  if (!isRemote(path)) return basename(resolve(path));
  const url = path.replace(/[?#].*$/s, "").replace(/\/+$/, "");
  const [, repository = "", inside] =
    REPOSITORIES.map((pattern) => pattern.exec(url)).find((found) => found !== null) ?? [];
  const name = inside === undefined ? repository : (inside.split("/").at(-1) as string);
  const last = name || (/^https?:\/\/[^/]+\/.*?([^/]+)$/is.exec(url)?.[1] ?? "");
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}

/** The longest name that is taken apart, several times as long as those that the hub allows. */
const MAX_NAME = 512;

/** The parts of a name as the hub has them: "OWNER/NAME", or "NAME". */
export function partsOfName(id: string, weights: number): NameParts {
  if (id.length > MAX_NAME) return { name: id };
  if (id.includes(" ")) return { name: titleOf(id) };
  const [, owner, full = id] = /^([^/]*)\/(.*)$/s.exec(id) ?? [];
  const parts = full.split("-").filter((part) => part !== "");
  const kinds: Set<Kind>[] = parts.map((part, i) => {
    const kinds = new Set<Kind>();
    if (VERSION.test(part)) kinds.add("version");
    else if (TYPE.test(part)) kinds.add("type");
    else if (i > 0 && SIZE.test(part)) {
      const { text, isSize } = sizeOf(part, weights);
      parts[i] = text;
      kinds.add(isSize ? "size_label" : "finetune");
    } else if (i > 0 && PURPOSE.test(part)) {
      kinds.add(weights < 0 && /^lora$/i.test(part) ? "type" : "finetune");
    }
    return kinds;
  });
  const each = [...kinds.entries()].map(([i, kinds]) => [parts[i] as string, kinds] as const);
  // Words are sizes only where no number is.
  if (each.some(([part, kinds]) => kinds.has("size_label") && /\d/.test(part))) {
    for (const [part, kinds] of each) if (/^\p{L}+$/u.test(part)) kinds.delete("size_label");
  }
  let isStart = true;
  for (const [part, kinds] of each) {
    isStart &&= (kinds.size === 0 && /^\p{L}/u.test(part)) || kinds.has("version");
    if (isStart) kinds.add("basename");
    else if (kinds.size === 0) kinds.add("finetune");
  }
  // A version at the end is no part of the name itself.
  for (const [, kinds] of each.reverse()) {
    if (!kinds.has("basename") || kinds.size === 1) break;
    kinds.delete("basename");
  }
  each.reverse();
  const joined = (kind: Kind, without?: Kind): string | undefined => {
    const chosen = each
      .filter(([, kinds]) => kinds.has(kind) && !(without && kinds.has(without)))
      .map(([part]) => part);
    return (kind === "size_label" ? [...new Set(chosen)] : chosen).join("-") || undefined;
  };
  const found = {
    finetune: joined("finetune"),
    version: joined("version", "basename"),
    size_label: joined("size_label"),
  };
  const saysMore = Object.values(found).some((value) => value !== undefined);
  const isOwner = owner !== undefined && owner !== "" && !owner.startsWith(".");
  return {
    name: titleOf(full),
    ...(isOwner ? { organization: titleOf(owner) } : {}),
    ...(saysMore ? { basename: joined("basename") } : {}),
    ...found,
  };
}

/** "22.6M": at least two digits. */
export function sizeLabel(weights: number): string {
  const [scale, suffix] =
    weights > 1e12 ? [1e12, "T"] : weights > 1e9 ? [1e9, "B"] : weights > 1e6 ? [1e6, "M"] : [1e3, "K"];
  const scaled = weights / scale;
  const digits = String(Math.round(scaled)).replace(/^0+/, "").length;
  return scaled.toFixed(Math.max(2 - digits, 0)) + suffix;
}
